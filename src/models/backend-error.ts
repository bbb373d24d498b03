import { type JsonObject, listIn, objectIn, parseJson, textIn } from './json.ts';
import { ModelError, type ModelErrorCode } from './model-error.ts';

/** What a backend has said about its failure, in whatever shape. */
export interface Complaint {
  readonly message?: string;
  /** Its own words for the kind of failure: `code`, `type` and `status`, in lower case. */
  readonly words: readonly string[];
  /** A status of HTTP that it names in its text. */
  readonly status?: number;
}

export interface ComplaintOrigin {
  /** Of the answer, or absent in the middle of one. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** What must not be shown although the backend may repeat it. */
  readonly secrets: readonly string[];
}

const MAX_MESSAGE = 1_000;
/** What is shorter is no secret, and taking it out would only spoil the message. */
const MIN_SECRET = 4;

/** Without secrets, on one line, and no longer than anybody reads. */
export const presentable = (text: string, secrets: readonly string[]): string => {
  let clean = text;
  for (const secret of secrets) if (secret.length >= MIN_SECRET) clean = clean.replaceAll(secret, '***');
  clean = clean.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
  return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}...` : clean;
};

const statusIn = (value: unknown): number | undefined => {
  const status = typeof value === 'string' ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
};

const complaintOf = (error: unknown, outer: JsonObject = {}): Complaint => {
  const inner = objectIn(error);
  if (!inner) return { ...(textIn(error) && { message: String(error) }), words: wordsIn(outer) };
  const first = objectIn(listIn(inner.detail)[0]); // a list of what is wrong with the fields
  const message = [inner.message, inner.detail, first?.msg, inner.error, inner.reason, outer.message].find(textIn);
  const status = [inner.status, inner.code, outer.status, outer.code].map(statusIn).find((found) => found);
  return {
    ...(message !== undefined && { message: String(message) }),
    words: [...wordsIn(inner), ...wordsIn(outer)],
    ...(status !== undefined && { status }),
  };
};

const wordsIn = ({ code, type, status }: JsonObject): string[] =>
  [code, type, status].flatMap((word) => textIn(word)?.toLowerCase() ?? []);

/** The complaint in a document or a chunk; undefined if there is none in it. */
export const complaintIn = (value: unknown): Complaint | undefined => {
  const body = objectIn(Array.isArray(value) ? value[0] : value);
  if (!body) return undefined;
  if (body.error !== undefined && body.error !== null && body.error !== false) return complaintOf(body.error, body);
  return body.object === 'error' || body.type === 'error' ? complaintOf(body) : undefined;
};

/** The complaint in the body of an answer that is an error by its status. A web page is none. */
export const complaintInBody = (text: string): Complaint => {
  const parsed = parseJson(text);
  const found = complaintIn(parsed);
  if (found) return found;
  if (objectIn(parsed)) return complaintOf(parsed);
  return text.trim() === '' || text.trimStart().startsWith('<') ? { words: [] } : { message: text, words: [] };
};

const TOO_LONG =
  /context[ _-]?(length|window|size)|maximum context|max(imum)?[ _]model[ _]len|prompt is too long|too many (input )?tokens/i;

const BY_WORD: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/context_length|context_window/, 'context_length'],
  [/content_filter|content_policy|responsible_ai/, 'content_filter'],
  [/model_not_found|not_found/, 'not_found'],
  [/rate_limit|too_many_requests|resource_exhausted|quota/, 'rate_limited'],
  [/auth|permission|invalid_api_key|unauthorized/, 'auth'],
  [/invalid|bad_?request|unsupported/, 'invalid_request'],
  [/timeout|deadline/, 'timeout'],
];

const byStatus = (status: number): ModelErrorCode => {
  if (status === 401 || status === 403) return 'auth';
  if (status === 404) return 'not_found';
  if (status === 408 || status === 504) return 'timeout';
  if (status === 409 || status >= 500) return 'unavailable';
  if (status === 413) return 'too_large';
  if (status === 429) return 'rate_limited';
  return status >= 400 ? 'invalid_request' : 'bad_answer';
};

const codeOf = ({ message = '', words }: Complaint, status: number | undefined): ModelErrorCode => {
  const named = BY_WORD.find(([pattern]) => words.some((word) => pattern.test(word)))?.[1];
  if (status === undefined) return named ?? (TOO_LONG.test(message) ? 'context_length' : 'unavailable');
  const plain = byStatus(status);
  if (plain !== 'invalid_request' && plain !== 'too_large') return plain;
  if (TOO_LONG.test(message)) return 'context_length';
  return named === 'context_length' || named === 'content_filter' || named === 'not_found' ? named : plain;
};

/** Nothing of the like comes after these by waiting. */
const NO_USE = new Set([501, 505]);

export const backendError = (complaint: Complaint, origin: ComplaintOrigin): ModelError => {
  const status = origin.status ?? complaint.status;
  const code = codeOf(complaint, status);
  const said = presentable(complaint.message ?? '', origin.secrets);
  const what =
    origin.status === undefined
      ? "The model's backend broke off with an error"
      : `The model's backend answered ${origin.status}`;
  const spent = complaint.words.some((word) => word.includes('insufficient_quota'));
  return new ModelError(code, said ? `${what}: ${said}` : `${what}.`, {
    ...(status !== undefined && { status }),
    ...(origin.retryAfterMs !== undefined && { retryAfterMs: origin.retryAfterMs }),
    ...((spent || NO_USE.has(status ?? 0)) && { retryable: false }),
  });
};
