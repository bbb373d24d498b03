import { generateKeyPairSync } from 'node:crypto';
import { loadConfig } from '../../src/config/config.ts';
import { describe as describeConfig } from '../../src/config/describe.ts';
import { SETTING_PATHS, settingAt } from '../../src/config/settings.ts';
import { makeDirectory } from '../support/directory.ts';

const directory = makeDirectory();
afterAll(() => directory.remove());

it('shows every setting that has a value, and of a secret only that it is there', () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const env = {
    REDIS_URL: 'redis+sentinel://user:hunter2@a:1,b:2/main',
    SLUICE_REDIS_SENTINEL_PASSWORD: 'hunter2',
    SLUICE_JWT_SECRET: 'hunter2'.repeat(6),
    SLUICE_JWT_PUBLIC_KEYS: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
  const shown = describeConfig(loadConfig({ env, directory: directory.path }).config);
  expect(JSON.stringify(shown)).not.toMatch(/hunter2|BEGIN/);
  expect(shown).toMatchObject({
    port: 8080,
    'redis.url': 'redis+sentinel://***@a:1,b:2/main',
    'redis.sentinel.password': '***',
    'jwt.secret': '***',
    'jwt.publicKeys': '***',
    'limits.maxConnections': 10_000,
  });
  expect(shown).not.toHaveProperty('jwt.issuer');
});

it('knows every secret by its name', () => {
  const secrets = SETTING_PATHS.filter((path) => settingAt(path).secret);
  expect(secrets).toEqual(SETTING_PATHS.filter((path) => /password|secret|apiKey|publicKeys|redis\.url/i.test(path)));
});
