import { SCOPES } from '../auth/principal.ts';
import { mintToken } from '../auth/token.ts';
import { loadConfig } from '../config/config.ts';
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

const secondsOf = (text: string): number => {
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  if (!match || Number(match[1]) === 0) throw new UsageError(`"${text}" is not a time such as 90s, 30m, 12h or 7d.`);
  return Number(match[1]) * (UNITS[match[2] as string] as number);
};

export const makeToken = (options: TokenOptions): string => {
  const { config } = loadConfig({ flags: options.config === undefined ? {} : { config: options.config } });
  const { secret, issuer, audience } = config.jwt;
  if (secret === undefined) {
    throw new UsageError('No key is configured to sign with: set SLUICE_JWT_SECRET, or jwt.secret in sluice.yaml.');
  }
  const unknown = options.scope.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length > 0) throw new UsageError(`Unknown scope ${unknown.join(', ')}; there are ${SCOPES.join(', ')}.`);
  const claims = {
    sub: options.sub,
    channels: { subscribe: options.subscribe, publish: options.publish },
    ...(options.scope.length > 0 && { scope: options.scope.join(' ') }),
    ...(options.agent.length > 0 && { agents: options.agent }),
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
  };
  return mintToken(secret, claims, secondsOf(options.ttl));
};
