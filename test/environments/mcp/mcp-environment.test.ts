import type { JsonObject } from '../../../src/tools/tool.ts';
import { eventually } from '../../streams/logs.ts';
import { HttpMcpServer } from '../../tools/mcp/http-server.ts';
import { everythingOnStdio, isAlive, PUPPET, puppet, record, shell, WRAPPER } from '../../tools/mcp/room.ts';
import { call, Lab, type LabSettings, said } from './lab.ts';

// Every test starts processes, and the machine may be busy.
jest.setTimeout(30_000);

let log: ReturnType<typeof record>;
let lab: Lab;
beforeEach(() => {
  log = record();
});
afterEach(async () => {
  await lab.stop();
  log.remove();
});

const open = async (settings: LabSettings = {}): Promise<Lab> => {
  lab = await Lab.open(settings);
  return lab;
};
const logged = (behaviour: object = {}): LabSettings => ({
  mcp: puppet({ log: log.path, ...behaviour }) as JsonObject,
});
const pids = (): readonly number[] =>
  log
    .lines()
    .filter((line) => line.startsWith('start'))
    .map((line) => Number(line.slice(6)));

describe('an environment of an MCP server', () => {
  it('has a name in lower case, splits and tasks without starting anything', async () => {
    const { environment } = await open(logged());
    expect(environment).toMatchObject({ name: 'lab', kind: 'mcp' });
    expect(await environment.splits()).toEqual([{ name: 'train', type: 'train' }]);
    expect(await environment.count('train')).toBe(3);
    expect(await environment.task('train', 1)).toEqual({ prompt: 'Add 2 and 2.', answer: '4' });
    expect(await environment.range('train', 1, 2)).toHaveLength(1);
    expect(await environment.tasks('train')).toHaveLength(3);
    await environment.check({ split: 'train', index: 1 });
    expect(pids()).toEqual([]);
  });

  it('says before an episode is opened that it could not be', async () => {
    const { environment } = await open(logged());
    const code = (choice: Parameters<typeof environment.check>[0]): Promise<string> =>
      environment.check(choice).then(
        () => 'fine',
        (error: { code: string }) => error.code,
      );
    expect(await code({ split: 'nope', index: 0 })).toBe('invalid_split');
    expect(await code({ split: 'train', index: 3 })).toBe('invalid_index');
    expect(await code({ split: 'train', index: 2 })).toBe('invalid_task'); // it has no prompt
    expect(await code({ task: {} })).toBe('invalid_task');
    expect(await code({ task: { prompt: 'p' } })).toBe('fine');
    await expect(lab.begin(2)).rejects.toMatchObject({ code: 'invalid_task' });
    expect(pids()).toEqual([]);
  });

  describe('and its shared tools', () => {
    it('lists them with a process that is gone afterwards, once for all who ask', async () => {
      const { environment } = await open({ ...logged(), tools: ['echo', 'pid'], submit: true });
      const [first, second] = await Promise.all([environment.tools(), environment.tools()]);
      expect(first).toEqual([
        { name: 'echo', description: 'Does echo.', input_schema: { type: 'object' } },
        { name: 'pid', description: 'Does pid.', input_schema: { type: 'object' } },
        expect.objectContaining({ name: 'submit', description: expect.any(String) }),
      ]);
      expect(second).toBe(first);
      expect(await environment.tools()).toBe(first);
      expect(pids()).toHaveLength(1);
      expect(isAlive(pids()[0] as number)).toBe(false);
    });

    it('knows them from an episode', async () => {
      const { environment } = await open(logged());
      const episode = await lab.begin();
      expect(await environment.tools()).toEqual(await episode.tools(AbortSignal.abort()));
      expect(pids()).toHaveLength(1);
    });

    it('does not know them from an episode whose secrets may have made them', async () => {
      const { environment } = await open({
        mcp: puppet({ log: log.path }, { env: { KEY: '${secrets.KEY}' } }) as JsonObject,
      });
      await lab.begin(0, { KEY: 'k' });
      await environment.tools();
      expect(pids()).toHaveLength(2);
    });

    it('cannot list them while the server does not start, and tries again', async () => {
      const [path, behaviour] = (puppet() as { args: string[] }).args as [string, string];
      const script = `echo x >> ${log.path}; [ $(wc -l < ${log.path}) -gt 1 ] && exec node "$0" "$1"; echo broken >&2; exit 7`;
      const { environment } = await open({ mcp: { command: 'sh', args: ['-c', script, path, behaviour] } });
      await expect(environment.tools()).rejects.toMatchObject({
        code: 'unavailable',
        message:
          'The MCP server of lab is not available: It could not be started: it has gone away. The process ended with code 7. It wrote: broken',
      });
      expect(await environment.tools()).toContainEqual(expect.objectContaining({ name: 'echo' }));
    });

    it('stops listing them when the gateway stops', async () => {
      const { environment } = await open({ mcp: shell(`echo start $$ >> ${log.path}; exec sleep 1000`) as JsonObject });
      const listed = environment.tools();
      const refused = expect(listed).rejects.toMatchObject({
        code: 'unavailable',
        message: 'The gateway is stopping.',
      });
      await eventually(() => pids().length === 1);
      await environment.close();
      await refused;
      expect(isAlive(pids()[0] as number)).toBe(false);
    });
  });

  describe('and its episodes', () => {
    it('gives each a server of its own, which ends with it', async () => {
      await open(logged());
      const [one, two] = await Promise.all([lab.begin(0), lab.begin(1)]);
      const [first, second] = [Number(await said(one, 'pid')), Number(await said(two, 'pid'))];
      expect(first).not.toBe(second);
      expect(await one.prompt(AbortSignal.abort())).toEqual([{ text: 'Add 1 and 2.', detail: null, type: 'text' }]);
      await one.close();
      expect(isAlive(first)).toBe(false);
      expect(Number(await said(two, 'pid'))).toBe(second);
      await two.close();
      expect(isAlive(second)).toBe(false);
    });

    it('ends everything that a server has started, however stubborn', async () => {
      await open({ mcp: { command: WRAPPER, args: [PUPPET, JSON.stringify({ log: log.path, stubborn: true })] } });
      const episode = await lab.begin();
      const [pid] = pids() as [number];
      expect(isAlive(pid)).toBe(true);
      await episode.close();
      await eventually(() => !isAlive(pid));
    });

    it('ends a session of HTTP with the episode', async () => {
      const server = await HttpMcpServer.start();
      await open({ mcp: { url: server.url } });
      const [one, two] = [await lab.begin(), await lab.begin()];
      expect(server.sessions.size).toBe(2);
      expect(await said(one, 'echo')).toBe('echo');
      await one.close();
      expect(server.sessions.size).toBe(1);
      await two.close();
      expect(server.sessions.size).toBe(0);
      await server.stop();
    });

    it('fails to open one when the server does not come up in its time, and nothing is left', async () => {
      const script = `echo start $$ >> ${log.path}; echo "waiting for $TOKEN" >&2; exec sleep 1000`;
      await open({
        mcp: shell(script, { env: { TOKEN: '${secrets.TOKEN}' } }) as JsonObject,
        startTimeoutSeconds: 2, // a shell that says something needs a moment on a busy machine
      });
      const error = await lab.begin(0, { TOKEN: 'very-secret' }).catch((reason: Error) => reason);
      expect(error).toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(
          /^The MCP server of lab is not available: It could not be started: it was not ready within 2 s\. .*It wrote: waiting for \[secret\]$/,
        ),
      });
      expect(isAlive(pids()[0] as number)).toBe(false);
      expect(JSON.stringify([lab.notes, lab.warnings])).not.toContain('very-secret');
      expect(lab.notes).toEqual(['waiting for [secret]']);
    });

    it('fails to open one when it is given up, and nothing is left', async () => {
      await open({ mcp: shell(`echo start $$ >> ${log.path}; exec sleep 1000`) as JsonObject });
      const stop = new AbortController();
      const refused = expect(lab.begin(0, {}, stop.signal)).rejects.toThrow('enough');
      await eventually(() => pids().length === 1);
      stop.abort(new Error('enough'));
      await refused;
      expect(isAlive(pids()[0] as number)).toBe(false);
      await expect(lab.begin(0, {}, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
      expect(pids()).toHaveLength(1);
    });

    it('fails to open one when the server has the name of the submit tool', async () => {
      await open({ ...logged(), submit: { name: 'echo' } });
      const refusal = {
        code: 'failed',
        message: 'The MCP server of lab has a tool "echo" of its own: the submit tool needs another name.',
      };
      await expect(lab.begin()).rejects.toMatchObject(refusal);
      await expect(lab.environment.tools()).rejects.toMatchObject(refusal);
      expect(pids().map(isAlive)).toEqual([false, false]);
    });

    it('fails to open one without any tools', async () => {
      await open({ ...logged(), tools: ['nope'] });
      await expect(lab.begin()).rejects.toMatchObject({ message: 'The MCP server of lab has no tools.' });
      await expect(lab.begin()).rejects.toMatchObject({ code: 'failed' });
      // Told once, however many episodes there are.
      expect(lab.warnings).toEqual(['MCP server Lab has no tool "nope", which its list of tools names.']);
    });

    it('ends all of them when it is closed, and opens no more', async () => {
      await open(logged());
      await Promise.all([lab.begin(), lab.begin()]);
      await lab.environment.close();
      expect(pids().map(isAlive)).toEqual([false, false]);
      await expect(lab.begin()).rejects.toMatchObject({ code: 'unavailable' });
      expect(pids()).toHaveLength(2);
    });

    it('gives the server the secrets that the settings name, and no others', async () => {
      const env = { KEY: 'Bearer ${secrets.KEY}', OTHER: '${secrets.OTHER:-nothing}' };
      await open({ mcp: puppet({}, { env }) as JsonObject });
      const episode = await lab.begin(0, { KEY: 'mine', UNNAMED: 'unnamed-value' });
      const seen = await said(episode, 'env');
      expect(JSON.parse(seen)).toMatchObject({ KEY: 'Bearer mine', OTHER: 'nothing' });
      expect(seen).not.toContain('unnamed-value');
      await expect(lab.begin(0, {})).rejects.toMatchObject({
        code: 'failed',
        message: 'The environment Lab needs the secret KEY.',
      });
    });

    it('sends secrets in headers over HTTP', async () => {
      const server = await HttpMcpServer.start();
      await open({ mcp: { url: server.url, headers: { authorization: 'Bearer ${secrets.KEY}' } } });
      await lab.begin(0, { KEY: 'of-this-session' });
      expect(server.headers.at(-1)?.authorization).toBe('Bearer of-this-session');
      await lab.stop();
      await server.stop();
    });
  });

  it('works with the reference server', async () => {
    await open({
      mcp: everythingOnStdio() as JsonObject,
      tools: ['get-sum', 'get-tiny-image', 'get-structured-content'],
    });
    const episode = await lab.begin();
    expect((await lab.environment.tools()).map(({ name }) => name).sort()).toEqual([
      'get-structured-content',
      'get-sum',
      'get-tiny-image',
    ]);
    expect(await said(episode, 'get-sum', { a: 1, b: 2 })).toContain('3');
    expect(await call(episode, 'get-tiny-image')).toMatchObject({
      ok: true,
      output: {
        blocks: expect.arrayContaining([
          { type: 'image', mimeType: 'image/png', detail: null, data: expect.stringMatching(/^iVBOR/) },
        ]),
        metadata: null,
      },
    });
    expect(await call(episode, 'get-structured-content', { location: 'Chicago' })).toMatchObject({
      output: { metadata: { structured: { temperature: 36, humidity: 82 } } },
    });
    expect(await call(episode, 'get-sum', { a: 1 })).toEqual({
      ok: false,
      error: 'Tool input validation error: b is missing.',
      reason: 'input_validation',
    });
    expect(await call(episode, 'echo', { message: 'not on the list' })).toEqual({
      ok: false,
      error: "'echo' is not a valid tool",
      reason: 'not_found',
    });
  });
});
