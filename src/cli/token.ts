import { AuthError } from '../auth/auth-error.ts';
import { SCOPES } from '../auth/principal.ts';
import { mintToken } from '../auth/token.ts';
import { loadConfig } from '../config/config.ts';
import { isChannelPattern } from '../streams/channel-name.ts';
import { UsageError } from './usage-error.ts';

export interface TokenOptions {
  readonly sub: string;
  readonly subscribe: readonly string[];
  readonly publish: readonly string[];
  readonly scope: readonly string[];
  readonly agent: readonly string[];
  readonly ttl: string;
  readonly config?: string;
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

const MAX_SECONDS = 36_500 * 86_400;

const secondsOf = (text: string): number => {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (UNITS[unit] ?? 0);
  if (seconds > 0 && seconds <= MAX_SECONDS) return seconds;
  throw new UsageError(`"${text}" is not a time such as 90s, 30m, 12h or 7d, and at most 36500d.`);
};

const checkPatterns = (option: string, patterns: readonly string[]): void => {
  const wrong = patterns.filter((pattern) => !isChannelPattern(pattern)).map((pattern) => JSON.stringify(pattern));
  if (wrong.length > 0) throw new UsageError(`Not a channel pattern in ${option}: ${wrong.join(', ')}.`);
};

export const makeToken = (options: TokenOptions): string => {
  const { config } = loadConfig({ flags: options.config === undefined ? {} : { config: options.config } });
  const { secret, issuer, audience } = config.jwt;
  if (secret === undefined) {
    throw new UsageError('No key is configured to sign with: set SLUICE_JWT_SECRET, or jwt.secret in sluice.yaml.');
  }
  const unknown = options.scope.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length > 0) throw new UsageError(`Unknown scope ${unknown.join(', ')}; there are ${SCOPES.join(', ')}.`);
  checkPatterns('--subscribe', options.subscribe);
  checkPatterns('--publish', options.publish);
  const ttlSeconds = secondsOf(options.ttl);
  const claims = {
    sub: options.sub,
    channels: { subscribe: options.subscribe, publish: options.publish },
    ...(options.scope.length > 0 && { scope: options.scope.join(' ') }),
    ...(options.agent.length > 0 && { agents: options.agent }),
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
  };
  try {
    return mintToken(secret, claims, ttlSeconds);
  } catch (error) {
    throw error instanceof AuthError ? new UsageError(error.message) : error;
  }
};
