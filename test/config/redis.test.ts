import { loadConfig } from '../../src/config/config.ts';
import type { ConfigError } from '../../src/config/config-error.ts';
import { redisSettings } from '../../src/config/redis.ts';
import { makeDirectory } from '../support/directory.ts';

const directory = makeDirectory();
afterAll(() => directory.remove());

const load = (env: Record<string, string>) => loadConfig({ env, directory: directory.path }).config;

it('is undefined without a URL', () => {
  expect(redisSettings(load({}))).toBeUndefined();
});

it('leaves the number of partitions to the kind of server', () => {
  expect(redisSettings(load({ REDIS_URL: 'redis://h' }))).toMatchObject({ partitions: 1, keyPrefix: 'sluice:' });
  expect(redisSettings(load({ REDIS_URL: 'redis+cluster://h' }))).toMatchObject({ partitions: 4 });
  expect(redisSettings(load({ REDIS_URL: 'redis+cluster://h', SLUICE_REDIS_PARTITIONS: '2' }))?.partitions).toBe(2);
});

it('carries certificates and the login at the sentinels', () => {
  directory.write('ca.pem', 'authorities');
  directory.write('cert.pem', 'certificate');
  directory.write('key.pem', 'key');
  const settings = redisSettings(
    load({
      REDIS_URL: 'rediss+sentinel://a,b/main',
      SLUICE_REDIS_TLS_CA: 'ca.pem',
      SLUICE_REDIS_TLS_CERT: 'cert.pem',
      SLUICE_REDIS_TLS_KEY: 'key.pem',
      SLUICE_REDIS_SENTINEL_USERNAME: 'guard',
      SLUICE_REDIS_SENTINEL_PASSWORD: 'word',
    }),
  );
  expect(settings).toMatchObject({ masterName: 'main', sentinelUsername: 'guard', sentinelPassword: 'word' });
  expect(settings?.tls).toEqual({
    ca: Buffer.from('authorities'),
    cert: Buffer.from('certificate'),
    key: Buffer.from('key'),
  });
});

it('is TLS as well when the URL says so and nothing else is set', () => {
  expect(redisSettings(load({ REDIS_URL: 'rediss://h' }))?.tls).toEqual({});
});

it('takes certificates for a connection with TLS only, and a certificate only with its key', () => {
  const file = directory.write('some.pem', 'x');
  const problems = (env: Record<string, string>): readonly string[] => {
    try {
      load(env);
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    }
  };
  expect(problems({ REDIS_URL: 'redis://h', SLUICE_REDIS_TLS_CA: file })).toEqual([
    'redis.tls.ca must not be set while redis.url does not begin with rediss (environment variable SLUICE_REDIS_TLS_CA).',
  ]);
  expect(problems({ REDIS_URL: 'rediss://h', SLUICE_REDIS_TLS_CERT: file })).toEqual([
    'redis.tls.key must be set as well when redis.tls.cert is (environment variable SLUICE_REDIS_TLS_CERT).',
  ]);
});
