import { loadConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import type { DefinedEnvironment } from '../../src/environments/module/define-environment.ts';
import { ModuleEnvironment } from '../../src/environments/module/module-environment.ts';
import { openEnvironments } from '../../src/environments/open-environments.ts';
import type { Hosted } from '../../src/environments/sessions.ts';
import { UpstreamEnvironment } from '../../src/environments/upstream/upstream-environment.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { lab } from '../support/environment.ts';
import { OrsServer } from '../support/ors-server.ts';
import { puppet } from '../tools/mcp/room.ts';

describe('the environments of the settings', () => {
  let directory: TestDirectory;
  let opened: readonly Hosted[] = [];
  beforeEach(() => {
    directory = makeDirectory();
    opened = [];
  });
  afterEach(async () => {
    for (const { environment } of opened) await environment.close();
    directory.remove();
    jest.restoreAllMocks();
  });

  /** Opens what the settings of a file say; `modules` are what its files export, by their names. */
  const open = async (
    environments: readonly object[],
    modules: Readonly<Record<string, DefinedEnvironment | undefined>> = {},
    { ors = {}, env = {} }: { ors?: object; env?: Readonly<Record<string, string>> } = {},
  ): Promise<readonly Hosted[]> => {
    for (const name of Object.keys(modules)) directory.write(`${name}.mjs`, '');
    directory.write('tasks.jsonl', '{"prompt":"Add."}\n');
    directory.write('sluice.yaml', JSON.stringify({ ors: { environments, ...ors } }));
    const { config } = loadConfig({ env: { SLUICE_JWT_SECRET: 'x'.repeat(32) }, directory: directory.path });
    opened = await openEnvironments({
      ...{ settings: config, env },
      warn: () => {},
      load: async (url) => ({ default: modules[/(\w+)\.mjs/.exec(url)?.[1] ?? ''] }),
    });
    return opened;
  };
  const problemsOf = async (opening: Promise<unknown>): Promise<readonly string[]> => {
    const error: unknown = await opening.catch((thrown: unknown) => thrown);
    if (!(error instanceof ConfigError)) throw new Error(`no ConfigError: ${String(error)}`);
    return error.problems;
  };
  const MCP = { name: 'Counting', mcp: puppet(), tasks: { train: './tasks.jsonl' } };

  it('are opened in their order, of all kinds, with what they are allowed', async () => {
    const hosted = await open(
      [
        { module: './first.mjs', maxSessions: 3, callTimeoutSeconds: 1.5, maxOutputBytes: 100 },
        { ...MCP, maxSessions: 3, maxQueued: 1 },
        { name: 'Far', upstream: 'http://127.0.0.1:1' },
        { module: './second.mjs', name: 'Renamed' },
      ],
      { first: lab('First'), second: lab('Second') },
      { ors: { maxCallsPerSession: 7 } },
    );
    expect(hosted.map(({ environment: { name, kind } }) => [name, kind])).toEqual([
      ['first', 'module'],
      ['counting', 'mcp'],
      ['far', 'upstream'],
      ['renamed', 'module'],
    ]);
    const limits = { maxCalls: 7, callTimeoutMs: 0, maxOutputBytes: 16 * 1024 * 1024 };
    expect(hosted.map(({ environment: _, ...rest }) => rest)).toEqual([
      { maxSessions: 3, maxQueued: 3, limits: { maxCalls: 7, callTimeoutMs: 1_500, maxOutputBytes: 100 } },
      { maxSessions: 3, maxQueued: 1, limits },
      { maxSessions: 0, maxQueued: 0, limits },
      { maxSessions: 0, maxQueued: 0, limits },
    ]);
    expect(await hosted[1]?.environment.count('train')).toBe(1);
  });

  it('may name variables in what they send to others', async () => {
    const server = await OrsServer.start();
    const headers = { Authorization: 'Bearer ${TOKEN_OF_LAB}' };
    const [far] = await open([{ name: 'lab', upstream: server.url, headers }], {}, { env: { TOKEN_OF_LAB: 'abc' } });
    await far?.environment.splits();
    expect(server.requests.at(-1)?.headers.authorization).toBe('Bearer abc');
  });

  it('that are wrong are told all at once, each with its place, and the others are closed', async () => {
    const closed = [
      jest.spyOn(ModuleEnvironment.prototype, 'close'),
      jest.spyOn(UpstreamEnvironment.prototype, 'close'),
    ];
    const opening = open(
      [
        { module: './good.mjs' },
        { module: './empty.mjs' },
        { ...MCP, reward: 'this is no (expression' },
        { name: 'far', upstream: 'http://127.0.0.1:1' },
      ],
      { good: lab('good'), empty: undefined },
    );
    const problems = await problemsOf(opening);
    expect([...problems].sort()).toEqual([
      expect.stringMatching(/^ors\.environments\.1: .*empty\.mjs cannot be used/),
      expect.stringMatching(/^ors\.environments\.2: /),
    ]);
    expect(closed.map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });

  it('have names of their own, which are no paths of the gateway', async () => {
    const modules = { one: lab('Same'), two: lab('same'), three: lab('Ping'), four: lab('Events') };
    const settings = Object.keys(modules).map((name) => ({ module: `./${name}.mjs` }));
    expect(await problemsOf(open(settings, modules))).toEqual([
      'ors.environments: two environments are called same.',
      'ors.environments: no environment can be called ping, which is a path of the gateway.',
      'ors.environments: no environment can be called events, which is a path of the gateway.',
    ]);
  });

  it('do not lie under a path of the gateway', async () => {
    const opening = open([{ module: './one.mjs' }], { one: lab('one') }, { ors: { prefix: '/API/ors' } });
    expect(await problemsOf(opening)).toEqual(['ors.prefix: /API/ors lies under a path of the gateway.']);
    expect(await open([{ module: './one.mjs' }], { one: lab('one') }, { ors: { prefix: '/ors' } })).toHaveLength(1);
  });

  it('may be none', async () => {
    expect(await open([])).toEqual([]);
  });
});
