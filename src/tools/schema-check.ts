import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { messageOf } from './message-of.ts';
import type { Schema } from './tool.ts';

/** At most so many faults are told. */
const MAX_FAULTS = 5;

const OPTIONS = { allErrors: true, strict: false, validateFormats: false, logger: false } as const;

/** The dialects, each with one instance that judges schemas: to compile the schema of schemas is most of the work. */
const DIALECTS = [Ajv2020, Ajv2019, Ajv].map((Dialect) => {
  let judge: Ajv | undefined;
  return {
    judge: (): Ajv => {
      judge ??= new Dialect(OPTIONS);
      return judge;
    },
    make: (options: Options): Ajv => new Dialect({ ...OPTIONS, ...options }),
  };
});

const compile = (schema: Schema): ValidateFunction => {
  const written = typeof schema.$schema === 'string' ? schema.$schema : '';
  const index = /draft-0[67]/.test(written) ? 2 : written.includes('2019-09') ? 1 : 0;
  const { judge, make } = DIALECTS[index] as (typeof DIALECTS)[number];
  // An `$id` would be remembered, and two tools may well have the same one.
  const { $id: _, ...anonymous } = schema;
  void judge().validateSchema(anonymous, true);
  try {
    return make({ meta: false, validateSchema: false }).compile(anonymous);
  } catch {
    return make({}).compile(anonymous); // it may refer to the schema of schemas
  }
};

/** A place in the input as people write it: `filter.tags[2]`. */
const placeOf = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`), '');

const sentence = ({ instancePath, keyword, params, message = 'is wrong' }: ErrorObject): string => {
  const place = placeOf(instancePath);
  const name = place === '' ? 'The input' : place;
  if (keyword === 'required') {
    const missing = String(params.missingProperty);
    return `${place === '' ? missing : `${place}.${missing}`} is missing`;
  }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const extra = String(params.additionalProperty ?? params.unevaluatedProperty);
    return `${place === '' ? extra : `${place}.${extra}`} is not known`;
  }
  if (keyword === 'enum') return `${name} must be one of ${JSON.stringify(params.allowedValues).slice(0, 200)}`;
  return `${name} ${message}`;
};

/** Judges values by one schema. The message names the path of everything that is wrong. */
export class SchemaCheck {
  private readonly validate: ValidateFunction;

  /** Throws one sentence if the schema itself is wrong. Schemas come from outside: they refer to nothing but themselves. */
  constructor(schema: Schema) {
    try {
      this.validate = compile(schema);
    } catch (error) {
      throw new Error(`The schema cannot be used: ${messageOf(error)}`);
    }
  }

  /** One sentence, or undefined if all is well. */
  fault(value: unknown): string | undefined {
    if (this.validate(value)) return undefined;
    const faults = [...new Set((this.validate.errors ?? []).map(sentence))];
    const more = faults.length > MAX_FAULTS ? `, and ${faults.length - MAX_FAULTS} more` : '';
    return `${faults.slice(0, MAX_FAULTS).join('; ')}${more}.`;
  }
}
