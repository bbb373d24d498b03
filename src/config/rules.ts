import type { SettingPath, SettingValues } from './settings.ts';

/** Where a value comes from; undefined for a default. */
export type Origin = (path: SettingPath) => string | undefined;

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

export const listensOnLoopback = ({ host }: Pick<SettingValues, 'host'>): boolean => isLoopback(host.toLowerCase());

export const hasKey = ({ jwt }: Pick<SettingValues, 'jwt'>): boolean =>
  jwt.secret !== undefined || jwt.publicKeys.length > 0 || jwt.jwksUrl !== undefined;

interface Rule {
  /** Not judged while one of these is wrong by itself. */
  readonly about: readonly SettingPath[];
  /** One sentence, or undefined. */
  readonly broken: (values: SettingValues, origin: Origin) => string | undefined;
}

const from = (where: string | undefined): string => (where ? ` (${where})` : '');

const TLS_FILES = ['redis.tls.ca', 'redis.tls.cert', 'redis.tls.key'] as const;

/** What no value alone can show. */
const RULES: readonly Rule[] = [
  {
    about: ['host', 'jwt.secret', 'jwt.publicKeys', 'jwt.jwksUrl'],
    broken: (values, origin) =>
      hasKey(values) || listensOnLoopback(values)
        ? undefined
        : `host must be a loopback address such as 127.0.0.1 while none of jwt.secret, jwt.publicKeys and jwt.jwksUrl is set, not "${values.host}"${from(origin('host'))}.`,
  },
  {
    about: ['auth.cookie.sameSite', 'auth.cookie.secure'],
    broken: ({ auth }, origin) =>
      auth.cookie.sameSite === 'none' && !auth.cookie.secure
        ? `auth.cookie.secure must be true while auth.cookie.sameSite is none${from(origin('auth.cookie.secure'))}.`
        : undefined,
  },
  {
    about: ['redis.url', ...TLS_FILES],
    broken: ({ redis }, origin) => {
      const file = TLS_FILES.find(origin);
      return file && !redis.url?.startsWith('rediss')
        ? `${file} must not be set while redis.url does not begin with rediss${from(origin(file))}.`
        : undefined;
    },
  },
  {
    about: ['redis.url', 'ors.episodeLog'],
    broken: ({ redis, ors }, origin) =>
      ors.episodeLog === 'redis' && redis.url === undefined
        ? `ors.episodeLog must be the name of a file while redis.url is not set${from(origin('ors.episodeLog'))}.`
        : undefined,
  },
  {
    about: TLS_FILES,
    broken: ({ redis }, origin) => {
      if ((redis.tls.cert === undefined) === (redis.tls.key === undefined)) return undefined;
      const [set, missing] = redis.tls.cert ? (['cert', 'key'] as const) : (['key', 'cert'] as const);
      return `redis.tls.${missing} must be set as well when redis.tls.${set} is${from(origin(`redis.tls.${set}`))}.`;
    },
  },
];

export const brokenRules = (values: SettingValues, origin: Origin, wrong: ReadonlySet<SettingPath>): string[] =>
  RULES.filter(({ about }) => !about.some((path) => wrong.has(path))).flatMap(
    ({ broken }) => broken(values, origin) ?? [],
  );
