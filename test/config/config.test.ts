import { type Config, type ConfigSources, loadConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';

const SECRET = 'a-secret-of-at-least-32-characters';

let directory: TestDirectory;
beforeEach(() => {
  directory = makeDirectory();
});
afterEach(() => directory.remove());

const load = (sources: ConfigSources = {}): Config =>
  loadConfig({ env: {}, directory: directory.path, ...sources }).config;

const problemsOf = (sources: ConfigSources = {}): readonly string[] => {
  try {
    load(sources);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe('what is used', () => {
  it('needs no settings at all', () => {
    const config = load();
    expect(config.port).toBe(8080);
    expect(config.host).toBe('127.0.0.1');
    expect(config.redis.url).toBeUndefined();
    expect(config.limits).toEqual({
      maxConnections: 10_000,
      maxConnectionsPerPrincipal: 100,
      maxJobsPerPrincipal: 1000,
      maxEventsPerSecond: 1000,
      maxPublishPerSecond: 10_000,
      maxEventBytes: 65_536,
      maxEventsPerPost: 1000,
      slowReaderSeconds: 30,
      maxChannelsPerStream: 500,
    });
    expect(config.buffer).toEqual({ events: 100, seconds: 300 });
    expect(config.ossa).toEqual({ heartbeatSeconds: 30, retryMs: 3000 });
  });

  it('takes a flag before a variable, a variable before the file, the file before the default', () => {
    directory.write('sluice.yaml', 'port: 1001\nnamespace: of-file\nlog: {level: warn}\n');
    const config = load({ env: { PORT: '1002', SLUICE_NAMESPACE: 'of-variable' }, flags: { port: '1003' } });
    expect(config.port).toBe(1003);
    expect(config.namespace).toBe('of-variable');
    expect(config.log.level).toBe('warn');
    expect(config.log.format).toBe('pretty');
  });

  it('reads every type from the environment', () => {
    const config = load({
      env: {
        SLUICE_MAX_CONNECTIONS: '0',
        SLUICE_CORS_ORIGINS: 'https://a.example, http://localhost:3000,',
        SLUICE_ORS_PUBLIC: 'False',
        LOG_LEVEL: 'debug',
        SLUICE_JWT_SECRET: SECRET,
      },
    });
    expect(config.limits.maxConnections).toBe(0);
    expect(config.cors.origins).toEqual(['https://a.example', 'http://localhost:3000']);
    expect(config.ors.public).toBe(false);
    expect(config.log.level).toBe('debug');
    expect(config.jwt.secret).toBe(SECRET);
  });

  it('takes an empty variable for one that is not set', () => {
    expect(load({ env: { PORT: '', SLUICE_JWT_SECRET: ' ' } })).toMatchObject({ port: 8080, keyConfigured: false });
  });

  it('takes flags by the names that a command line parser gives them, and leaves the others alone', () => {
    const config = load({ flags: { redisKeyPrefix: 'mine:', limitsMaxConnections: '5', verbose: true } });
    expect(config.redis.keyPrefix).toBe('mine:');
    expect(config.limits.maxConnections).toBe(5);
  });

  it('takes no secret from a flag', () => {
    expect(load({ flags: { jwtSecret: SECRET } }).keyConfigured).toBe(false);
  });

  it('is frozen through and through', () => {
    const config = load({ env: { SLUICE_CORS_ORIGINS: 'https://a.example' } });
    const open = (value: unknown): boolean =>
      typeof value === 'object' && value !== null && (!Object.isFrozen(value) || Object.values(value).some(open));
    expect(open(config)).toBe(false);
  });

  it('has the types of the schema', () => {
    const { port, redis, log, cors }: Config = load();
    const typed: [number, string | undefined, 'json' | 'pretty', readonly string[]] = [
      port,
      redis.url,
      log.format,
      cors.origins,
    ];
    // @ts-expect-error: a level is one of seven words, not any text
    const level: 'loud' = log.level;
    expect([...typed, level]).toHaveLength(5);
  });
});

describe('the file', () => {
  it('may be missing when nobody names it', () => {
    expect(problemsOf()).toEqual([]);
  });

  it('must be there when it is named', () => {
    expect(problemsOf({ env: { SLUICE_CONFIG: 'other.yaml' } })).toEqual([
      'The settings file other.yaml (environment variable SLUICE_CONFIG) does not exist.',
    ]);
    expect(problemsOf({ flags: { config: 'third.yaml' } })).toEqual([
      'The settings file third.yaml (flag --config) does not exist.',
    ]);
  });

  it('is the named one, and not the other', () => {
    directory.write('sluice.yaml', 'port: 1\n');
    directory.write('other.yaml', 'port: 2\n');
    expect(load({ env: { SLUICE_CONFIG: 'other.yaml' } }).port).toBe(2);
  });

  it('may be empty, and so may a heading', () => {
    directory.write('sluice.yaml', '# nothing yet\n');
    expect(load().port).toBe(8080);
    directory.write('sluice.yaml', 'redis:\n  # url: redis://localhost\nport: 9\n');
    expect(load().port).toBe(9);
  });

  it('may use anchors, with the place of what they stand for', () => {
    directory.write('sluice.yaml', 'buffer: {events: &n 7}\nlimits: {maxConnections: *n, maxEventsPerPost: *n}\n');
    expect(load().limits).toMatchObject({ maxConnections: 7, maxEventsPerPost: 7 });
  });

  it.each([
    ['port: 80\nport: 81\n', ['Map keys must be unique (sluice.yaml, line 2, column 1).']],
    ['- port\n', ['The file must be settings by name (sluice.yaml, line 1, column 1).']],
    ['redis: localhost\n', ['redis must be settings by name (sluice.yaml, line 1, column 8).']],
    ['prot: 80\n', ['There is no setting prot (sluice.yaml, line 1, column 1); did you mean port?']],
    [
      'redis:\n  ulr: redis://h\n',
      ['There is no setting redis.ulr (sluice.yaml, line 2, column 3); did you mean redis.url?'],
    ],
    ['__proto__: {port: 1}\n', ['There is no setting __proto__ (sluice.yaml, line 1, column 1).']],
    ['constructor: 1\n', ['There is no setting constructor (sluice.yaml, line 1, column 1).']],
    [
      'port:\n',
      ['port must be a whole number from 0 to 65535 (0: any free port), not null (sluice.yaml, line 1, column 6).'],
    ],
  ])('is refused with the line and column: %j', (content, problems) => {
    directory.write('sluice.yaml', content);
    expect(problemsOf()).toEqual(problems);
  });
});

describe('a wrong setting', () => {
  it('is named with its source, together with all others', () => {
    directory.write(
      'sluice.yaml',
      'port: many\nlog:\n  level: loud\ncors:\n  origins:\n    - https://a.example\n    - a.example\n',
    );
    expect(
      problemsOf({ env: { SLUICE_BUFFER_SECONDS: '5m', SLUICE_ORS_PUBLIC: 'maybe' }, flags: { port: '70000' } }),
    ).toEqual([
      'port must be a whole number from 0 to 65535 (0: any free port), not 70000 (flag --port).',
      'buffer.seconds must be a whole number from 1 to 2592000, not "5m" (environment variable SLUICE_BUFFER_SECONDS).',
      'ors.public must be true or false, not "maybe" (environment variable SLUICE_ORS_PUBLIC).',
      'port must be a whole number from 0 to 65535 (0: any free port), not "many" (sluice.yaml, line 1, column 7).',
      'cors.origins[1] must be an origin such as https://app.example.com, not "a.example" (sluice.yaml, line 7, column 7).',
      'log.level must be one of fatal, error, warn, info, debug, trace, silent, not "loud" (sluice.yaml, line 3, column 10).',
    ]);
  });

  it.each([
    ['port', '-1'],
    ['port', '80.5'],
    ['port', '0x50'],
    ['port', 'Infinity'],
    ['limitsMaxConnections', '-1'],
    ['bufferSeconds', '0'],
    ['corsOrigins', '*'],
    ['corsOrigins', 'https://a.example/'],
    ['corsOrigins', 'https://A.example'],
    ['publicUrl', 'ftp://a.example'],
    ['publicUrl', 'https://user:password@a.example'],
    ['trustProxy', 'proxy.example'],
    ['trustProxy', '10.0.0.0/33'],
    ['jwtJwksUrl', '/keys'],
    ['redisTlsCa', 'no-such-file.pem'],
    ['redisPartitions', '0'],
    ['redisKeyPrefix', '{tag}'],
    ['namespace', 'a/b'],
  ])('is refused: %s = %s', (flag, value) => {
    expect(problemsOf({ flags: { [flag]: value } })).toHaveLength(1);
  });

  it.each([
    ['trustProxy', '10.0.0.0/8,::1/128,loopback,192.168.0.1'],
    ['corsOrigins', 'https://a.example:8443'],
    ['publicUrl', 'https://a.example/sluice'],
    ['port', '0'],
  ])('is not: %s = %s', (flag, value) => {
    expect(problemsOf({ flags: { [flag]: value } })).toEqual([]);
  });

  it('is told together with what is wrong only beside another', () => {
    expect(problemsOf({ env: { PORT: 'x', HOST: '0.0.0.0' } }).map((problem) => problem.split(' ')[0])).toEqual([
      'port',
      'host',
    ]);
  });

  it('is not blamed on another setting', () => {
    const env = { HOST: '0.0.0.0', SLUICE_JWT_SECRET: 'short' };
    expect(problemsOf({ env }).map((problem) => problem.split(' ')[0])).toEqual(['jwt.secret']);
    directory.write('sluice.yaml', 'jwt: {secert: x}\n');
    expect(problemsOf({ env: { HOST: '0.0.0.0' } })).toEqual([
      'There is no setting jwt.secert (sluice.yaml, line 1, column 7); did you mean jwt.secret?',
    ]);
  });

  it('is never shown if it is a secret', () => {
    directory.write('sluice.yaml', 'jwt: {secret: hunter2}\n');
    const problems = problemsOf({ env: { REDIS_URL: 'redis://user:hunter2@/x', SLUICE_JWT_PUBLIC_KEYS: 'hunter2' } });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toContain('hunter2');
    expect(problems).toContain('jwt.secret must be text of at least 32 characters (sluice.yaml, line 1, column 15).');
  });
});

describe('without a key', () => {
  it('listens on loopback only', () => {
    expect(problemsOf({ env: { HOST: '0.0.0.0' } })).toEqual([
      'host must be a loopback address such as 127.0.0.1 while none of jwt.secret, jwt.publicKeys and jwt.jwksUrl is set, not "0.0.0.0" (environment variable HOST).',
    ]);
    for (const HOST of ['localhost', '127.1.2.3', '::1']) expect(problemsOf({ env: { HOST } })).toEqual([]);
    for (const HOST of ['127.0.0.1.example.com', '::', '128.0.0.1'])
      expect(problemsOf({ env: { HOST } })).toHaveLength(1);
  });

  it('opens what may be open', () => {
    const { keyConfigured, openByDefault, ors, metrics, channels } = load();
    expect({ keyConfigured, openByDefault }).toEqual({ keyConfigured: false, openByDefault: true });
    expect([ors.public, metrics.public, channels.allowUndeclared]).toEqual([true, true, true]);
  });
});

describe('with a key', () => {
  const env = { SLUICE_JWT_SECRET: SECRET };

  it('closes them, unless only this machine can connect', () => {
    const far = load({ env: { ...env, HOST: '0.0.0.0' } });
    expect(far).toMatchObject({ keyConfigured: true, openByDefault: false });
    expect([far.ors.public, far.metrics.public, far.channels.allowUndeclared]).toEqual([false, false, false]);
    const near = load({ env });
    expect(near).toMatchObject({ keyConfigured: true, openByDefault: true });
    expect([near.ors.public, near.metrics.public, near.channels.allowUndeclared]).toEqual([true, true, true]);
  });

  it('does as it is told about each of them', () => {
    expect(load({ env: { ...env, HOST: '0.0.0.0', SLUICE_ORS_PUBLIC: 'true' } })).toMatchObject({
      openByDefault: false,
      ors: { public: true },
      metrics: { public: false },
    });
  });

  it('counts a key set as a key', () => {
    expect(load({ env: { HOST: '0.0.0.0', SLUICE_JWT_JWKS_URL: 'https://issuer.example/keys' } }).keyConfigured).toBe(
      true,
    );
  });
});

describe('the session cookie', () => {
  const secure = (env: Record<string, string>): boolean =>
    load({ env: { SLUICE_JWT_SECRET: SECRET, ...env } }).auth.cookie.secure;

  it('needs TLS wherever there can be TLS', () => {
    expect(secure({})).toBe(false);
    expect(secure({ HOST: '0.0.0.0' })).toBe(true);
    expect(secure({ SLUICE_PUBLIC_URL: 'https://a.example' })).toBe(true);
    expect(secure({ SLUICE_AUTH_COOKIE_SAME_SITE: 'none' })).toBe(true);
    expect(secure({ HOST: '0.0.0.0', SLUICE_AUTH_COOKIE_SECURE: 'false' })).toBe(false);
  });

  it('cannot go to other sites without', () => {
    directory.write('sluice.yaml', 'auth:\n  cookie:\n    sameSite: none\n    secure: false\n');
    expect(problemsOf()).toEqual([
      'auth.cookie.secure must be true while auth.cookie.sameSite is none (sluice.yaml, line 4, column 13).',
    ]);
  });
});

describe('variables that nobody reads', () => {
  const warnings = (env: Record<string, string>): readonly string[] =>
    loadConfig({ env, directory: directory.path }).warnings;

  it('are told with what was probably meant', () => {
    expect(warnings({ SLUICE_MAX_CONECTIONS: '5', SLUICE_REDIS_URL: 'redis://h', SLUICE_XYZZY: '1' })).toEqual([
      'The environment variable SLUICE_MAX_CONECTIONS is no setting; did you mean SLUICE_MAX_CONNECTIONS?',
      'The environment variable SLUICE_REDIS_URL is no setting; did you mean REDIS_URL?',
      'The environment variable SLUICE_XYZZY is no setting.',
    ]);
  });

  it('are not those of others', () => {
    expect(
      warnings({
        SLUICE_URL: 'http://h',
        SLUICE_TOKEN: 't',
        SLUICE_BUFFER_EVENTS: '5',
        // what Kubernetes sets for a Service named sluice
        SLUICE_SERVICE_HOST: '10.0.0.1',
        SLUICE_SERVICE_PORT_HTTP: '80',
        SLUICE_PORT: 'tcp://10.0.0.1:80',
        SLUICE_PORT_80_TCP_ADDR: '10.0.0.1',
        PATH: '/bin',
      }),
    ).toEqual([]);
  });
});

describe('settings with parts', () => {
  const problemsOf = (yaml: string): readonly string[] => {
    const directory = makeDirectory();
    directory.write('sluice.yaml', yaml);
    try {
      loadConfig({ env: {}, directory: directory.path });
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    } finally {
      directory.remove();
    }
  };

  it.each([
    [
      'tools:\n  http:\n    weather: {}',
      "tools.http.weather must have required property 'url' (sluice.yaml, line 3, column 5).",
    ],
    [
      'tools:\n  http:\n    a:\n      url: x\n      wrong: 1',
      'tools.http.a must NOT have additional properties ("wrong") (sluice.yaml, line 3, column 5).',
    ],
    ['tools:\n  http:\n    a b:\n      url: x', 'tools.http property name must be valid ("a b")'],
    ['tools:\n  http: []', 'tools.http must be object'],
    [
      'models:\n  backends:\n    - name: a\n      baseUrl: nonsense',
      'models.backends.0.baseUrl must be an http:// or https:// URL without credentials and fragment (sluice.yaml, line 3, column 7).',
    ],
    ['models:\n  backends: {}', 'models.backends must be array'],
    [
      'ors:\n  environments:\n    - upstream: http://a.example\n      name: a\n    - name: b\n      maxSessions: 1',
      'ors.environments.1 must have module, mcp or upstream (sluice.yaml, line 5, column 7).',
    ],
    ['ors:\n  environments: [lab.js]', 'ors.environments.0 must be object (sluice.yaml, line 2, column 18).'],
    [
      'ors:\n  environments:\n    - module: nowhere.js',
      'ors.environments.0.module must be a file that can be read (sluice.yaml, line 3, column 7).',
    ],
    [
      'ors:\n  environments:\n    - upstream: http://a.example',
      "ors.environments.0 must have required property 'name' (sluice.yaml, line 3, column 7).",
    ],
    [
      'ors:\n  environments:\n    - { name: a, mcp: {}, tasks: { train: sluice.yaml }, submit: { nam: x } }',
      'ors.environments.0.submit must NOT have additional properties ("nam") (sluice.yaml, line 3, column 7).',
    ],
  ])('are checked part by part: %j', (yaml, message) => {
    expect(problemsOf(yaml)).toEqual([expect.stringContaining(message)]);
  });

  it('are taken from the file, and from nowhere else', () => {
    expect(problemsOf('tools:\n  http:\n    weather:\n      url: https://x.example/{city}')).toEqual([]);
    const { config, warnings } = loadConfig({ env: { SLUICE_TOOLS_HTTP: '{}' }, directory: '/nonexistent' });
    expect(config.tools.http).toEqual({});
    expect(warnings).toEqual([expect.stringContaining('SLUICE_TOOLS_HTTP is no setting')]);
  });
});
