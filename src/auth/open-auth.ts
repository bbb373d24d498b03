import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Config } from '../config/config.ts';
import { Authenticator } from './authenticate.ts';
import { MemoryFirstUse } from './first-use.ts';
import { JwksKeys } from './jwks.ts';
import { FixedKeys, type KeySource, publicKey, secretKey } from './keys.ts';
import { RedisFirstUse } from './redis-first-use.ts';
import { Tickets } from './tickets.ts';
import { Verifier } from './verifier.ts';

export interface OpenAuthOptions {
  readonly config: Pick<Config, 'auth' | 'cors' | 'jwt' | 'redis'>;
  /** The key of tokens while none is configured. */
  readonly ownSecret: string | undefined;
  /** What replicas share; absent: this process is the only one. */
  readonly shared?: { readonly sharedPrefix: string; connection(): Redis | undefined } | undefined;
  /** Refuse credentials over plain HTTP from elsewhere than this machine. */
  readonly requireTls: boolean;
  /** A sentence for the log. */
  readonly warn: (message: string) => void;
}

const keysOf = ({ config, ownSecret }: OpenAuthOptions): KeySource[] => {
  const { secret = ownSecret, publicKeys, jwksUrl } = config.jwt;
  const fixed = [...(secret === undefined ? [] : [secretKey(secret)]), ...publicKeys.map((pem) => publicKey(pem))];
  return [
    ...(fixed.length > 0 ? [new FixedKeys(fixed)] : []),
    ...(jwksUrl === undefined ? [] : [new JwksKeys({ url: jwksUrl })]),
  ];
};

const ticketKeyOf = ({ config, ownSecret, warn }: OpenAuthOptions): string | Uint8Array => {
  const key = config.auth.ticketSecret ?? config.jwt.secret ?? ownSecret;
  if (key !== undefined) return key;
  if (config.redis.url !== undefined) {
    warn('Tickets are good on the replica that issued them only: set auth.ticketSecret to share them.');
  }
  return randomBytes(32);
};

const firstUseOf = ({ shared }: OpenAuthOptions): MemoryFirstUse | RedisFirstUse => {
  if (!shared) return new MemoryFirstUse();
  return new RedisFirstUse({
    keyPrefix: shared.sharedPrefix,
    run: async (command, ...args) => {
      const redis = shared.connection();
      if (!redis) throw new Error('Redis is away.');
      return redis.call(command, ...args);
    },
  });
};

/** Who may come in, by the settings. */
export const openAuth = (
  options: OpenAuthOptions,
): { readonly authenticator: Authenticator; readonly tickets: Tickets } => {
  const { config, requireTls } = options;
  const { clockToleranceSeconds, issuer, audience } = config.jwt;
  const tickets = new Tickets({ key: ticketKeyOf(options), firstUse: firstUseOf(options) });
  const verifier = new Verifier({
    keys: keysOf(options),
    clockToleranceSeconds,
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  });
  const authenticator = new Authenticator({ verifier, tickets, requireTls, allowedOrigins: config.cors.origins });
  return { authenticator, tickets };
};
