/**
 * `unavailable`      the backend cannot be reached, is overloaded, or broke off
 * `timeout`          it was silent for too long
 * `rate_limited`     it wants fewer requests; `retryAfterMs` says when, if the backend does
 * `invalid_request`  it does not take this request
 * `context_length`   the conversation is longer than the model can read
 * `content_filter`   it does not answer such a request
 * `auth`             it does not accept the gateway's credentials
 * `not_found`        nobody serves this model
 * `bad_answer`       it answered something that is no answer of a model
 * `too_large`        the request or the answer is larger than the gateway allows
 * `cancelled`        the caller has given up
 */
export type ModelErrorCode =
  | 'unavailable'
  | 'timeout'
  | 'rate_limited'
  | 'invalid_request'
  | 'context_length'
  | 'content_filter'
  | 'auth'
  | 'not_found'
  | 'bad_answer'
  | 'too_large'
  | 'cancelled';

export interface ModelErrorDetails {
  /** Of the backend's answer, if it gave one. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Default: true for `unavailable`, `timeout` and `rate_limited`. */
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

const PASSING: ReadonlySet<ModelErrorCode> = new Set(['unavailable', 'timeout', 'rate_limited']);

/** No answer, or not all of it. The message may be shown to whoever asked: it holds no secret. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** The same request may well succeed later. */
  readonly retryable: boolean;

  constructor(code: ModelErrorCode, message: string, details: ModelErrorDetails = {}) {
    const { status, retryAfterMs, retryable = PASSING.has(code), cause } = details;
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.retryable = retryable;
    if (status !== undefined) this.status = status;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

export const cancelled = (): ModelError => new ModelError('cancelled', 'The request was cancelled.');

/** Of whatever was thrown; what is not ours is a defect, and its text is not for others to read. */
export const asModelError = (error: unknown): ModelError =>
  error instanceof ModelError
    ? error
    : new ModelError('bad_answer', 'The answer of the model could not be read.', { cause: error });
