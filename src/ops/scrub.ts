import { pino } from 'pino';
import { SECRET_HEADERS } from '../auth/redact.ts';

/** Names whose values nobody may read in a log; `rawHeaders` is node's list of names and values. */
const SECRET_NAMES: ReadonlySet<string> = new Set([...SECRET_HEADERS, 'rawheaders']);

export const isSecretName = (name: string): boolean => SECRET_NAMES.has(name.toLowerCase());

/** Deeper than headers ever are, and an end for whatever goes round in circles. */
const DEPTH = 5;

/**
 * A log record without secrets, however their names are written; what has none is given back as it is. pino's own
 * redaction takes paths, whose wildcards would cost each line more than all the rest of it.
 */
export const scrub = (value: unknown, depth = 0): unknown => {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || depth > DEPTH) return value;
  if (value instanceof Error) return scrub(pino.stdSerializers.err(value), depth); // a copy would lose message and stack
  let copy: Record<string, unknown> | undefined;
  for (const [key, inner] of Object.entries(value)) {
    const clean = isSecretName(key) ? '***' : scrub(inner, depth + 1);
    if (clean === inner) continue;
    copy ??= { ...value };
    copy[key] = clean;
  }
  if (!copy) return value;
  return Array.isArray(value) ? value.map((_, i) => (copy as Record<string, unknown>)[i]) : copy;
};
