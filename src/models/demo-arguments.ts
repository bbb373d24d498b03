import { countIn, type JsonObject, listIn, objectIn, textIn } from './json.ts';
import type { Schema } from './model.ts';

/** What a text offers for the fields of a schema, in its order. Taken away as it is used. */
export interface Findings {
  readonly numbers: number[];
  readonly texts: string[];
}

export const findingsIn = (text: string): Findings => ({
  numbers: [...text.matchAll(/(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)/g)].slice(0, MAX_FINDINGS).map(Number),
  texts: [...text.matchAll(/"([^"\n]{1,500})"/g)].slice(0, MAX_FINDINGS).map((match) => match[1] ?? ''),
});

const MAX_FINDINGS = 100;
const MAX_DEPTH = 6;
const MAX_FIELDS = 50;
const MAX_ITEMS = 10;
const MAX_TEXT = 1_000;

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  time: '12:00:00Z',
  'date-time': '2026-01-01T12:00:00Z',
  email: 'demo@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '192.0.2.1',
  hostname: 'example.com',
};

const typeOf = (schema: JsonObject): string | undefined => {
  const named = [schema.type, ...listIn(schema.type)].find((type) => textIn(type) && type !== 'null');
  if (typeof named === 'string') return named;
  if (schema.type === 'null') return 'null';
  if (objectIn(schema.properties)) return 'object';
  return schema.items === undefined ? undefined : 'array';
};

const resolve = (schema: JsonObject, root: JsonObject): JsonObject => {
  const path = textIn(schema.$ref);
  if (path?.startsWith('#/')) {
    const found = path
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => objectIn(at)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root);
    return objectIn(found) ?? {};
  }
  const choice = listIn(schema.anyOf ?? schema.oneOf ?? schema.allOf).find((one) => objectIn(one)?.type !== 'null');
  const { anyOf: _, oneOf: __, allOf: ___, ...rest } = schema;
  return choice === undefined ? schema : { ...rest, ...objectIn(choice) };
};

const textFor = (schema: JsonObject, name: string, found: Findings): string => {
  const text = found.texts.shift() ?? FORMATS[textIn(schema.format) ?? ''] ?? `demo ${name}`;
  const least = Math.min(countIn(schema.minLength) ?? 0, MAX_TEXT);
  return text.padEnd(least, '.').slice(0, countIn(schema.maxLength) ?? MAX_TEXT);
};

const numberFor = (schema: JsonObject, found: Findings): number => {
  const number = found.numbers.shift();
  if (number !== undefined) return schema.type === 'integer' ? Math.trunc(number) : number;
  const bound = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
  const above = bound(schema.exclusiveMinimum);
  const least = bound(schema.minimum) ?? (above === undefined ? 1 : above + 1);
  const most = bound(schema.maximum) ?? (bound(schema.exclusiveMaximum) ?? Number.POSITIVE_INFINITY) - 1;
  return Math.min(Math.max(least, Math.min(1, most)), most);
};

/** A value that fits a schema, as far as one can tell without trying. */
const valueFor = (given: unknown, name: string, found: Findings, root: JsonObject, depth: number): unknown => {
  const schema = resolve(objectIn(given) ?? {}, root);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  const type = typeOf(schema);
  const numeric = type === 'number' || type === 'integer';
  const offered = numeric ? found.numbers.length > 0 : type === 'string' && found.texts.length > 0;
  if (schema.default !== undefined && !offered) return schema.default;
  if (depth > MAX_DEPTH) return null;
  switch (type ?? 'string') {
    case 'object':
      return objectFor(schema, found, root, depth);
    case 'array': {
      const count = Math.min(countIn(schema.minItems) ?? 1, MAX_ITEMS);
      return Array.from({ length: count }, () => valueFor(schema.items, name, found, root, depth + 1));
    }
    case 'number':
    case 'integer':
      return numberFor(schema, found);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return textFor(schema, name, found);
  }
};

const objectFor = (schema: JsonObject, found: Findings, root: JsonObject, depth: number): JsonObject => {
  const properties = objectIn(schema.properties) ?? {};
  const names = Array.isArray(schema.required) ? schema.required.filter(textIn).map(String) : Object.keys(properties);
  const fields = names.slice(0, MAX_FIELDS).map((name) => {
    return [name, valueFor(properties[name], name, found, root, depth + 1)] as const;
  });
  return Object.fromEntries(fields);
};

/** Whatever a schema asks for. */
export const inventValue = (schema: Schema | undefined, found: Findings): unknown =>
  valueFor(schema ?? {}, 'value', found, schema ?? {}, 0);

/** Arguments that a tool with this schema takes. */
export const inventArguments = (schema: Schema | undefined, found: Findings): JsonObject =>
  objectFor(resolve(schema ?? {}, schema ?? {}), found, schema ?? {}, 0);

/** JSON that a tool with this schema does not take: every field has a value of another type. */
export const wrongArguments = (schema: Schema | undefined): unknown => {
  const properties = objectIn(schema?.properties) ?? {};
  const fields = Object.entries(properties).slice(0, MAX_FIELDS);
  if (fields.length === 0) return ['wrong'];
  return Object.fromEntries(
    fields.map(([name, value]) => [name, typeOf(objectIn(value) ?? {}) === 'object' ? 'wrong' : { wrong: true }]),
  );
};
