import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { EpisodeRequest } from '../../src/environments/environment.ts';
import { EpisodeLog, linesToFile, linesToRedis, type WriteLines } from '../../src/environments/episode-log.ts';
import type { CallReport, Session } from '../../src/environments/session.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../../src/streams/redis/settings.ts';
import { fail } from '../../src/tools/module/define-tool.ts';
import { keepAll, ready } from '../streams/logs.ts';
import { makeDirectory } from '../support/directory.ts';
import { startRedis } from '../support/redis.ts';
import { Gate, Replica, Stage, settle } from './stage.ts';

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const SECRETS = { KEY: 'canary-of-ann' };

interface Given {
  readonly secrets: Readonly<Record<string, string>>;
}

/** Where lines go, and what went wrong on the way. */
class Paper {
  readonly lines: string[] = [];
  readonly batches: number[] = [];
  readonly warnings: string[] = [];
  full = false;
  /** What the next writes wait for. */
  pen: Promise<void> = Promise.resolve();

  readonly write: WriteLines = async (lines) => {
    this.batches.push(lines.length);
    await this.pen;
    if (this.full) throw new Error('no space left');
    this.lines.push(...lines);
  };

  get said(): Record<string, unknown>[] {
    return this.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  log(write = this.write): EpisodeLog {
    return new EpisodeLog({ write, warn: (message) => this.warnings.push(message), now: () => AT });
  }
}

/** A replica whose sessions are written to a log. */
const replicaOf = (stage: Stage, log: EpisodeLog): Replica =>
  new Replica([stage.hosted()], {
    now: () => AT - 1_234,
    observe: {
      created: (session, request) => log.began(session, request),
      setUp: (session, ms, error) => log.setUp(session, ms, error === undefined ? undefined : session.setupFailure),
      called: (session, report) => log.called(session, report),
      ended: (session, end) => log.ended(session, end),
      tornDown: () => {},
    },
  });

const begin = async (
  stage: Stage,
  replica: Replica,
  choice: EpisodeRequest['choice'] = { split: 'train', index: 2 },
): Promise<Session> => {
  await replica.sessions.create(stage.hosted(), { sid: 's', principal: 'ann', choice, secrets: SECRETS });
  return replica.sessions.local('ann', 's') as Session;
};

const report = (n: number): CallReport => ({
  ...{ taskId: `task-${n}`, tool: 'echo', end: 'ok', ms: 1, reward: null, finished: false },
});

const frozen = async (run: () => Promise<void>): Promise<void> => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
  try {
    await run();
  } finally {
    jest.useRealTimers();
  }
};

describe('the episode log', () => {
  let stage: Stage;
  let paper: Paper;
  beforeEach(() => {
    stage = new Stage();
    paper = new Paper();
    stage.setup.open();
  });
  const head = { at: '2026-01-02T03:04:05.678Z', sid: 's', environment: 'stage', principal: 'ann' };

  it('has a line for the begin, the setup, each call and the end; no reward is not a reward of zero', async () => {
    const log = paper.log();
    const replica = replicaOf(stage, log);
    const session = await begin(stage, replica);
    const outputs = [{ text: 'x' }, { text: 'x', reward: 0 }, { text: 'x', reward: 1, finished: true }, { text: 'x' }];
    for (const [i, output] of outputs.entries()) {
      stage.tool = new Gate<unknown>();
      stage.tool.open(output);
      await session.call('wait', { name: 'what was asked' }, `task-${i}`, 1_000);
    }
    await session.call('none', {}, 'task-4', 1_000);
    await replica.sessions.end(session, 'deleted');
    await log.close();
    const call = { event: 'call', ...head, tool: 'wait', outcome: 'ok', ms: expect.any(Number) };
    expect(paper.said).toEqual([
      { event: 'begin', ...head, split: 'train', index: 2 },
      { event: 'setup', ...head, ms: expect.any(Number), ok: true },
      { ...call, task_id: 'task-0', reward: null, finished: false, after_finished: false },
      { ...call, task_id: 'task-1', reward: 0, finished: false, after_finished: false },
      { ...call, task_id: 'task-2', reward: 1, finished: true, after_finished: false },
      { ...call, task_id: 'task-3', reward: null, finished: false, after_finished: true },
      {
        ...call,
        ...{ task_id: 'task-4', tool: 'none', outcome: 'refused', error: "'none' is not a valid tool" },
        ...{ reward: null, finished: false, after_finished: true },
      },
      { event: 'end', ...head, stop: 'deleted', finished: true, calls: 5, rewarded: 2, reward_sum: 1, ms: 1_234 },
    ]);
    expect(paper.said.every(({ ms }) => ms === undefined || Number.isInteger(ms))).toBe(true);
    expect(paper.lines.join()).not.toContain('what was asked');
    expect(paper.warnings).toEqual([]);
  });

  it('has the task that was given, and no sum where there were no rewards', async () => {
    const log = paper.log();
    const replica = replicaOf(stage, log);
    const session = await begin(stage, replica, { task: { n: 7 } });
    await session.call('echo', { text: 'x' }, 'task', 1_000);
    await replica.sessions.end(session, 'expired');
    await log.close();
    expect(paper.said[0]).toEqual({ event: 'begin', ...head, task: { n: 7 } });
    expect(paper.said.at(-1)).toMatchObject({ stop: 'expired', finished: false, rewarded: 0, reward_sum: null });
  });

  it('has a sum of zero where all rewards were zero', async () => {
    const log = paper.log();
    const replica = replicaOf(stage, log);
    const session = await begin(stage, replica);
    stage.tool.open({ text: 'x', reward: 0 });
    await session.call('wait', {}, 'task', 1_000);
    await replica.sessions.end(session, 'stopped');
    await log.close();
    expect(paper.said.at(-1)).toMatchObject({ stop: 'stopped', rewarded: 1, reward_sum: 0 });
  });

  it('says that a setup has failed, whatever ended the session then', async () => {
    stage.setup = new Gate();
    const log = paper.log();
    const replica = replicaOf(stage, log);
    const session = await begin(stage, replica);
    stage.setup.fail(new Error('no disk'));
    await settle();
    await replica.sessions.end(session, 'deleted');
    await log.close();
    expect(paper.said).toMatchObject([
      { event: 'begin' },
      { event: 'setup', ok: false, error: 'Setup failed: no disk [secret]' },
      { event: 'end', stop: 'setup_failed', calls: 0, reward_sum: null },
    ]);
  });

  it('holds no secret, though setups and tools repeat them', async () => {
    const log = paper.log();
    stage = new Stage('stage', {
      tools: [
        { name: 'refuse', description: 'Says no.', run: (_: unknown, { secrets }: Given) => fail(secrets.KEY ?? '') },
        {
          name: 'throw',
          description: 'Breaks.',
          run: (_: unknown, { secrets }: Given) => {
            throw new Error(secrets.KEY);
          },
        },
      ],
    });
    stage.setup.open();
    const replica = replicaOf(stage, log);
    const session = await begin(stage, replica);
    const refused = await session.call('refuse', {}, 'task-1', 1_000);
    await expect(session.call('throw', {}, 'task-2', 1_000)).rejects.toThrow('[secret]');
    await replica.sessions.end(session, 'deleted');
    await log.close();
    expect(refused).toMatchObject({ ok: false, error: expect.stringContaining('[secret]') });
    expect(paper.said.filter(({ event }) => event === 'call')).toMatchObject([
      { outcome: 'refused', error: expect.stringContaining('[secret]') },
      { outcome: 'error', error: expect.stringContaining('[secret]') },
    ]);
    expect(JSON.stringify([paper.lines, refused])).not.toContain(SECRETS.KEY);
  });

  describe('that cannot be written', () => {
    let session: Session;
    let replica: Replica;
    beforeEach(async () => {
      replica = new Replica([stage.hosted()]);
      session = await begin(stage, replica);
    });
    afterEach(() => replica.sessions.close());
    const ids = (): unknown[] => paper.said.map(({ task_id }) => task_id);

    it('is written when it can be, in its order, and says once at a time that it cannot', () =>
      frozen(async () => {
        const log = paper.log();
        paper.full = true;
        log.called(session, report(1));
        log.called(session, report(2));
        await settle();
        log.called(session, report(3));
        await jest.advanceTimersByTimeAsync(1_000);
        expect(paper.batches).toEqual([2, 3]); // one try a second, with all that has come
        expect(paper.warnings).toEqual(['The episode log cannot be written: no space left']);
        paper.full = false;
        await jest.advanceTimersByTimeAsync(1_000);
        expect(ids()).toEqual(['task-1', 'task-2', 'task-3']);
        paper.full = true;
        log.called(session, report(4));
        await settle();
        expect(paper.warnings).toHaveLength(2);
        paper.full = false;
        await jest.advanceTimersByTimeAsync(1_000);
        expect(ids()).toEqual(['task-1', 'task-2', 'task-3', 'task-4']);
        expect(paper.warnings).toHaveLength(2);
        await log.close();
      }));

    it('keeps the newest ten thousand lines, and tells once how many were lost', () =>
      frozen(async () => {
        const log = paper.log();
        paper.full = true;
        for (let n = 1; n <= 10_003; n++) log.called(session, report(n));
        await settle();
        paper.full = false;
        await jest.advanceTimersByTimeAsync(1_000);
        expect(ids()).toHaveLength(10_000);
        expect(ids().slice(0, 2)).toEqual(['task-4', 'task-5']);
        expect(ids().at(-1)).toBe('task-10003');
        expect(Math.max(...paper.batches)).toBe(1_000);
        log.called(session, report(10_004));
        await settle();
        expect(paper.warnings.slice(1)).toEqual(['3 lines of the episode log were lost.']);
        await log.close();
      }));

    it('is over all the same, and tells how many lines were lost', () =>
      frozen(async () => {
        const log = paper.log();
        paper.full = true;
        for (let n = 1; n <= 5; n++) log.called(session, report(n));
        await settle();
        const closed = log.close();
        await jest.advanceTimersByTimeAsync(1_000);
        await closed;
        expect(paper.lines).toEqual([]);
        expect(paper.warnings).toEqual([
          'The episode log cannot be written: no space left',
          '5 lines of the episode log were lost.',
        ]);
      }));

    it('is written to its end when it is closed, one batch behind the other', async () => {
      const log = paper.log();
      const pen = new Gate();
      paper.pen = pen.promise;
      log.called(session, report(1));
      await settle();
      log.called(session, report(2));
      await settle();
      expect(paper.batches).toEqual([1]);
      let over = false;
      const closed = log.close().then(() => {
        over = true;
      });
      await settle();
      expect(over).toBe(false);
      pen.open();
      await closed;
      expect(ids()).toEqual(['task-1', 'task-2']);
    });

    it('is appended to its file line by line, and the file is told from one that cannot be written', async () => {
      const directory = makeDirectory();
      const file = join(directory.path, 'later', 'episodes.jsonl');
      await expect(linesToFile(file)(['lost'])).rejects.toThrow('ENOENT');
      mkdirSync(join(directory.path, 'later'));
      for (const n of [1, 3]) {
        const log = paper.log(linesToFile(file));
        log.called(session, report(n));
        log.called(session, report(n + 1));
        await log.close();
      }
      const lines = readFileSync(file, 'utf8').split('\n');
      expect(lines.pop()).toBe(''); // every line has its end
      expect(lines.map((line) => (JSON.parse(line) as { task_id: string }).task_id)).toEqual([
        'task-1',
        'task-2',
        'task-3',
        'task-4',
      ]);
      directory.remove();
    });
  });
});

describe('the episode log in Redis', () => {
  it('is a stream of lines, written whole or not at all', async () => {
    const server = await startRedis();
    const admin = new Redis(server.port, '127.0.0.1');
    const store = new RedisLog({ settings: parseRedisUrl(server.url), limitsOf: keepAll, replica: 'here' });
    try {
      await ready(store);
      const [part] = store.parts;
      if (!part) throw new Error('no partition');
      const seen: string[][] = [];
      const watched = { query: part.query.bind(part) };
      const write = linesToRedis(watched, 'log');
      const monitor = await admin.monitor();
      monitor.on('monitor', (_time: string, args: string[]) => seen.push(args));
      await write(['one', 'two']);
      const entries = async (): Promise<string[][]> =>
        (await admin.xrange('log', '-', '+')).map(([, fields]) => fields);
      expect(await entries()).toEqual([
        ['e', 'one'],
        ['e', 'two'],
      ]);
      // As many as it may hold; what is beyond goes.
      const [added] = seen.filter(([name]) => name?.toLowerCase() === 'xadd');
      expect(added?.slice(2, 5)).toEqual(['MAXLEN', '~', '1000000']);
      monitor.disconnect();

      // The first lines have room and the last has not.
      const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
      await admin.config('SET', 'maxmemory', used + 8_000_000);
      const large = Array.from({ length: 20 }, (_, i) => `${i} ${'x'.repeat(1_000_000)}`);
      await expect(write(large)).rejects.toThrow();
      expect(await entries()).toHaveLength(2);
      await admin.config('SET', 'maxmemory', 0);
      await write(['three']);
      expect((await entries()).at(-1)).toEqual(['e', 'three']);

      await admin.set('taken', 'by something else');
      await expect(linesToRedis(watched, 'taken')(['four'])).rejects.toThrow();
    } finally {
      await store.close();
      admin.disconnect();
      await server.stop();
    }
  }, 20_000);
});

describe('an episode log that is closed', () => {
  it('that could not be written is tried once more when it closes, at once', async () => {
    const stage = new Stage();
    const hosted = stage.hosted();
    const replica = new Replica([hosted]);
    stage.setup.open();
    const session = await replica.create(hosted);
    let attempts = 0;
    const written: string[] = [];
    const warnings: string[] = [];
    const log = new EpisodeLog({
      write: async (lines) => {
        if (++attempts === 1) throw new Error('no space');
        written.push(...lines);
      },
      warn: (message) => warnings.push(message),
    });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      log.setUp(session, 5, undefined);
      await settle();
      expect([attempts, warnings]).toEqual([1, ['The episode log cannot be written: no space']]);
      await log.close(); // nobody turns the clock
    } finally {
      jest.useRealTimers();
      await replica.sessions.close();
    }
    expect(written.map((line) => JSON.parse(line))).toMatchObject([{ event: 'setup', sid: 's', ok: true }]);
  });
});
