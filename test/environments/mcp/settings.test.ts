import { resolveEnvironments } from '../../../src/config/structures.ts';
import { defineReward } from '../../../src/environments/mcp/define-reward.ts';
import { McpEnvironment } from '../../../src/environments/mcp/mcp-environment.ts';
import { ServerPlan } from '../../../src/environments/mcp/server-plan.ts';
import { concealing } from '../../../src/tools/mcp/secrets.ts';
import type { ImportModule } from '../../../src/tools/module/tool-module.ts';
import type { LabSettings } from './lab.ts';

const settings = { name: 'lab', mcp: { command: 'node' }, tasks: { train: 'train.jsonl' } };
const FILE = __filename;

describe('settings of an environment of an MCP server', () => {
  it.each<[LabSettings, string]>([
    [{ mcp: {} }, 'MCP server "lab": command is missing.'],
    [{ mcp: { command: 7 } }, 'MCP server "lab": command must be a text that is not empty.'],
    [
      { mcp: { command: 'a', env: { A: '${NOT_SET}' } } },
      'MCP server "lab": env.A needs the environment variable NOT_SET, which is not set.',
    ],
    [
      { mcp: { command: 'a', args: ['${secrets.KEY}'] } },
      'mcp.args must not hold secrets of the session: only env and headers may.',
    ],
    [
      { mcp: { url: 'http://localhost/${secrets.KEY}' } },
      'mcp.url must not hold secrets of the session: only env and headers may.',
    ],
    [{ mcp: { command: 'a', disabled: true } }, 'mcp.disabled cannot be used here.'],
    [{ mcp: { command: 'a', approval: 'always' } }, 'mcp.approval cannot be used here: nobody is there to agree.'],
    [{ mcp: { command: 'a', tools: [] }, tools: [] }, 'tools and mcp.tools say the same: only one may be there.'],
    [{ reward: 'tool ==' }, 'reward: The expression cannot be understood: Unexpected token: EOF.'],
    [{ reward: 'toll == "a" ? 1 : 0' }, 'reward: The expression cannot be understood: Unknown variable: toll.'],
    [{ reward: 'tool == "submit"' }, 'reward: The expression gives a bool.'],
    [{ finished: '1' }, 'finished: The expression gives a int.'],
    [
      { reward: '1', rewardModule: FILE },
      'rewardModule stands in the place of reward and finished: only one of them may be there.',
    ],
    [{ submit: { input: { type: 'string' } } }, 'submit.input must be the schema of an object.'],
  ])('%j cannot be used', async (more, message) => {
    await expect(McpEnvironment.create({ ...settings, ...more }, { env: {} })).rejects.toThrow(
      `The environment lab cannot be used: ${message}`,
    );
  });

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['nothing', {}, 'it exports nothing that defineReward has made.'],
    ['two', { a: defineReward(() => null), b: defineReward(() => null) }, 'it exports more than one reward.'],
    ['no function', { a: defineReward(7 as never) }, 'defineReward was not given a function.'],
  ])('a reward module with %s cannot be used', async (_, exported, reason) => {
    const load: ImportModule = async () => exported;
    await expect(McpEnvironment.create({ ...settings, rewardModule: FILE }, { env: {}, load })).rejects.toThrow(
      `The environment lab cannot be used: The reward of ${FILE} cannot be used: ${reason}`,
    );
  });

  it('may have a reward under two names', async () => {
    const reward = defineReward(() => null);
    const load: ImportModule = async () => ({ default: reward, reward });
    const made = await McpEnvironment.create({ ...settings, rewardModule: FILE }, { env: {}, load });
    expect(made.name).toBe('lab');
    await made.close();
  });

  it('name files from one directory, where the server works too', () => {
    const resolved = (mcp: Readonly<Record<string, unknown>>): unknown =>
      resolveEnvironments([{ ...settings, mcp, rewardModule: 'judge.js' }], '/etc/lab')[0];
    expect(resolved({ command: 'node' })).toEqual({
      name: 'lab',
      mcp: { command: 'node', cwd: '/etc/lab' },
      tasks: { train: '/etc/lab/train.jsonl' },
      rewardModule: '/etc/lab/judge.js',
    });
    expect(resolved({ command: 'node', cwd: 'work' })).toMatchObject({ mcp: { cwd: '/etc/lab/work' } });
    expect(resolved({ command: 'node', cwd: '${HOME}/x' })).toMatchObject({ mcp: { cwd: '${HOME}/x' } });
    expect(resolved({ url: 'http://localhost' })).toMatchObject({ mcp: { url: 'http://localhost' } });
  });
});

describe('secrets of a session', () => {
  const plan = (env: Readonly<Record<string, string>>): ServerPlan =>
    new ServerPlan({ ...settings, mcp: { command: 'node', env } }, { env: { HOST_KEY: 'of-the-gateway' } });

  it('cannot ask for what the gateway itself knows', () => {
    const config = plan({ A: '${HOST_KEY} ${secrets.KEY}' }).configFor({
      KEY: '${HOST_KEY} ${secrets.OTHER}',
      OTHER: 'o',
    });
    expect(config).toMatchObject({ env: { A: 'of-the-gateway ${HOST_KEY} ${secrets.OTHER}' } });
  });

  it('are known to whoever has to conceal them', () => {
    const { secrets } = plan({ A: 'key=${secrets.KEY};' }).configFor({ KEY: 'of-the-session' });
    expect(concealing(secrets)('I was given of-the-session')).toBe('I was given [secret]');
  });

  it('do not make one session like another', () => {
    const both = plan({ A: '${secrets.KEY}' });
    expect(both.configFor({ KEY: 'one' })).toMatchObject({ env: { A: 'one' } });
    expect(both.configFor({ KEY: 'two' })).toMatchObject({ env: { A: 'two' } });
    expect(both.configFor(undefined)).toMatchObject({ env: { A: '' } });
    expect(() => both.configFor({ toString: 'x' })).toThrow('The environment lab needs the secret KEY.');
  });

  it('that cannot be given are refused without being repeated', () => {
    const refused = (mcp: Readonly<Record<string, unknown>>, KEY: string): string => {
      try {
        new ServerPlan({ ...settings, mcp }, { env: {} }).configFor({ KEY });
        return 'fine';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(refused({ command: 'node', env: { A: '${secrets.KEY}' } }, 'very\0secret')).toBe(
      'A secret of the session has characters that A cannot hold.',
    );
    expect(refused({ url: 'http://localhost', headers: { 'x-key': '${secrets.KEY}' } }, 'very\nsecret')).toBe(
      'A secret of the session has characters that x-key cannot hold.',
    );
  });
});
