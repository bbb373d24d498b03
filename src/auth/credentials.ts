import type { IncomingHttpHeaders } from 'node:http';
import { parseCookie } from 'cookie';
import { AuthError } from './auth-error.ts';

export const SESSION_COOKIE = 'session';

/** Where a credential may stand, in the order in which they are looked at. Only the first one present is judged. */
export const SOURCES = ['authorization', 'x-api-key', 'apikey', 'query', 'ticket', 'cookie'] as const;
export type Source = (typeof SOURCES)[number];

export interface Credential {
  readonly token: string;
  readonly source: Source;
}

/** The part of a request that carries credentials. */
export interface CredentialCarrier {
  readonly headers: IncomingHttpHeaders;
  readonly originalUrl: string;
}

export interface CredentialOptions {
  /**
   * Whatever is not a JWT at all counts as absent. For public routes whose clients send the key of another service; a
   * bad JWT is judged there too.
   */
  readonly ignoreOpaque?: boolean;
}

const MAX_LENGTH = 16_384; // as much as node takes for all headers together
const TOKEN = /^[\w.~+/-]+=*$/;
const BEARER = /^bearer +(\S+)$/i;

/** The parameters as they stand in the request line, independent of the query parser that the app has. */
export const parametersOf = (originalUrl: string): URLSearchParams => {
  const mark = originalUrl.indexOf('?');
  return new URLSearchParams(mark < 0 ? '' : originalUrl.slice(mark + 1));
};

/** Undefined: the parameter is absent. Two of a kind are as malformed as none. */
const parameterOf = (parameters: URLSearchParams, name: string): string | undefined => {
  const values = parameters.getAll(name);
  return values.length > 1 ? '' : values[0];
};

const headerOf = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? '' : value;
};

/** The cookie's value, whatever it is. */
export const sessionCookieOf = ({ cookie }: IncomingHttpHeaders): string | undefined =>
  cookie === undefined ? undefined : parseCookie(cookie)[SESSION_COOKIE];

/** The text at each source; an empty one stands for "present but malformed". */
const readers: Readonly<Record<Source, (request: CredentialCarrier) => string | undefined>> = {
  authorization: ({ headers }) => {
    const value = headers.authorization;
    return value === undefined ? undefined : (BEARER.exec(value)?.[1] ?? '');
  },
  'x-api-key': ({ headers }) => headerOf(headers, 'x-api-key'),
  apikey: ({ headers }) => headerOf(headers, 'apikey'),
  query: ({ originalUrl }) => parameterOf(parametersOf(originalUrl), 'token'),
  ticket: ({ originalUrl }) => parameterOf(parametersOf(originalUrl), 'ticket'),
  cookie: ({ headers }) => sessionCookieOf(headers),
};

/** Whether the text starts like a JWT: a JSON object in base64url. A damaged JWT is still a JWT. */
export const looksLikeJwt = (text: string): boolean => {
  const [head = ''] = text.split('.', 1);
  try {
    const header: unknown = JSON.parse(Buffer.from(head, 'base64url').toString('utf8'));
    return typeof header === 'object' && header !== null && !Array.isArray(header);
  } catch {
    return false;
  }
};

const NAMES: Readonly<Record<Source, string>> = {
  authorization: 'The Authorization header',
  'x-api-key': 'The X-API-Key header',
  apikey: 'The apikey header',
  query: 'The parameter "token"',
  ticket: 'The parameter "ticket"',
  cookie: 'The session cookie',
};

/** Undefined if the request carries none. A malformed one is refused, never skipped for the next. */
export const findCredential = (
  request: CredentialCarrier,
  { ignoreOpaque = false }: CredentialOptions = {},
): Credential | undefined => {
  for (const source of SOURCES) {
    const token = readers[source](request);
    if (token === undefined) continue;
    if (ignoreOpaque && source !== 'ticket' && !looksLikeJwt(token)) continue;
    if (token.length > MAX_LENGTH || !TOKEN.test(token)) {
      const wanted = source === 'authorization' ? 'is not "Bearer <token>"' : 'does not hold one token';
      throw new AuthError('malformed', `${NAMES[source]} ${wanted}.`);
    }
    return { token, source };
  }
  return undefined;
};
