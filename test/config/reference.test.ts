import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { loadConfig } from '../../src/config/config.ts';
import { referencePage } from '../../src/config/reference.ts';
import { flagOf, SETTING_PATHS, settingAt, variableOf } from '../../src/config/settings.ts';
import { flagOptions } from '../../src/config/text-sources.ts';

it('is up to date in docs/ (if not: npm run docs)', () => {
  expect(readFileSync('docs/CONFIGURATION.md', 'utf8')).toBe(referencePage());
});

it('has a row for every setting', () => {
  const rows = referencePage().split('\n');
  for (const path of SETTING_PATHS) expect(rows.filter((row) => row.startsWith(`| \`${path}\` |`))).toHaveLength(1);
});

it('describes each setting in one sentence', () => {
  for (const path of SETTING_PATHS) expect(settingAt(path).describe).toMatch(/^[A-Z][^\n]*[^.]\.$/);
});

it('gives no variable and no flag to two settings', () => {
  const variables = SETTING_PATHS.flatMap((path) => variableOf(path) ?? []);
  expect(new Set(variables).size).toBe(variables.length);
  const flags = flagOptions().map(({ name }) => name);
  expect(new Set(flags).size).toBe(flags.length);
});

it('names variables and flags after the path', () => {
  expect(variableOf('redis.keyPrefix')).toBe('SLUICE_REDIS_KEY_PREFIX');
  expect(flagOf('redis.keyPrefix')).toBe('--redis-key-prefix');
  expect(flagOf('jwt.secret')).toBeUndefined();
  expect(flagOptions()).toContainEqual({
    flags: '--redis-key-prefix <value>',
    description: settingAt('redis.keyPrefix').describe,
    name: 'redisKeyPrefix',
  });
});

it('declares flags that a command line parser understands', () => {
  const command = new Command();
  for (const { flags, description } of flagOptions()) command.option(flags, description);
  command.parse(['--redis-key-prefix', 'mine:', '--limits-max-connections=7', '--ors-public', 'false'], {
    from: 'user',
  });
  const { config } = loadConfig({ env: {}, flags: command.opts(), directory: '/nowhere' });
  expect(config).toMatchObject({
    redis: { keyPrefix: 'mine:' },
    limits: { maxConnections: 7 },
    ors: { public: false },
  });
});
