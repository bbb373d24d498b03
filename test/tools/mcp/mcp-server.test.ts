import { eventually } from '../../streams/logs.ts';
import { isAlive, puppet, Room, record, shell } from './room.ts';

// Every test starts processes, and the machine may be busy.
jest.setTimeout(30_000);

describe('an MCP server', () => {
  let room: Room;
  let log: ReturnType<typeof record>;

  beforeEach(() => {
    log = record();
  });
  afterEach(async () => {
    await room.stop();
    log.remove();
  });

  const calls = (): readonly string[] => log.lines().filter((line) => !line.startsWith('start'));
  const starts = (): number => log.lines().filter((line) => line.startsWith('start')).length;

  describe('and its tools', () => {
    it('lists them over all its pages', async () => {
      const one = await Room.open({ s: puppet() });
      room = await Room.open({ s: puppet({ pages: 3 }) });
      expect(room.names.length).toBeGreaterThan(9);
      expect(room.names).toEqual(one.names);
      await one.stop();
    });

    it('reads a circle of pages once, and warns', async () => {
      room = await Room.open({ s: puppet({ pages: 5, circle: true }) });
      expect(room.names).toContain('echo');
      await eventually(() => room.states.length > 0);
      expect(room.warnings).toEqual(['MCP server s lists its tools in a circle of pages: every page is read once.']);
    });

    it('takes new ones when the server says so, long before it would have asked', async () => {
      room = await Room.open({ s: puppet() }, { refreshMs: 60_000 });
      const changes = jest.fn();
      room.registry.onChange(changes);
      expect(room.names).not.toContain('late');
      await room.call('grow');
      await eventually(() => room.names.includes('late'));
      expect(await room.text('late')).toBe('late');
      expect(changes).toHaveBeenCalledTimes(1);
      expect(room.state('s').tools).toBe(room.names.length);
    });

    it('asks again and again, and changes nothing while nothing has changed', async () => {
      room = await Room.open({ s: puppet() }, { refreshMs: 20 });
      const before = room.registry.list().map(({ tool }) => tool);
      const changes = jest.fn();
      room.registry.onChange(changes);
      await room.text('pid');
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(changes).not.toHaveBeenCalled();
      for (const [i, { tool }] of room.registry.list().entries()) expect(tool).toBe(before[i]);
    });

    it('keeps them while the server cannot list them, and says so', async () => {
      room = await Room.open({ s: puppet({ listFails: true }) });
      await eventually(() => room.state('s').lastError !== undefined);
      expect(room.state('s')).toMatchObject({
        state: 'ready',
        lastError: 'Its tools could not be listed: the list is lost.',
      });
      expect(await room.text('echo', { text: 'still' })).toBe('still');
      expect(room.state('s').restarts).toBe(0);
    });

    it('shows only those that it is told to, with its own limits', async () => {
      const entry = puppet({}, { tools: ['echo', 'nothing'], approval: 'always', timeoutSeconds: 7, concurrency: 2 });
      room = await Room.open({ s: entry });
      expect(room.names).toEqual(['echo']);
      expect(room.registry.find('echo')).toMatchObject({ approval: 'always', timeoutMs: 7_000 });
      expect(room.servers.providers()[0]).toMatchObject({ concurrency: 2 });
      expect(room.warnings).toEqual(['MCP server s has no tool "nothing", which its list of tools names.']);
    });
  });

  describe('during a call', () => {
    it('that dies is told of once: the call is not made again, and the next one works', async () => {
      room = await Room.open({ s: puppet({ log: log.path }) });
      const first = Number(await room.text('pid'));
      const error = await room.error('die');
      expect(error).toMatchObject({
        code: 'unavailable',
        message:
          'The MCP server s failed during the call of die: it has gone away. Whether the call was carried out is not known.',
      });
      expect(Number(await room.text('pid'))).not.toBe(first);
      expect(calls()).toEqual(['call pid', 'call die', 'call pid']);
      expect(room.state('s')).toMatchObject({ state: 'ready', restarts: 1, lastError: undefined });
      expect(room.phases('s')).toEqual(['ready', 'restarting', 'ready']);
      const lost = room.states.find(({ state }) => state === 'restarting');
      expect(lost?.lastError).toBe('The process ended with code 3.');
    });

    it('that is killed fails every call that runs, each once', async () => {
      room = await Room.open({ s: puppet({ log: log.path }) });
      const pid = Number(await room.text('pid'));
      const running = [1, 2, 3].map(() => room.error('hang'));
      await eventually(() => calls().filter((line) => line === 'call hang').length === 3);
      process.kill(pid, 'SIGKILL');
      for (const error of await Promise.all(running)) expect(error).toMatchObject({ code: 'unavailable' });
      expect(await room.text('echo', { text: 'back' })).toBe('back');
      expect(calls().filter((line) => line === 'call hang')).toHaveLength(3);
    });

    it('hears of a cancel', async () => {
      room = await Room.open({ s: puppet({ log: log.path }) });
      const stop = new AbortController();
      const call = room.error('hang', {}, { signal: stop.signal });
      await eventually(() => calls().includes('call hang'));
      stop.abort();
      expect(await call).toMatchObject({ code: 'cancelled' });
      await eventually(() => calls().includes('cancelled'));
      expect(room.state('s').restarts).toBe(0);
    });

    it('hears of a time that is over, which progress does not lengthen', async () => {
      room = await Room.open({ s: puppet({ log: log.path }, { timeoutSeconds: 0.5 }) });
      const progress = jest.fn();
      expect(await room.error('steps', { ms: 200 }, { progress })).toMatchObject({ code: 'timeout' });
      expect(progress).toHaveBeenCalledWith({ progress: 1, total: 3, message: 'step 1' });
      const seen = progress.mock.calls.length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(progress).toHaveBeenCalledTimes(seen);
      expect(await room.error('hang')).toMatchObject({ code: 'timeout' });
      await eventually(() => calls().includes('cancelled'));
    });

    it('tells the last step before the result', async () => {
      room = await Room.open({ s: puppet() });
      for (let i = 0; i < 20; i++) {
        const seen: number[] = [];
        await room.call('steps', { ms: 0 }, { progress: ({ progress }) => seen.push(progress) });
        expect(seen).toEqual([1, 2, 3]);
      }
    });

    it('is not given up because it does nothing else meanwhile', async () => {
      room = await Room.open({ s: puppet() }, { answerMs: 100, refreshMs: 50 });
      expect(await room.text('block', { ms: 1_500 })).toBe('done');
      expect(room.state('s').restarts).toBe(0);
      await eventually(() => room.state('s').lastError === undefined);
    });

    it('may say that it failed, or refuse', async () => {
      room = await Room.open({ s: puppet() });
      expect(await room.call('fail')).toEqual({ content: [{ type: 'text', text: 'it went wrong' }], isError: true });
      expect(await room.error('refuse')).toMatchObject({
        code: 'failed',
        message: 'refuse: there is no such thing',
      });
      expect(room.state('s').restarts).toBe(0);
    });

    it('may answer with only so much; the others that run are not harmed', async () => {
      room = await Room.open({ s: puppet() }, { maxResultBytes: 100_000 });
      const other = room.text('steps', { ms: 100 });
      expect(await room.error('big', { bytes: 100_000 })).toMatchObject({
        code: 'too_large',
        message: 'The result of big is larger than it may be.',
      });
      expect(await room.text('big', { bytes: 99_000 })).toHaveLength(99_000);
      expect(await other).toBe('done');
      expect(room.state('s').restarts).toBe(0);
    });

    it('makes no more calls at a time than its concurrency allows', async () => {
      room = await Room.open({ s: puppet({ log: log.path }, { concurrency: 1 }) });
      const first = room.error('hang', {}, { timeoutMs: 300 });
      const second = room.text('echo', { text: 'after' });
      await eventually(() => calls().length === 1);
      expect(calls()).toEqual(['call hang']);
      expect(await first).toMatchObject({ code: 'timeout' });
      expect(await second).toBe('after');
    });
  });

  describe('that is not well', () => {
    it('is started again when it no longer answers', async () => {
      room = await Room.open({ s: puppet({ log: log.path }) }, { answerMs: 200 });
      const pid = Number(await room.text('pid'));
      await room.text('freeze');
      await eventually(() => room.state('s').restarts === 1 && room.state('s').state === 'ready');
      expect(Number(await room.text('pid'))).not.toBe(pid);
      expect(isAlive(pid)).toBe(false);
      expect(room.states.map(({ lastError }) => lastError)).toContain(
        'Its tools could not be listed: it did not answer in time.',
      );
    });

    it('lets calls wait a little until it is back', async () => {
      room = await Room.open({ s: puppet() });
      process.kill(Number(await room.text('pid')), 'SIGKILL');
      await eventually(() => room.state('s').state === 'restarting');
      expect(await room.text('echo', { text: 'patient' })).toBe('patient');
    });

    it('lets calls wait no longer than that', async () => {
      const times = { firstMs: 60_000, longestMs: 60_000, stableMs: 60_000 };
      room = await Room.open({ s: puppet({ log: log.path }) }, { readyMs: 200, restart: times });
      await room.error('die');
      const begin = performance.now();
      expect(await room.error('echo', { text: 'x' })).toMatchObject({
        code: 'unavailable',
        message: 'The MCP server s is not available: The process ended with code 3. The call was not made.',
      });
      expect(performance.now() - begin).toBeLessThan(2_000);
      expect(calls()).toEqual(['call die']);
      const stop = new AbortController();
      const waiting = room.error('echo', { text: 'x' }, { signal: stop.signal });
      stop.abort();
      expect(await waiting).toMatchObject({ code: 'cancelled' });
    });

    it('is tried again, ever more slowly, and says what it wrote last', async () => {
      const script = `echo started >> ${log.path}; echo "no config" >&2; echo "token is $TOKEN" >&2; exit 7`;
      const restart = { firstMs: 50, longestMs: 60_000, stableMs: 60_000 };
      room = await Room.open({ s: shell(script, { env: { TOKEN: 'very-secret' } }) }, { restart });
      expect(room.state('s')).toMatchObject({
        state: 'failed',
        tools: 0,
        lastError:
          'It could not be started: it has gone away. The process ended with code 7. It wrote: no config | token is [secret]',
      });
      await eventually(() => log.lines().length >= 4);
      expect(room.state('s').restarts).toBeGreaterThanOrEqual(3);
      expect(room.phases('s')).toEqual(['failed']);
      expect(room.notes.slice(0, 2)).toEqual(['s: no config', 's: token is [secret]']);
      expect(JSON.stringify([room.states, room.notes, room.warnings])).not.toContain('very-secret');
    });

    it.each([
      ['that is not on the PATH', { command: 'no-such-program' }, '"no-such-program" is not found on the PATH.'],
      ['that is no program', { command: __filename }, `"${__filename}" is not a program that can be run.`],
      [
        'in a directory that does not exist',
        { command: 'node', cwd: '/no/such/directory' },
        '"node" could not be started in /no/such/directory (ENOENT).',
      ],
    ])('is told of by name if it is a command %s', async (_, entry, reason) => {
      room = await Room.open({ s: entry });
      expect(room.state('s')).toMatchObject({ state: 'failed', lastError: `It could not be started: ${reason}` });
    });

    it('that never answers is given up after a while, and nothing of it is left', async () => {
      room = await Room.open({ s: shell(`echo $$ >> ${log.path}; exec sleep 1000`) }, { startMs: 300 });
      expect(room.state('s').lastError).toMatch(/^It could not be started: it was not ready within 0.3 s\./);
      expect(isAlive(Number(log.lines()[0]))).toBe(false);
    });

    it('may print what it likes to its output; that is left out, and told once', async () => {
      const garbage = 'echo "Welcome! key=$KEY"; echo "{}"; echo "[1"; head -c 3000 /dev/urandom; echo';
      const script = `${garbage}; exec node "$0" "$1"`;
      const [path, behaviour] = (puppet() as { args: string[] }).args as [string, string];
      const entry = { command: 'sh', args: ['-c', script, path, behaviour], env: { KEY: 'very-secret' } };
      room = await Room.open({ s: entry });
      expect(await room.text('echo', { text: 'clear' })).toBe('clear');
      expect(room.warnings).toEqual([
        'MCP server s writes something else than messages to its standard output, which is left out: "Welcome! key=[secret]".',
      ]);
    });
  });

  describe('that lives once', () => {
    // It would be started again at once, long before another one is ready.
    const once = { once: true, readyMs: 600_000, restart: { firstMs: 1, longestMs: 1, stableMs: 1 } };
    const another = async (): Promise<void> => (await Room.open({ t: puppet() })).stop();

    it('is not started again when it dies: every later call fails at once', async () => {
      room = await Room.open({ s: puppet({ log: log.path }) }, once);
      await room.error('die');
      await eventually(() => room.state('s').state === 'failed');
      await another();
      expect(room.state('s')).toMatchObject({
        state: 'failed',
        lastError: 'The process ended with code 3.',
        restarts: 0,
      });
      expect(await room.error('echo', { text: 'x' }, { timeoutMs: 10_000 })).toMatchObject({
        code: 'unavailable',
        message: 'The MCP server s is not available: The process ended with code 3. The call was not made.',
      });
      expect(starts()).toBe(1);
    });

    it('is not started again when it did not start', async () => {
      room = await Room.open({ s: shell(`echo start >> ${log.path}; exit 7`) }, once);
      await another();
      expect(room.state('s')).toMatchObject({ state: 'failed', restarts: 0 });
      expect(starts()).toBe(1);
    });
  });

  it('sees of our environment only what it needs, and its own', async () => {
    process.env.SLUICE_TEST_SECRET = 'must not be seen';
    try {
      room = await Room.open({ s: puppet({}, { env: { OWN: '1' } }) });
      const env = JSON.parse(await room.text('env')) as Record<string, string>;
      expect(env.OWN).toBe('1');
      expect(env.PATH).toBe(process.env.PATH);
      const allowed = new Set(['OWN', 'HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER']);
      expect(Object.keys(env).filter((name) => !allowed.has(name))).toEqual([]);
    } finally {
      delete process.env.SLUICE_TEST_SECRET;
    }
  });

  it('gets nothing of who asks: neither the principal nor its secrets', async () => {
    const [path, behaviour] = (puppet() as { args: string[] }).args as [string, string];
    const entry = { command: 'sh', args: ['-c', `tee ${log.path} | node "$0" "$1"`, path, behaviour] };
    room = await Room.open({ s: entry });
    await room.call('echo', { text: 'x' }, { principal: 'principal-7', secrets: { KEY: 'secret-7' } });
    const sent = log.lines().join('\n');
    expect(sent).toContain('tools/call');
    expect(sent).not.toMatch(/principal-7|secret-7/);
  });

  it('is asked no more once it was stopped', async () => {
    room = await Room.open({ s: puppet({ log: log.path }) });
    await room.servers.close();
    expect(room.state('s')).toMatchObject({ state: 'stopped' });
    expect(await room.error('echo', { text: 'x' })).toMatchObject({
      code: 'unavailable',
      message: 'The MCP server s is not available: it was stopped. The call was not made.',
    });
    expect(starts()).toBe(1);
  });
});
