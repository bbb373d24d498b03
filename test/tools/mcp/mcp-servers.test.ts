import { McpServers } from '../../../src/tools/mcp/mcp-servers.ts';
import { eventually } from '../../streams/logs.ts';
import { configured, isAlive, puppet, Room, record, shell } from './room.ts';

// Every test starts processes, and the machine may be busy.
jest.setTimeout(30_000);

describe('MCP servers', () => {
  let room: Room;
  afterEach(() => room.stop());

  it('start at once and in parallel: a slow one, a deaf one and a broken one delay nobody', async () => {
    const begin = performance.now();
    const [path, behaviour] = (puppet() as { args: string[] }).args as [string, string];
    room = new Room({
      slow: { command: 'sh', args: ['-c', 'sleep 10; exec node "$0" "$1"', path, behaviour] },
      deaf: shell('exec sleep 1000'),
      broken: { command: 'no-such-program' },
      good: puppet(),
    });
    expect(performance.now() - begin).toBeLessThan(1_000);
    expect(room.servers.states().map(({ name, state }) => [name, state])).toEqual([
      ['slow', 'starting'],
      ['deaf', 'starting'],
      ['broken', 'starting'],
      ['good', 'starting'],
    ]);
    await eventually(() => room.state('good').state === 'ready');
    expect(await room.text('good.echo', { text: 'quick' })).toBe('quick');
    expect(room.state('slow')).toMatchObject({ state: 'starting', tools: 0 });
    expect(room.state('deaf').state).toBe('starting');
    expect(room.state('broken').state).toBe('failed');
  });

  it('that have not started yet are called when they have', async () => {
    const server = puppet({}, { tools: ['echo'] });
    room = await Room.open({ a: server });
    const tool = room.registry.find('a.echo');
    await room.stop();
    room = new Room({ a: server });
    expect(room.registry.find('a.echo')).toBeUndefined();
    await room.servers.settled(20_000);
    expect(room.registry.find('a.echo')).toMatchObject({ name: tool?.name });
    expect(await room.text('echo', { text: 'now' })).toBe('now');
  });

  it('with a tool of the same name are both reached by their full names, the first also by the bare one', async () => {
    room = await Room.open({
      b: puppet({}, { tools: ['env'], env: { WHO: 'b' } }),
      a: puppet({}, { tools: ['env', 'echo'], env: { WHO: 'a' } }),
    });
    const who = async (name: string): Promise<string> => JSON.parse(await room.text(name)).WHO;
    expect([await who('env'), await who('b.env'), await who('a.env')]).toEqual(['b', 'b', 'a']);
    expect(room.names).toEqual(['env', 'echo', 'a.env']);
    expect(room.warnings).toEqual(['Two tools are called "env": it means b.env; the other is a.env.']);
  });

  it('all end within a few seconds, also those that do not want to', async () => {
    room = await Room.open(
      { a: puppet({ stubborn: true }), b: puppet(), c: shell('exec sleep 1000') },
      { startMs: 500 },
    );
    const pids = [Number(await room.text('a.pid')), Number(await room.text('b.pid'))];
    const running = room.error('a.hang');
    const begin = performance.now();
    await room.servers.close();
    expect(performance.now() - begin).toBeLessThan(5_000);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(room.servers.states().map(({ state }) => state)).toEqual(['stopped', 'stopped', 'stopped']);
    expect(await running).toMatchObject({ code: 'unavailable' });
  });

  it('change only where their configuration has changed', async () => {
    const log = record();
    const kept = puppet({ log: log.path }, { tools: ['pid', 'echo'] });
    room = await Room.open({ gone: puppet(), kept, changed: puppet({}, { tools: ['pid'] }) });
    const [keptPid, gonePid, changedPid] = await Promise.all(
      ['kept.pid', 'gone.pid', 'changed.pid'].map(async (name) => Number(await room.text(name))),
    );
    const provider = room.servers.providers()[1];
    const { servers } = configured({
      fresh: puppet({}, { tools: ['env'] }),
      changed: puppet({}, { tools: ['pid', 'big'] }),
      kept,
    });
    await room.servers.reload(servers);
    room.registry.replace('mcp', room.servers.providers());
    await room.servers.settled(20_000);
    expect(room.servers.states().map(({ name, state }) => [name, state])).toEqual([
      ['fresh', 'ready'],
      ['changed', 'ready'],
      ['kept', 'ready'],
    ]);
    expect(room.servers.providers()[2]).toBe(provider);
    expect(room.registry.list().map(({ fullName }) => fullName)).toEqual([
      'fresh.env',
      'changed.pid',
      'changed.big',
      'kept.echo',
      'kept.pid',
    ]);
    expect(Number(await room.text('kept.pid'))).toBe(keptPid);
    expect(Number(await room.text('changed.pid'))).not.toBe(changedPid);
    expect([gonePid, changedPid].filter((pid) => isAlive(pid as number))).toEqual([]);
    expect(log.lines().filter((line) => line.startsWith('start'))).toHaveLength(1);
    log.remove();
  });

  it('of the same name never run at the same time', async () => {
    const log = record();
    room = await Room.open({ s: puppet({ stubborn: true, log: log.path }) });
    const old = Number(await room.text('pid'));
    const { servers } = configured({ s: puppet({ log: log.path }) });
    const starts = (): number => log.lines().filter((line) => line.startsWith('start')).length;
    const reloaded = room.servers.reload(servers);
    expect(isAlive(old)).toBe(true);
    await eventually(() => starts() === 2);
    expect(isAlive(old)).toBe(false);
    await reloaded;
    log.remove();
  });

  it('need not exist', async () => {
    room = new Room({});
    const none = new McpServers([]);
    await none.settled(1_000);
    expect(none.states()).toEqual([]);
    await none.close();
  });
});
