/** The server has answered a request with a status that is not a success. Its body is not kept: it may repeat secrets. */
export class HttpStatus extends Error {
  override readonly name = 'HttpStatus';
  readonly status: number;
  constructor(status: number) {
    super(`it answered with HTTP ${status}${WORDS[status] ?? ''}`);
    this.status = status;
  }
}

const WORDS: Readonly<Record<number, string>> = {
  400: ' (bad request)',
  401: ' (not authorized: look at its headers)',
  403: ' (forbidden: look at its headers)',
  404: ' (not found: look at its url)',
  405: ' (method not allowed: look at its url and type)',
  429: ' (too many requests)',
  500: ' (internal error)',
  502: ' (bad gateway)',
  503: ' (unavailable)',
  504: ' (gateway timeout)',
};

/** Nothing has left for the server when one of these happens. */
const BEFORE_SENDING =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|DEPTH_\w+|SELF_\w+|UNABLE_TO_\w+)$/;

/** The network has failed. */
export class NetworkFailure extends Error {
  override readonly name = 'NetworkFailure';
  /** The request may have arrived. */
  readonly sent: boolean;

  constructor(error: unknown) {
    const code = codeOf(error);
    super(code === undefined ? 'the connection failed' : `the connection failed (${code})`);
    this.sent = code === undefined || !BEFORE_SENDING.test(code);
  }
}

/** fetch hides the reason in causes, and several attempts in a list. */
const codeOf = (error: unknown): string | undefined => {
  for (let at = error; typeof at === 'object' && at !== null; ) {
    const { code, errors, cause } = at as { code?: unknown; errors?: readonly unknown[]; cause?: unknown };
    if (typeof code === 'string') return code;
    at = cause ?? errors?.[0];
  }
  return undefined;
};
