import { Ajv } from 'ajv';
import { findingsIn, inventArguments, wrongArguments } from '../../src/models/demo-arguments.ts';

const none = () => ({ numbers: [], texts: [] });
const object = (properties: object, rest: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...rest,
});

describe('arguments that are made up', () => {
  it.each<[string, Record<string, unknown>]>([
    [
      'texts, numbers, flags',
      object({
        s: { type: 'string' },
        n: { type: 'number' },
        i: { type: 'integer' },
        b: { type: 'boolean' },
        z: { type: 'null' },
      }),
    ],
    [
      'choices and constants',
      object({ e: { enum: ['x', 'y'] }, c: { const: 4 }, d: { type: 'string', default: 'dd' } }),
    ],
    [
      'bounds',
      object({
        a: { type: 'integer', minimum: 10 },
        b: { type: 'number', exclusiveMinimum: 3 },
        c: { type: 'number', maximum: -5 },
        d: { type: 'integer', exclusiveMaximum: 0 },
      }),
    ],
    ['lengths', object({ a: { type: 'string', minLength: 30 }, b: { type: 'string', maxLength: 2 } })],
    ['lists', object({ a: { type: 'array', items: { type: 'integer' }, minItems: 3 }, b: { type: 'array' } })],
    ['nested objects', object({ a: object({ b: object({ c: { type: 'string' } }) }) })],
    [
      'types that may be null',
      object({ a: { type: ['null', 'integer'] }, b: { anyOf: [{ type: 'null' }, { type: 'boolean' }] } }),
    ],
    [
      'alternatives',
      object({
        a: { oneOf: [{ type: 'string' }, { type: 'number' }] },
        b: { allOf: [{ type: 'string', minLength: 2 }] },
      }),
    ],
    [
      'references',
      { ...object({ a: { $ref: '#/$defs/thing' } }), $defs: { thing: object({ x: { type: 'integer' } }) } },
    ],
    ['nothing required', { type: 'object', properties: { a: { type: 'string' } } }],
    ['no schema to speak of', {}],
  ])('fit a schema with %s', (_, schema) => {
    const made = inventArguments(schema, none());
    const fits = new Ajv({ strict: false }).compile(schema);
    expect([fits(made), made]).toEqual([true, made]);
  });

  it('have what is required, and all fields where nothing is said', () => {
    const properties = { a: { type: 'string' }, b: { type: 'integer' } };
    expect(inventArguments({ type: 'object', properties, required: ['b'] }, none())).toEqual({ b: 1 });
    expect(inventArguments({ type: 'object', properties }, none())).toEqual({ a: 'demo a', b: 1 });
  });

  it('take numbers and quoted texts from what was said, in their order', () => {
    const schema = object({
      a: { type: 'number' },
      s: { type: 'string' },
      b: { type: 'integer', default: 9 },
      t: { type: 'string' },
    });
    expect(inventArguments(schema, findingsIn('4.5 and "one" with 7, v2 "two"'))).toEqual({
      a: 4.5,
      s: 'one',
      b: 7,
      t: 'two',
    });
  });

  it('end where a schema goes round in circles', () => {
    const schema = {
      ...object({ next: { $ref: '#/$defs/node' } }),
      $defs: { node: object({ next: { $ref: '#/$defs/node' } }) },
    };
    expect(JSON.stringify(inventArguments(schema, none())).length).toBeLessThan(200);
  });

  it('can be wrong on purpose', () => {
    const schema = object({ a: { type: 'string' }, o: { type: 'object' } });
    const fits = new Ajv().compile(schema);
    expect(fits(wrongArguments(schema))).toBe(false);
    expect(fits(wrongArguments({}))).toBe(false);
  });
});
