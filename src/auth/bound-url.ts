import { createHash } from 'node:crypto';
import { parametersOf } from './credentials.ts';

/** These change from one opening of the same URL to the next. */
const FREE_PARAMETERS: ReadonlySet<string> = new Set(['ticket', 'lastEventId']);
const MAX_LENGTH = 4_096;
const NOWHERE = 'http://gateway.invalid';

/** The path and the query of a URL that somebody wants to open, spelled as a browser will send it. */
export interface WantedUrl {
  /** Empty, or scheme, host and port as they were given. */
  readonly origin: string;
  /** Path and query, as in a request line. */
  readonly target: string;
}

/** Throws one sentence. Takes `/path?query`, or the same with http(s) and a host in front of it. */
export const parseWantedUrl = (text: unknown): WantedUrl => {
  if (typeof text !== 'string' || text === '') throw new Error('"url" must be a string that is not empty.');
  if (text.length > MAX_LENGTH) throw new Error(`"url" is longer than ${MAX_LENGTH} characters.`);
  // A browser would turn these into other characters or drop them, and then open something else than was asked for.
  if (/[\s\p{Cc}\\]/u.test(text)) throw new Error('"url" has a space, a backslash or a control character.');
  if (text.includes('#')) throw new Error('"url" has a "#": write it as %23, or as ** in a channel pattern.');
  const relative = /^\/(?!\/)/.test(text);
  if (!relative && !/^https?:\/\//i.test(text)) throw new Error('"url" must start with "/" or with http(s)://.');
  if (!URL.canParse(text, NOWHERE)) throw new Error('"url" is not a URL.');
  const url = new URL(text, NOWHERE);
  if (url.username || url.password) throw new Error('"url" must not carry a user or a password.');
  if (url.searchParams.has('token')) throw new Error('"url" must not carry a token: the ticket takes its place.');
  return { origin: relative ? '' : url.origin, target: url.pathname + url.search };
};

const nameOf = (pair: string): string => [...new URLSearchParams(pair).keys()][0] ?? '';

/** The URL to open, with the ticket behind everything else. */
export const withTicket = ({ origin, target }: WantedUrl, ticket: string): string => {
  const [path = '', query = ''] = target.split(/\?(.*)/s, 2);
  const pairs = query.split('&').filter((pair) => pair !== '' && nameOf(pair) !== 'ticket');
  return `${origin}${path}?${[...pairs, `ticket=${ticket}`].join('&')}`;
};

export const pathOf = (target: string): string => target.split('?', 1)[0] as string;

/**
 * Two targets have the same fingerprint if they have the same path, byte for byte, and the same parameters in the same
 * order. Parameters are compared decoded, since `a,b` and `a%2Cb` are the same to whoever reads them; paths are not,
 * since a router may tell `/a/b` from `/a%2Fb`.
 */
export const fingerprintOf = (target: string): string => {
  const pairs = [...parametersOf(target)].filter(([name]) => !FREE_PARAMETERS.has(name));
  return createHash('sha256')
    .update(JSON.stringify([pathOf(target), pairs]))
    .digest('base64url');
};
