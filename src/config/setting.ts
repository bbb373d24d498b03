import type { SchemaObject } from 'ajv';

/** What a default may depend on. Only facts that no derived default changes, so that their order does not matter. */
export interface Facts {
  /** A secret, a public key or a JWKS address is configured. */
  readonly keyConfigured: boolean;
  /** Only this machine can connect. */
  readonly loopback: boolean;
  /** Clients come over TLS, which a proxy ends. */
  readonly https: boolean;
  /** The session cookie is sent with requests from other sites. */
  readonly crossSite: boolean;
}

export interface Derived<T> {
  /** As the reference page says it. */
  readonly words: string;
  readonly from: (facts: Facts) => T;
}

/** One setting, declared once: the type, the check, the environment, the flag and the reference page all come from here. */
export interface Setting<T> {
  /** One sentence. */
  readonly describe: string;
  /** Completes "... must be". */
  readonly expects: string;
  /** Of a value in the file; a text from the environment or a flag is read first. */
  readonly schema: SchemaObject;
  readonly default: T | Derived<T>;
  /** Never printed, and no flag: other users of the machine see the command line. */
  readonly secret: boolean;
  /** Has parts of its own: neither a variable nor a flag can say it. Its schema explains itself, and it is not logged. */
  readonly structured?: boolean;
  /** Where it differs from SLUICE_ and the path. */
  readonly env?: string;
  /** A text as the value it stands for; one that stands for none is given back, and the schema refuses it. */
  readonly read: (text: string) => unknown;
  /** What of a secret may be shown. */
  readonly show?: (value: string) => string;
  /** From what was written to what is used, once the value has passed the check. */
  resolve?(value: T, directory: string): T;
}

export const isDerived = (value: unknown): value is Derived<unknown> =>
  typeof value === 'object' && value !== null && 'from' in value;

interface Declared {
  readonly describe: string;
  readonly env?: string;
}

type Or<O, T> = O extends { readonly default: unknown } ? T : T | undefined;

const common = ({ describe, env }: Declared) => ({ describe, ...(env && { env }) });

const readInteger = (text: string): unknown => (/^\s*[+-]?\d{1,15}\s*$/.test(text) ? Number(text) : text);

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false };

export interface IntegerOptions extends Declared {
  readonly default?: number;
  readonly min: number;
  readonly max: number;
  /** What 0 means, if anything. */
  readonly zero?: string;
}

export const integer = <const O extends IntegerOptions>(options: O): Setting<Or<O, number>> => ({
  ...common(options),
  expects: `a whole number from ${options.min} to ${options.max}${options.zero ? ` (0: ${options.zero})` : ''}`,
  schema: { type: 'integer', minimum: options.min, maximum: options.max },
  default: options.default as Or<O, number>,
  secret: false,
  read: readInteger,
});

export interface ToggleOptions extends Declared {
  readonly default: boolean | Derived<boolean>;
}

export const toggle = (options: ToggleOptions): Setting<boolean> => ({
  ...common(options),
  expects: 'true or false',
  schema: { type: 'boolean' },
  default: options.default,
  secret: false,
  read: (text) => BOOLEANS[text.trim().toLowerCase()] ?? text,
});

export const choice = <const C extends string>(
  options: Declared & { readonly of: readonly C[]; readonly default: NoInfer<C> | Derived<NoInfer<C>> },
): Setting<C> => ({
  ...common(options),
  expects: `one of ${options.of.join(', ')}`,
  schema: { type: 'string', enum: [...options.of] },
  default: options.default,
  secret: false,
  read: (text) => text.trim(),
});

interface TextForm {
  readonly expects: string;
  readonly schema: SchemaObject;
}

export interface TextOptions extends Declared, TextForm {
  readonly default?: string;
  readonly secret?: boolean;
  readonly show?: (value: string) => string;
  readonly resolve?: (value: string, directory: string) => string;
}

export const text = <const O extends TextOptions>(options: O): Setting<Or<O, string>> => {
  const { resolve, show } = options;
  return {
    ...common(options),
    expects: options.expects,
    schema: { type: 'string', minLength: 1, ...options.schema },
    default: options.default as Or<O, string>,
    secret: options.secret ?? false,
    read: (written) => written,
    ...(show && { show }),
    ...(resolve && { resolve: (value, directory) => (value === undefined ? value : resolve(value, directory)) }),
  } as Setting<Or<O, string>>;
};

export interface ListOptions extends Declared {
  readonly each: TextForm;
  readonly max: number;
  readonly secret?: boolean;
  readonly resolve?: (value: string, directory: string) => string;
}

/** In the environment its items are separated by commas. */
export const list = (options: ListOptions): Setting<readonly string[]> => {
  const { resolve } = options;
  return {
    ...common(options),
    expects: `a list of at most ${options.max}, each ${options.each.expects}`,
    schema: {
      type: 'array',
      maxItems: options.max,
      items: { type: 'string', minLength: 1, ...options.each.schema },
    },
    default: [],
    secret: options.secret ?? false,
    read: (written) =>
      written
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    ...(resolve && { resolve: (items, directory) => items.map((item) => resolve(item, directory)) }),
  };
};

export interface StructureOptions<T> extends Declared {
  readonly expects: string;
  readonly schema: SchemaObject;
  readonly default: T;
  readonly resolve?: (value: T, directory: string) => T;
}

/** Something with parts, which only the file can say. */
export const structure = <T>(options: StructureOptions<T>): Setting<T> => ({
  describe: options.describe,
  expects: options.expects,
  schema: options.schema,
  default: options.default,
  secret: false,
  structured: true,
  read: (written) => written,
  ...(options.resolve && { resolve: options.resolve }),
});
