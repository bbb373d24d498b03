import type { SchemaObject } from 'ajv';

// Pieces of our own schema. Every piece says in `expects` what belongs there, as a sentence goes on after "must be".

/** A part whose place holds a variable of the environment instead. */
const VARIABLE = '^\\$\\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\\}$';

export const text = (maxLength = 4_096, expects = 'text'): SchemaObject => ({
  ...{ type: 'string', minLength: 1, maxLength },
  expects: expects === 'text' ? `text of at most ${maxLength} characters` : expects,
});

/** Texts that may be empty, such as descriptions. */
export const prose = (maxLength = 65_536): SchemaObject => ({
  ...{ type: 'string', maxLength, expects: `text of at most ${maxLength} characters` },
});

export const oneWord = (...words: readonly string[]): SchemaObject => ({
  ...{ enum: words, expects: words.length === 1 ? `${words[0]}` : `one of ${words.join(', ')}` },
});

export const yesOrNo: SchemaObject = { type: 'boolean', expects: 'true or false' };

export const whole = (minimum: number, maximum: number): SchemaObject => ({
  ...{ type: 'integer', minimum, maximum, expects: `a whole number from ${minimum} to ${maximum}` },
});

export const seconds = (maximum: number): SchemaObject => ({
  ...{ type: 'number', exclusiveMinimum: 0, maximum },
  expects: `a number of seconds above 0 and at most ${maximum}`,
});

/** A number, or a variable that stands for one and is looked at when it is needed. */
export const numberOrVariable = (type: 'number' | 'integer', minimum: number, maximum: number): SchemaObject => ({
  ...{ type: [type, 'string'], minimum, maximum, pattern: VARIABLE },
  expects: `a ${type === 'integer' ? 'whole number' : 'number'} from ${minimum} to ${maximum}, or \${NAME} or \${NAME:-otherwise}`,
});

export const list = (items: SchemaObject, expects: string, maxItems = 1_000): SchemaObject => ({
  ...{ type: 'array', items, maxItems, expects: `a list of ${expects}` },
});

export const texts = (expects = 'texts', maxItems = 1_000): SchemaObject => list(text(), expects, maxItems);

/** Keys that it does not know are left alone: the specification is open. */
export const block = (
  properties: Record<string, SchemaObject | true>,
  required: readonly string[] = [],
): SchemaObject => ({
  ...{ type: 'object', properties, required, expects: 'keys and values' },
});

/** Nobody but the gateway defines such a block: a key that is nearly one of its own is a mistake. */
export const ownBlock = (properties: Record<string, SchemaObject | true>): SchemaObject => ({
  ...block(properties),
  nearly: 'error',
});

export const map = (values: SchemaObject, expects: string, maxProperties = 1_000): SchemaObject => ({
  ...{ type: 'object', additionalProperties: values, maxProperties, expects },
});

/** A JSON Schema; whether it can be used is found out elsewhere. */
export const jsonSchema: SchemaObject = { type: 'object', expects: 'a JSON Schema' };

export const anything: SchemaObject = { type: 'object', expects: 'keys and values' };
