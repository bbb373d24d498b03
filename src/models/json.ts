/** Looking into JSON that may have any shape. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const objectIn = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;

export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Undefined for what is no text, and for no text at all. */
export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** A count: whole and not negative. */
export const countIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Undefined if it is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
