import { isChannelPattern, matchesPattern } from '../streams/channel-name.ts';
import { AuthError } from './auth-error.ts';

export const SCOPES = ['capabilities', 'ors', 'agents', 'responses', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** Who is asking, and what the token lets them do. */
export interface Principal {
  readonly sub: string;
  /** Our own, and whatever else stands there: manifests may ask for words that we do not know. */
  readonly scopes: ReadonlySet<string>;
  /** Channel patterns. */
  readonly subscribe: readonly string[];
  readonly publish: readonly string[];
  /** Agent URIs that this principal may speak for. */
  readonly agents: readonly string[];
  /** Milliseconds; a stream ends when its token does. */
  readonly expiresAt: number;
  /** Set by a read-only ticket: the one path that may be read. Scopes and channels are empty then. */
  readonly boundTo?: string;
}

/** The claims as they stand in a token. */
export interface Claims {
  readonly sub: string;
  /** Seconds. */
  readonly exp: number;
  readonly scope?: string;
  readonly channels?: { readonly subscribe?: readonly string[]; readonly publish?: readonly string[] };
  readonly agents?: readonly string[];
}

const MAX_SUB = 255;
const MAX_ENTRIES = 1_000;
const MAX_AGENT_URI = 512;
/** The end of the year 9999: no date is longer, and no millisecond is lost on the way through seconds. */
const MAX_EXP = 253_402_300_799;
const AGENT_URI = /^[a-z][a-z0-9+.-]*:\/\/[^\s\p{Cc}]+$/u;

const refuse = (message: string): never => {
  throw new AuthError('claims', message);
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const stringsOf = (value: unknown, claim: string, accepts: (text: string) => boolean, what: string): string[] => {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return refuse(`The claim "${claim}" must be a list.`);
  if (value.length > MAX_ENTRIES) return refuse(`The claim "${claim}" has more than ${MAX_ENTRIES} entries.`);
  return value.map((entry: unknown, i) =>
    typeof entry === 'string' && accepts(entry) ? entry : refuse(`"${claim}[${i}]" is not ${what}.`),
  );
};

const subOf = (sub: unknown): string => {
  if (typeof sub !== 'string' || sub === '') return refuse('The claim "sub" must be a string that is not empty.');
  if (sub.length > MAX_SUB) return refuse(`The claim "sub" is longer than ${MAX_SUB} characters.`);
  // It becomes a part of channel names, store keys and log lines.
  if (/\p{Cc}/u.test(sub)) return refuse('The claim "sub" has control characters.');
  return sub;
};

const scopesOf = (scope: unknown): ReadonlySet<string> => {
  if (scope === undefined) return new Set();
  if (typeof scope !== 'string') return refuse('The claim "scope" must be a string of words with spaces between them.');
  const words = new Set(scope.split(' ').filter((word) => word !== ''));
  return words.size > MAX_ENTRIES ? refuse(`The claim "scope" has more than ${MAX_ENTRIES} words.`) : words;
};

const expiryOf = (exp: unknown): number => {
  if (typeof exp !== 'number' || !(exp > 0 && exp <= MAX_EXP)) {
    return refuse('The claim "exp" must be a time in seconds.');
  }
  return Math.round(exp * 1_000);
};

/** Throws an `AuthError` that names the claim: a token that is half understood would grant the wrong half. */
export const parsePrincipal = (claims: unknown): Principal => {
  if (!isRecord(claims)) return refuse('The token carries no claims.');
  const channels = claims.channels ?? {};
  if (!isRecord(channels)) return refuse('The claim "channels" must be an object with "subscribe" and "publish".');
  const isAgentUri = (text: string): boolean => text.length <= MAX_AGENT_URI && AGENT_URI.test(text);
  return {
    sub: subOf(claims.sub),
    scopes: scopesOf(claims.scope),
    subscribe: stringsOf(channels.subscribe, 'channels.subscribe', isChannelPattern, 'a channel pattern'),
    publish: stringsOf(channels.publish, 'channels.publish', isChannelPattern, 'a channel pattern'),
    agents: stringsOf(claims.agents, 'agents', isAgentUri, 'an agent URI'),
    expiresAt: expiryOf(claims.exp),
  };
};

/** The other way round: what `parsePrincipal` reads back as the same principal. */
export const claimsOf = (principal: Principal): Claims => ({
  sub: principal.sub,
  exp: principal.expiresAt / 1_000,
  ...(principal.scopes.size > 0 && { scope: [...principal.scopes].join(' ') }),
  ...(principal.subscribe.length + principal.publish.length > 0 && {
    channels: { subscribe: principal.subscribe, publish: principal.publish },
  }),
  ...(principal.agents.length > 0 && { agents: principal.agents }),
});

const anyMatches = (patterns: readonly string[], channel: string): boolean =>
  patterns.some((pattern) => matchesPattern(pattern, channel));

/** `channel` is a name, never a pattern. */
export const maySubscribe = (principal: Principal, channel: string): boolean =>
  anyMatches(principal.subscribe, channel);

export const mayPublish = (principal: Principal, channel: string): boolean => anyMatches(principal.publish, channel);

export const speaksFor = (principal: Principal, agentUri: string): boolean => principal.agents.includes(agentUri);
