import type { JsonObject } from '../tools/tool.ts';

/** Deeper than anybody writes, and far from where writing it as JSON would run out of stack. */
const MAX_DEPTH = 200;

/** Whether parsed JSON is nested more deeply than can be worked with. */
export const isTooDeep = (value: unknown, left = MAX_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (left === 0 || Object.values(value).some((inner) => isTooDeep(inner, left - 1)));

/** What kind of thing it is. Never the value itself: it may be somebody's secret. */
export const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

/** By its shape and not by its class, which is another one in every context of the engine. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && isPlain(value);

/**
 * What of a value would be lost or changed if it were written as JSON, in words without a full stop; undefined if nothing
 * would. A field that is undefined counts as absent.
 */
export const notJson = (value: unknown, place: string, within: readonly unknown[] = []): string | undefined => {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${place} is ${value}`;
  if (typeof value !== 'object') return `${place} is ${kindOf(value)}, which JSON cannot say`;
  if (within.includes(value)) return `${place} contains itself`;
  if (within.length >= MAX_DEPTH) return `${place.slice(0, 100)} is nested too deeply`;
  const inner = [...within, value];
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      const fault = notJson(item, `${place}[${i}]`, inner);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  if (!isPlain(value)) return `${place} is an object of a class, not plain data`;
  for (const [key, field] of Object.entries(value)) {
    const fault = field === undefined ? undefined : notJson(field, `${place}.${key}`, inner);
    if (fault !== undefined) return fault;
  }
  return undefined;
};
