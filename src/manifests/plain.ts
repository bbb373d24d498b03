/** Values of a document, whatever they turn out to be: what is not of the kind that is asked for is not there. */
export type PlainObject = Readonly<Record<string, unknown>>;

const NOTHING: PlainObject = Object.freeze({});
const NONE: readonly unknown[] = Object.freeze([]);

export const isObject = (value: unknown): value is PlainObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectOf = (value: unknown): PlainObject => (isObject(value) ? value : NOTHING);

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : NONE);

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

export const textsOf = (value: unknown): readonly string[] => listOf(value).filter((item) => typeof item === 'string');

/** The first of several spellings that is there. */
export const oneOf = (object: PlainObject, names: readonly string[]): unknown => {
  const name = names.find((candidate) => Object.hasOwn(object, candidate));
  return name === undefined ? undefined : object[name];
};

type Given<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Without the fields that are not there. */
export const given = <const T extends object>(fields: T): Given<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;

/** Plain values only: what is made by a class looks after itself. */
export const frozen = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const made: unknown = Object.getPrototypeOf(value);
  if (made !== Object.prototype && made !== Array.prototype) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
};
