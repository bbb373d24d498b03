/** The W3C trace context of a request: https://www.w3.org/TR/trace-context/ */
export interface Traceparent {
  readonly traceId: string;
  readonly parentId: string;
  readonly sampled: boolean;
  /** In the form of version 00, which is the one to hand on whatever version came in. */
  readonly text: string;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LONGEST = 512;
const ZEROS = /^0+$/;

/** Undefined if the header is not one that can be relied on; the request then counts as having none. */
export const parseTraceparent = (header: string | undefined): Traceparent | undefined => {
  if (header === undefined || header.length > LONGEST) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = FORM.exec(header.trim()) ?? [];
  if (version === undefined || version === 'ff' || ZEROS.test(traceId) || ZEROS.test(parentId)) return undefined;
  // Later versions may add parts; this one has none.
  if (version === '00' && more !== undefined) return undefined;
  // Of the flags only the first bit means anything in version 00, and only what is known is handed on.
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, parentId, sampled, text: `00-${traceId}-${parentId}-0${sampled ? 1 : 0}` };
};
