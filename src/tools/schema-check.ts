import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from './tool.ts';

/** At most so many faults are told. */
const MAX_FAULTS = 5;

const make = (schema: Schema): Ajv => {
  const options = { allErrors: true, strict: false, validateFormats: false, logger: false } as const;
  const dialect = typeof schema.$schema === 'string' ? schema.$schema : '';
  if (/draft-0[67]/.test(dialect)) return new Ajv(options);
  return dialect.includes('2019-09') ? new Ajv2019(options) : new Ajv2020(options);
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
      // An `$id` would be remembered, and two tools may well have the same one.
      const { $id: _, ...anonymous } = schema;
      this.validate = make(schema).compile(anonymous);
    } catch (error) {
      throw new Error(`The schema cannot be used: ${error instanceof Error ? error.message : String(error)}`);
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
