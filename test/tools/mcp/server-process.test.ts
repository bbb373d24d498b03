import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findSetpriv, ServerProcess } from '../../../src/tools/mcp/server-process.ts';
import { eventually } from '../../streams/logs.ts';
import { running } from '../../support/running.ts';
import { isAlive, PUPPET, puppet, Room, record, WRAPPER } from './room.ts';

const DAEMON = join(__dirname, '../../fixtures/mcp/daemon.js');

/** Processes whose command line holds these words, found in /proc. */
const withWords = (words: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words) && isAlive(pid);
      } catch {
        return false;
      }
    });

/** Words that no other process of this machine has on its command line. */
const marks: string[] = [];
const unique = (): string => {
  const mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;
  marks.push(mark);
  return mark;
};

/** A server behind a shell, as npx starts one. */
const wrapped = (behaviour: object): object => ({ command: WRAPPER, args: [PUPPET, JSON.stringify(behaviour)] });

jest.setTimeout(30_000);

describe('the processes of MCP servers', () => {
  let daemon: ChildProcess | undefined;
  // What this file is about may fail, and must not leave anything behind even then.
  const stop = {
    stop: async () => {
      daemon?.kill('SIGKILL');
      for (const pid of marks.flatMap(withWords)) if (pid !== process.pid) process.kill(pid, 'SIGKILL');
    },
  };
  beforeEach(() => running.add(stop));
  afterEach(async () => {
    await stop.stop();
    running.delete(stop);
  });

  const start = async (servers: object, path = process.env.PATH): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [DAEMON, JSON.stringify({ mcpServers: servers })], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: path },
    });
    daemon = child;
    const said = await new Promise<string>((resolve) => child.stdout?.once('data', (bytes) => resolve(String(bytes))));
    expect(JSON.parse(said)).toEqual(Object.keys(servers).map((name) => `${name} ready`));
    return child;
  };

  it('end when the gateway is killed, even those that ignore everything, with all that they started', async () => {
    const mark = unique();
    const stubborn = { stubborn: true, mark };
    const child = await start({ plain: puppet({ mark }), stubborn: puppet(stubborn), wrapped: wrapped(stubborn) });
    // The program itself has the mark on its command line, too.
    const before = withWords(mark).filter((pid) => pid !== child.pid);
    expect(before).toHaveLength(4);
    child.kill('SIGKILL');
    await eventually(() => before.every((pid) => !isAlive(pid)), 5_000);
    expect(withWords(mark)).toEqual([]);
  });

  it('end also where there is no setpriv', async () => {
    const mark = unique();
    const node = join(process.execPath, '..');
    const child = await start(
      { wrapped: { ...wrapped({ stubborn: true, mark }), env: { PATH: process.env.PATH } } },
      node,
    );
    const before = withWords(mark).filter((pid) => pid !== child.pid);
    expect(before).toHaveLength(2);
    child.kill('SIGKILL');
    await eventually(() => before.every((pid) => !isAlive(pid)), 5_000);
  });

  it('leave nothing behind when they are stopped, nor when the first of them is killed', async () => {
    const mark = unique();
    const log = record();
    const room = await Room.open({ s: wrapped({ stubborn: true, mark, log: log.path }) });
    const before = withWords(mark);
    expect(before).toHaveLength(2);
    const server = Number(await room.text('pid'));
    const shell = before.find((pid) => pid !== server) as number;
    process.kill(shell, 'SIGKILL'); // its child would live on, with nobody to talk to
    await eventually(() => room.state('s').restarts === 1 && room.state('s').state === 'ready');
    expect(isAlive(server)).toBe(false);
    expect(withWords(mark)).toHaveLength(2);
    await room.stop();
    expect(withWords(mark)).toEqual([]);
    log.remove();
  });

  it('have no guard left when they are gone', async () => {
    const guards = (): number => withWords('read -r line; kill -s KILL').length;
    const started = await ServerProcess.start({
      command: 'cat',
      args: [],
      env: { PATH: process.env.PATH ?? '' },
      cwd: undefined,
      setpriv: await findSetpriv(),
      output: () => {},
      notes: () => {},
    });
    const mine = withWords('read -r line; kill -s KILL').filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${started.pid}\0`),
    );
    expect(mine).toHaveLength(1);
    expect(guards()).toBeGreaterThan(0);
    await started.stop();
    expect(await started.ended).toBe('ended with code 0');
    await eventually(() => mine.every((pid) => !isAlive(pid)), 5_000);
    expect(isAlive(started.pid)).toBe(false);
  });
});
