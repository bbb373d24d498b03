/** Why a request was refused: one table for answers, logs and metrics. */
const REFUSALS = {
  missing: { status: 401, code: 'AUTH_FAILED' },
  malformed: { status: 401, code: 'AUTH_FAILED' },
  invalid: { status: 401, code: 'AUTH_FAILED' },
  expired: { status: 401, code: 'AUTH_FAILED' },
  claims: { status: 401, code: 'AUTH_FAILED' },
  ticket: { status: 401, code: 'AUTH_FAILED' },
  origin: { status: 403, code: 'FORBIDDEN' },
  plain_http: { status: 403, code: 'FORBIDDEN' },
  forbidden: { status: 403, code: 'FORBIDDEN' },
  unavailable: { status: 503, code: 'UNAVAILABLE' },
} as const;

export type AuthReason = keyof typeof REFUSALS;
export type AuthStatus = (typeof REFUSALS)[AuthReason]['status'];
export type AuthCode = (typeof REFUSALS)[AuthReason]['code'];

const RETRY_AFTER_SECONDS = '5';

/** The message goes to the client: it never repeats a token, a ticket or a key. */
export class AuthError extends Error {
  override readonly name = 'AuthError';
  readonly reason: AuthReason;
  readonly status: AuthStatus;
  readonly code: AuthCode;

  constructor(reason: AuthReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.status = REFUSALS[reason].status;
    this.code = REFUSALS[reason].code;
  }

  /** What the answer carries beside its body, whatever the shape of that body is. */
  get headers(): Readonly<Record<string, string>> {
    if (this.status === 503) return { 'Retry-After': RETRY_AFTER_SECONDS };
    if (this.status === 403) return {};
    // RFC 6750: a request that carried nothing gets no error code.
    if (this.reason === 'missing') return { 'WWW-Authenticate': 'Bearer realm="sluice"' };
    const description = this.message.replace(/[^\x20-\x7e]|["\\]/g, "'");
    return {
      'WWW-Authenticate': `Bearer realm="sluice", error="invalid_token", error_description="${description}"`,
    };
  }
}
