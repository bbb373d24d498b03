import { AuthError } from '../auth/auth-error.ts';
import { LogError } from '../streams/log.ts';

/**
 * Why a request was refused, in the words of all protocols; each group of routes writes it in its own shape.
 * The README lists them.
 */
export const PROBLEMS = {
  PROTOCOL_ERROR: 400,
  AUTH_FAILED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CAPABILITY_NOT_FOUND: 404,
  CONFLICT: 409,
  GONE: 410,
  PAYLOAD_TOO_LARGE: 413,
  RATE_LIMIT_EXCEEDED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const;
export type ProblemCode = keyof typeof PROBLEMS;

export interface ProblemOptions {
  /** What exactly was wrong, for programs. */
  readonly details?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly status: number;
  readonly details: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, message: string, { details, headers = {}, cause }: ProblemOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = PROBLEMS[code];
    this.details = details;
    this.headers = headers;
  }
}

/** Somebody's text as it may stand in a message: in quotes, and not for longer than it helps. */
export const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** When the store is away: it usually comes back within seconds. */
const RETRY_SOON = { 'Retry-After': '1' };

interface BodyError extends Error {
  /** As body-parser names them; absent when the body could not be unpacked. */
  readonly type?: string;
  readonly status: number;
}

/** Only what it blames on the client: a body that broke off or cannot be unpacked among it. */
const isBodyError = (error: unknown): error is BodyError => {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  return typeof status === 'number' && status >= 400 && status < 500;
};

/** The parser repeats a part of the body, which may be somebody's secret. */
const REPEATED = /, (?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/s;

const problemOfBody = (error: BodyError): Problem => {
  if (error.type === 'entity.too.large') return new Problem('PAYLOAD_TOO_LARGE', 'The body is too large.');
  if (error.type === 'entity.parse.failed') {
    return new Problem('PROTOCOL_ERROR', `The body is not JSON: ${error.message.replace(REPEATED, '')}.`);
  }
  if (error.type === undefined) {
    return new Problem('PROTOCOL_ERROR', 'The body is not what its Content-Encoding says.', { cause: error });
  }
  return new Problem('PROTOCOL_ERROR', `The body cannot be read: ${error.message}.`);
};

/** What an error means to the one who asked. Anything unexpected is an internal error that says nothing about itself. */
export const problemOf = (error: unknown): Problem => {
  if (error instanceof Problem) return error;
  if (error instanceof AuthError) return new Problem(error.code, error.message, { headers: error.headers });
  if (error instanceof URIError) return new Problem('PROTOCOL_ERROR', 'The path is not properly encoded.');
  if (isBodyError(error)) return problemOfBody(error);
  if (error instanceof LogError) {
    return error.code === 'conflict'
      ? new Problem('CONFLICT', error.message)
      : new Problem('UNAVAILABLE', error.message, { headers: RETRY_SOON, cause: error });
  }
  return new Problem('INTERNAL_ERROR', 'Something went wrong in the gateway.', { cause: error });
};
