import type { ConnectionOptions } from 'node:tls';
import type { RedisOptions } from 'ioredis';

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Where the shared store is. Redis 7.0 or newer. */
export interface RedisSettings {
  readonly kind: 'standalone' | 'sentinel' | 'cluster';
  /** The server, the sentinels, or some nodes of the cluster. */
  readonly nodes: readonly RedisNode[];
  /** Sentinel: the name of the master. */
  readonly masterName?: string;
  readonly username?: string;
  readonly password?: string;
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  /** Not with a cluster. */
  readonly db?: number;
  readonly tls?: ConnectionOptions;
  /** In front of every key, so that several gateways can share a server. */
  readonly keyPrefix: string;
  /** Fixed for the life of the data; more than one only spreads load over a cluster. */
  readonly partitions: number;
}

const DEFAULT_PORT = { standalone: 6379, sentinel: 26379, cluster: 6379 } as const;
const URL_FORM = /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?]+)(?:\/([^?]*))?$/;

const parseNode = (text: string, port: number): RedisNode => {
  const match = /^(\[[0-9a-fA-F:]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text);
  if (!match || Number(match[2] ?? port) > 65_535) throw new Error(`"${text}" is not a host and port`);
  return { host: (match[1] as string).replace(/^\[|\]$/g, ''), port: Number(match[2] ?? port) };
};

/**
 *     redis://[user:password@]host[:port][/db]                       one server
 *     redis+sentinel://[user:password@]host[:port],.../master[/db]   the master that the sentinels name
 *     redis+cluster://[user:password@]host[:port],...                a cluster, any of its nodes
 *
 * `rediss` in place of `redis` means TLS. Throws one sentence.
 */
export const parseRedisUrl = (
  url: string,
  more: Partial<Omit<RedisSettings, 'kind' | 'nodes'>> = {},
): RedisSettings => {
  const match = URL_FORM.exec(url);
  if (!match) {
    throw new Error(
      'A Redis URL reads redis://host:port/db, redis+sentinel://host,host/master or redis+cluster://host,host.',
    );
  }
  const [, secure, variant, login = '', hosts = '', path = ''] = match;
  const kind = (variant ?? 'standalone') as RedisSettings['kind'];
  const nodes = hosts.split(',').map((host) => parseNode(host, DEFAULT_PORT[kind]));
  const [user = '', ...secret] = login.split(':');
  const parts = path.split('/').filter(Boolean);
  const masterName = kind === 'sentinel' ? parts.shift() : undefined;
  const db = parts.shift();
  if (kind === 'sentinel' && !masterName) throw new Error('A Redis Sentinel URL ends with the name of the master.');
  if (kind === 'standalone' && nodes.length > 1) throw new Error('A redis:// URL names one server.');
  if (parts.length > 0 || (db !== undefined && !/^\d{1,5}$/.test(db)) || (db !== undefined && kind === 'cluster')) {
    throw new Error(`"/${path}" is not a database of a Redis URL.`);
  }
  return {
    kind,
    nodes,
    keyPrefix: 'sluice:',
    partitions: kind === 'cluster' ? 4 : 1,
    ...(masterName && { masterName: decodeURIComponent(masterName) }),
    ...(user && { username: decodeURIComponent(user) }),
    ...(secret.length > 0 && { password: decodeURIComponent(secret.join(':')) }),
    ...(db !== undefined && { db: Number(db) }),
    ...(secure && { tls: {} }),
    ...more,
  };
};

/** Longer than any healthy answer; a server that takes longer is away. */
export const ANSWER_MS = 2_000;

/**
 * Everything that ioredis would do by itself behind our back is off: a resent append is a doubled event, a queued one
 * appears after its caller was told that it failed, and a resubscribed channel has a hole that nobody loads.
 */
export const connectionOptions = (
  settings: RedisSettings,
  node: RedisNode | undefined,
  name: string,
): Omit<RedisOptions, 'replyMapping'> => ({
  ...(node
    ? { host: node.host, port: node.port }
    : {
        sentinels: settings.nodes.map(({ host, port }) => ({ host, port })),
        name: settings.masterName as string,
        sentinelRetryStrategy: () => null,
        ...(settings.sentinelUsername && { sentinelUsername: settings.sentinelUsername }),
        ...(settings.sentinelPassword && { sentinelPassword: settings.sentinelPassword }),
        ...(settings.tls && { sentinelTLS: settings.tls, enableTLSForSentinelMode: true }),
      }),
  ...(settings.username && { username: settings.username }),
  ...(settings.password && { password: settings.password }),
  ...(settings.db !== undefined && { db: settings.db }),
  ...(settings.tls && { tls: settings.tls }),
  connectionName: name,
  connectTimeout: ANSWER_MS,
  lazyConnect: true,
  retryStrategy: () => null,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
});
