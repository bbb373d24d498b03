import { resolve } from 'node:path';
import { FORMAT_WORDS } from './formats.ts';
import { readPublicKey } from './public-key.ts';
import { choice, type Derived, integer, list, type Setting, structure, text, toggle } from './setting.ts';
import {
  BACKENDS_SCHEMA,
  type BackendSettings,
  ENVIRONMENTS_SCHEMA,
  type EnvironmentSettings,
  HTTP_TOOLS_SCHEMA,
  type HttpToolsSettings,
  resolveEnvironments,
} from './structures.ts';

const file = { expects: FORMAT_WORDS['readable-file'], schema: { format: 'readable-file' } } as const;
const absolute = (path: string, directory: string): string => resolve(directory, path);
const httpUrl = { expects: FORMAT_WORDS['http-url'], schema: { format: 'http-url' } } as const;
const anyText = { expects: 'text', schema: { maxLength: 1024 } } as const;

/** Open while nobody but the owner of this machine can come in. */
const whileOpen: Derived<boolean> = {
  words: 'true while no key is configured or the host is loopback, else false',
  from: ({ keyConfigured, loopback }) => !keyConfigured || loopback,
};

const MILLION = 1_000_000;
const DAY_SECONDS = 86_400;

/**
 * Every setting of the daemon, by its path in the file. An entry here is all that a new one needs; `npm run docs` then
 * writes it into the reference page.
 */
export const SETTINGS = {
  port: integer({
    env: 'PORT',
    default: 8080,
    min: 0,
    max: 65_535,
    zero: 'any free port',
    describe: 'The port to listen on.',
  }),
  host: text({
    env: 'HOST',
    default: '127.0.0.1',
    expects: 'a host name or an IP address',
    schema: { pattern: '^[A-Za-z0-9._:-]{1,253}$' },
    describe: 'The address to listen on; without a key it must be loopback.',
  }),
  publicUrl: text({
    ...httpUrl,
    describe: 'Where clients find the gateway, if a proxy makes that another address than the one it listens on.',
  }),
  namespace: text({
    default: 'default',
    expects: 'a name of letters, digits, ".", "_" and "-" that begins with a letter or digit',
    schema: { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' },
    describe: 'Events that no agent has sent come from agent://<namespace>/gateway.',
  }),
  trustProxy: list({
    max: 100,
    each: {
      expects: 'an IP address, a subnet such as 10.0.0.0/8, or loopback, linklocal or uniquelocal',
      schema: { format: 'proxy' },
    },
    describe: 'The proxies whose X-Forwarded-* headers are believed.',
  }),

  'redis.url': text({
    env: 'REDIS_URL',
    secret: true,
    show: (url) => url.replace(/\/\/.*@/, '//***@'),
    expects: 'redis://host:port/db, redis+sentinel://host,host/master or redis+cluster://host,host (rediss for TLS)',
    schema: { format: 'redis-url' },
    describe:
      'The Redis 7 that all replicas share; without one the store is in memory and there can be only one replica.',
  }),
  'redis.keyPrefix': text({
    default: 'sluice:',
    expects: 'at most 64 visible characters without braces',
    schema: { pattern: '^[!-z|~]{1,64}$' },
    describe: 'In front of every key, so that several gateways can share a Redis.',
  }),
  'redis.partitions': integer({
    min: 1,
    max: 16,
    describe:
      'How many sequences the channels are spread over: 4 with a cluster and 1 otherwise, fixed for the life of the data.',
  }),
  'redis.tls.ca': text({
    ...file,
    resolve: absolute,
    describe: 'PEM file of the authorities that Redis is checked against.',
  }),
  'redis.tls.cert': text({ ...file, resolve: absolute, describe: 'PEM file of the certificate that Redis is shown.' }),
  'redis.tls.key': text({ ...file, resolve: absolute, describe: 'PEM file of the key of that certificate.' }),
  'redis.sentinel.username': text({ ...anyText, describe: 'The user at the sentinels, if they ask for one.' }),
  'redis.sentinel.password': text({
    ...anyText,
    secret: true,
    describe: 'The password at the sentinels, if they ask for one.',
  }),

  'jwt.secret': text({
    secret: true,
    expects: 'text of at least 32 characters',
    schema: { minLength: 32, maxLength: 4096 },
    describe: 'Key of tokens that are signed with HS256.',
  }),
  'jwt.publicKeys': list({
    secret: true, // a private key may stand here by mistake
    max: 32,
    each: {
      expects: 'a public key for RS256 (2048 bits or more) or ES256 as PEM, or the file of one',
      schema: { format: 'public-key' },
    },
    resolve: readPublicKey,
    describe: 'Public keys of tokens that are signed with RS256 or ES256.',
  }),
  'jwt.jwksUrl': text({ ...httpUrl, describe: "Where the key set of the tokens' issuer is found." }),
  'jwt.issuer': text({ ...anyText, describe: 'The claim iss that tokens must have.' }),
  'jwt.audience': text({ ...anyText, describe: 'The claim aud that tokens must have.' }),
  'jwt.clockToleranceSeconds': integer({
    default: 5,
    min: 0,
    max: 300,
    describe: "How far the clock of the tokens' issuer may be off.",
  }),
  'auth.cookie.sameSite': choice({
    of: ['lax', 'strict', 'none'],
    default: 'lax',
    describe: 'SameSite of the session cookie; none forces Secure.',
  }),
  'auth.cookie.secure': toggle({
    default: {
      words: 'false while the host is loopback and neither publicUrl is https:// nor SameSite none, else true',
      from: ({ loopback, https, crossSite }) => crossSite || https || !loopback,
    },
    describe: 'Whether browsers send the session cookie over TLS only.',
  }),
  'auth.ticketSecret': text({
    secret: true,
    expects: 'text of at least 32 characters',
    schema: { minLength: 32, maxLength: 4096 },
    describe: 'Key of the tickets, the same on all replicas; jwt.secret if absent.',
  }),
  'cors.origins': list({
    max: 1000,
    each: { expects: 'an origin such as https://app.example.com', schema: { format: 'origin' } },
    describe: 'Origins whose pages may use the gateway, with cookies too.',
  }),

  'limits.maxConnections': integer({
    env: 'SLUICE_MAX_CONNECTIONS',
    default: 10_000,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Open event streams of one replica.',
  }),
  'limits.maxConnectionsPerPrincipal': integer({
    env: 'SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL',
    default: 100,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Open GET event streams of one principal over all replicas.',
  }),
  'limits.maxJobsPerPrincipal': integer({
    env: 'SLUICE_MAX_JOBS_PER_PRINCIPAL',
    default: 1000,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Jobs of one principal that run at the same time, over all replicas.',
  }),
  'limits.maxEventsPerSecond': integer({
    env: 'SLUICE_MAX_EVENTS_PER_SECOND',
    default: 1000,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Events per second that one connection is sent; what exceeds it comes later and is not lost.',
  }),
  'limits.maxPublishPerSecond': integer({
    env: 'SLUICE_MAX_PUBLISH_PER_SECOND',
    default: 10_000,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Events per second that one principal may publish over all replicas.',
  }),
  'limits.maxEventBytes': integer({
    env: 'SLUICE_MAX_EVENT_BYTES',
    default: 65_536,
    min: 0,
    max: 8_388_608,
    zero: 'only the limit of the whole body',
    describe: 'Bytes of a published event.',
  }),
  'limits.maxEventsPerPost': integer({
    env: 'SLUICE_MAX_EVENTS_PER_POST',
    default: 1000,
    min: 0,
    max: 100_000,
    zero: 'no limit',
    describe: 'Events that one POST may publish.',
  }),
  'limits.maxChannelsPerStream': integer({
    env: 'SLUICE_MAX_CHANNELS_PER_STREAM',
    default: 500,
    min: 0,
    max: 100_000,
    zero: 'no limit',
    describe: 'Channels and patterns that one GET may follow.',
  }),

  'limits.slowReaderSeconds': integer({
    default: 30,
    min: 1,
    max: 3600,
    describe: 'How long a stream may take nothing before it is cut; its client then resumes by its id.',
  }),

  'buffer.events': integer({
    default: 100,
    min: 0,
    max: MILLION,
    zero: 'none',
    describe: 'Events that a channel keeps for those who come back, where no manifest says otherwise.',
  }),
  'buffer.seconds': integer({
    default: 300,
    min: 1,
    max: 30 * DAY_SECONDS,
    describe: 'How long a channel keeps them.',
  }),
  'channels.allowUndeclared': toggle({
    default: whileOpen,
    describe: 'Whether channels may be used that no manifest declares.',
  }),
  'manifests.paths': list({
    env: 'SLUICE_MANIFESTS',
    max: 100,
    each: { expects: 'a folder or a file', schema: { maxLength: 4096 } },
    resolve: absolute,
    describe: 'Folders and files of OSSA manifests; without any, the folder "manifests" if there is one.',
  }),
  'manifests.schemas': text({
    expects: 'a folder',
    schema: { maxLength: 4096 },
    resolve: absolute,
    describe: 'A folder with official OSSA schemas (ossa-0.3.2.schema.json) that manifests are compared with.',
  }),
  'manifests.strict': toggle({
    default: false,
    describe: 'Whether what an official schema does not allow is an error; otherwise it is a warning.',
  }),
  'ossa.heartbeatSeconds': integer({
    default: 30,
    min: 1,
    max: 3600,
    describe: 'Seconds between the heartbeats of an OSSA stream, where no manifest says otherwise.',
  }),
  'ossa.retryMs': integer({
    default: 3000,
    min: 1,
    max: 3_600_000,
    describe:
      'Milliseconds after which a client that lost an OSSA stream comes back, where no manifest says otherwise.',
  }),
  'ors.public': toggle({ default: whileOpen, describe: 'Whether the ORS routes need no token.' }),
  'ors.prefix': text({
    default: '/',
    expects: 'an absolute path without a slash at its end, such as /ors',
    schema: { pattern: '^(/|(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$', maxLength: 255 },
    describe: 'Under which path the ORS routes are found.',
  }),
  'ors.environments': structure<readonly EnvironmentSettings[]>({
    default: [],
    expects: 'a list of environments, each with module, mcp or upstream',
    schema: ENVIRONMENTS_SCHEMA,
    resolve: resolveEnvironments,
    describe: 'The environments, of which the first is the default one; docs/ENVIRONMENTS.md describes their parts.',
  }),
  'ors.checkEnv': toggle({
    default: false,
    describe: 'Whether the environment in the path must be the one of the session.',
  }),
  'ors.idleSeconds': integer({
    default: 900,
    min: 1,
    max: 30 * DAY_SECONDS,
    describe: 'How long a session lives without a request; a call that runs keeps it alive.',
  }),
  'ors.setupWaitSeconds': integer({
    default: 900,
    min: 1,
    max: DAY_SECONDS,
    describe: 'How long a request waits for the setup of its session.',
  }),
  'ors.lingerSeconds': integer({
    default: 60,
    min: 0,
    max: 7 * DAY_SECONDS,
    describe: 'How long the result of a call can be fetched again by its task_id.',
  }),
  'ors.maxCallsPerSession': integer({
    default: 16,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Calls of one session that run at the same time.',
  }),
  'ors.maxSessionsPerPrincipal': integer({
    default: 10_000,
    min: 0,
    max: MILLION,
    zero: 'no limit',
    describe: 'Sessions of one principal over all replicas.',
  }),
  'ors.buildSha': text({
    ...anyText,
    default: 'unknown',
    describe: 'What /version gives as build_sha: the commit of a build, for trainers that write it down.',
  }),
  'ors.episodeLog': text({
    expects: 'the name of a file, or redis',
    schema: { maxLength: 4096 },
    resolve: (name, directory) => (name === 'redis' ? name : absolute(name, directory)),
    describe:
      'Where the calls, rewards and ends of all episodes are written: lines of JSON in a file, or the stream ors:episodes in Redis. Nowhere if absent.',
  }),
  'metrics.public': toggle({ default: whileOpen, describe: 'Whether /metrics needs no token.' }),

  'mcp.servers': text({
    ...anyText,
    env: 'MCP_SERVERS_CONFIG_PATH',
    expects: 'the name of a file',
    resolve: absolute,
    describe: 'The file that lists MCP servers under "mcpServers"; one that does not exist is a warning.',
  }),
  'mcp.refreshSeconds': integer({
    env: 'MCP_TOOL_REFRESH_INTERVAL',
    default: 10,
    min: 1,
    max: DAY_SECONDS,
    describe:
      'Seconds after which the tools of an MCP server are listed again, also if it has not said that they changed.',
  }),
  'tools.http': structure<HttpToolsSettings>({
    default: {},
    expects: 'HTTP tools by name',
    schema: HTTP_TOOLS_SCHEMA,
    describe: 'HTTP endpoints as tools; docs/TOOLS.md describes their parts.',
  }),
  'tools.modules': list({
    max: 100,
    each: file,
    resolve: absolute,
    describe: 'JavaScript files that export tools.',
  }),
  'models.baseUrl': text({
    ...httpUrl,
    env: 'OPENAI_BASE_URL_INTERNAL',
    describe:
      'An OpenAI-compatible backend for every model that no other one names. With none at all the demo model answers.',
  }),
  'models.apiKey': text({
    ...anyText,
    env: 'OPENAI_API_KEY',
    secret: true,
    describe: 'The key for that backend.',
  }),
  'models.backends': structure<readonly BackendSettings[]>({
    default: [],
    expects: 'a list of backends',
    schema: BACKENDS_SCHEMA,
    describe: 'More backends, each with the models it serves; docs/MODELS.md describes their parts.',
  }),
  'models.streamTimeoutSeconds': integer({
    env: 'STREAM_TIMEOUT',
    default: 120,
    min: 1,
    max: DAY_SECONDS,
    describe: 'Seconds of silence after which a backend is given up.',
  }),
  'models.demoWordsPerSecond': integer({
    default: 40,
    min: 0,
    max: 100_000,
    zero: 'all at once',
    describe: 'How fast the demo model speaks.',
  }),
  'shutdown.delaySeconds': integer({
    default: 0,
    min: 0,
    max: 300,
    zero: 'none',
    describe:
      'Seconds between the signal to stop and the end of listening, in which the replica says that it is not ready.',
  }),
  'shutdown.graceSeconds': integer({
    default: 20,
    min: 0,
    max: 3600,
    zero: 'none',
    describe: 'Seconds that open streams and requests then have to end.',
  }),
  'log.level': choice({
    env: 'LOG_LEVEL',
    of: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    describe: 'The least important messages that are logged.',
  }),
  'log.format': choice({
    of: ['json', 'pretty'],
    default: {
      words: 'pretty while no key is configured, else json',
      from: ({ keyConfigured }) => (keyConfigured ? 'json' : 'pretty'),
    },
    describe: 'One JSON object per line, or lines for people.',
  }),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

export type SettingPath = keyof typeof SETTINGS;

export const SETTING_PATHS = Object.keys(SETTINGS) as readonly SettingPath[];

export const isSettingPath = (path: string): path is SettingPath => Object.hasOwn(SETTINGS, path);

/** The entry without its own type, for code that treats all alike. */
export const settingAt = (path: SettingPath): Setting<unknown> => SETTINGS[path] as Setting<unknown>;

const words = (path: string): string[] =>
  path
    .replace(/([a-z])([A-Z])/g, '$1.$2')
    .toLowerCase()
    .split('.');

export const variableOf = (path: SettingPath): string | undefined => {
  const { env, structured } = settingAt(path);
  return structured ? undefined : (env ?? `SLUICE_${words(path).join('_').toUpperCase()}`);
};

export const flagOf = (path: SettingPath): string | undefined => {
  const { secret, structured } = settingAt(path);
  return secret || structured ? undefined : `--${words(path).join('-')}`;
};

/** What a value that has passed the check, or the default, is like. */
type ValueAt<P extends SettingPath> = (typeof SETTINGS)[P] extends Setting<infer T> ? T : never;

type Head<P> = P extends `${infer H}.${string}` ? H : P;
type Tail<P, H extends string> = P extends `${H}.${infer R}` ? R : never;
type Tree<Prefix extends string, P extends string> = {
  readonly [H in Head<P> & string]: [Tail<P, H>] extends [never]
    ? `${Prefix}${H}` extends SettingPath
      ? ValueAt<`${Prefix}${H}`>
      : never
    : Tree<`${Prefix}${H}.`, Tail<P, H>>;
};

/** All settings as the file nests them. */
export type SettingValues = Tree<'', SettingPath>;
