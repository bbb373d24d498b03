import type { JsonObject } from '../tools/tool.ts';
import type { Block } from './environment.ts';
import { isObject, kindOf, notJson } from './plain-data.ts';

/** A block as somebody writes it: text is a block of text, and what is left out is null. */
export type GivenBlock =
  | string
  | { readonly type: 'text'; readonly text: string; readonly detail?: JsonObject | null }
  /** `data` is base64. */
  | {
      readonly type: 'image';
      readonly data: string;
      readonly mimeType: string;
      readonly detail?: JsonObject | null;
    };

const KEYS = { text: ['type', 'text', 'detail'], image: ['type', 'data', 'mimeType', 'detail'] } as const;
const IMAGE_TYPE = /^image\/[A-Za-z0-9.+-]{1,100}$/;

export const text = (content: string, detail: JsonObject | null = null): Block => ({
  text: content,
  detail,
  type: 'text',
});

/** Bytes, or base64. */
export const image = (data: string | Uint8Array, mimeType: string, detail: JsonObject | null = null): Block => ({
  data: typeof data === 'string' ? data : Buffer.from(data).toString('base64'),
  mimeType,
  detail,
  type: 'image',
});

const isBase64 = (data: string): boolean => {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  // What is looked for is one wrong character: a pattern of the whole would go back and forth over megabytes.
  return data.length > 0 && data.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(data.slice(0, data.length - padding));
};

const detailOf = (detail: unknown, place: string): JsonObject | null => {
  if (detail === undefined || detail === null) return null;
  if (!isObject(detail)) throw new Error(`${place}.detail must be an object or null, not ${kindOf(detail)}`);
  const fault = notJson(detail, `${place}.detail`);
  if (fault !== undefined) throw new Error(fault);
  return detail;
};

/** Every key, in the order in which clients know them. Throws in words without a full stop. */
const blockOf = (given: unknown, place: string): Block => {
  if (typeof given === 'string') return text(given);
  if (!isObject(given)) throw new Error(`${place} must be text or a block, not ${kindOf(given)}`);
  const { type } = given;
  if (type !== 'text' && type !== 'image') throw new Error(`${place}.type must be "text" or "image"`);
  const extra = Object.keys(given).find((key) => !(KEYS[type] as readonly string[]).includes(key));
  if (extra !== undefined) throw new Error(`${place}.${extra.slice(0, 100)} is not known`);
  const detail = detailOf(given.detail, place);
  if (type === 'text') {
    if (typeof given.text === 'string') return text(given.text, detail);
    throw new Error(`${place}.text must be a string, not ${kindOf(given.text)}`);
  }
  const { data, mimeType } = given;
  if (typeof data !== 'string' || !isBase64(data)) throw new Error(`${place}.data must be base64`);
  if (typeof mimeType !== 'string' || !IMAGE_TYPE.test(mimeType)) {
    throw new Error(`${place}.mimeType must be a type of image such as image/png`);
  }
  return image(data, mimeType, detail);
};

/** One text, one block, or a list of both. Throws in words without a full stop. */
export const blocksOf = (given: unknown, place: string): readonly Block[] =>
  Array.isArray(given) ? given.map((one, i) => blockOf(one, `${place}[${i}]`)) : [blockOf(given, place)];
