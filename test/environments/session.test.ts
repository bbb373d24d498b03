import { getEventListeners } from 'node:events';
import type { Session } from '../../src/environments/session.ts';
import { Gate, Replica, Stage, settle } from './stage.ts';

const WAIT_MS = 60_000;

/** What a promise has come to: its value, its error's code or message, or `pending`. */
const fateOf = async (promise: Promise<unknown>): Promise<unknown> => {
  const told = promise.catch((error: { code?: string; message: string }) => error.code ?? error.message);
  await settle();
  return Promise.race([told, Promise.resolve('pending')]);
};

describe('a session', () => {
  let stage: Stage;
  let replica: Replica;
  let session: Session;
  const begin = async (limits: Parameters<Stage['hosted']>[0] = {}, secrets: Record<string, string> = {}) => {
    stage = new Stage();
    const hosted = stage.hosted(limits);
    replica = new Replica([hosted]);
    session = await replica.create(hosted, 's', 'ann', secrets);
  };
  const call = (name = 'wait'): Promise<unknown> => session.call(name, { text: 'hi' }, 'task', WAIT_MS);
  afterEach(() => {
    stage.setup.open();
    stage.tool.open('late');
    return replica.sessions.close();
  });

  it('is there before its setup has ended, and whoever asks for something waits for it', async () => {
    await begin();
    const prompt = session.prompt(WAIT_MS);
    const tools = session.tools(WAIT_MS);
    const called = call('echo');
    expect(await fateOf(Promise.race([prompt, tools, called]))).toBe('pending');
    stage.setup.open();
    expect(await prompt).toEqual([{ text: 'Task 0', detail: null, type: 'text' }]);
    expect((await tools).map(({ name }) => name)).toEqual(['echo', 'wait']);
    expect(await called).toMatchObject({ ok: true, output: { blocks: [{ text: 'hi' }], reward: null } });
    expect(stage.log).toEqual(['setup']);
  });

  it('that is asked for its prompt again and again keeps nothing of it', async () => {
    const signals: AbortSignal[] = [];
    stage = new Stage('stage', {
      prompt: ({ signal }: { signal: AbortSignal }) => {
        signals.push(signal);
        return 'Go.';
      },
    });
    const hosted = stage.hosted();
    replica = new Replica([hosted]);
    session = await replica.create(hosted);
    stage.setup.open();
    for (let i = 0; i < 3; i++) await session.prompt(WAIT_MS);
    expect(signals.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0, 0]);
  });

  it('says that a setup takes too long to those who have waited long enough, and to nobody else', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      await begin();
      const impatient = session.prompt(1_000);
      const patient = session.prompt(WAIT_MS);
      jest.advanceTimersByTime(1_000);
      expect(await fateOf(impatient)).toBe('slow');
      expect(await fateOf(patient)).toBe('pending');
      stage.setup.open();
      await patient;
    } finally {
      jest.useRealTimers();
    }
  });

  it('whose setup has failed says so for ever, without its secrets, and has had its teardown', async () => {
    await begin({}, { KEY: 'the secret of ann' });
    const waiting = session.prompt(WAIT_MS);
    stage.setup.fail(new Error('no disk'));
    await expect(waiting).rejects.toMatchObject({ code: 'setup', message: 'Setup failed: no disk [secret]' });
    await expect(call()).rejects.toMatchObject({ code: 'setup' });
    expect(() => session.checkSetup()).toThrow('no disk');
    await replica.sessions.end(session, 'deleted');
    expect(stage.log).toEqual(['setup', 'teardown']);
  });

  it('that is deleted during its setup tells those who wait, stops the setup and tears down once', async () => {
    await begin();
    const waiting = session.prompt(WAIT_MS);
    await settle();
    const ended = replica.sessions.end(session, 'deleted');
    await expect(waiting).rejects.toMatchObject({ code: 'gone', message: 'Session deleted' });
    stage.setup.open();
    await ended;
    expect(stage.log).toEqual(['setup', 'setup told to stop', 'teardown']);
  });

  it('has its teardown once, however often and for whatever reasons it is ended', async () => {
    await begin();
    stage.setup.open();
    await settle();
    stage.teardown = new Gate();
    const ends = [replica.sessions.end(session, 'deleted'), replica.sessions.end(session, 'expired')];
    await settle();
    ends.push(replica.sessions.end(session, 'stopped'));
    expect(await fateOf(Promise.race(ends))).toBe('pending');
    stage.teardown.open();
    await Promise.all(ends);
    await replica.sessions.close();
    expect(stage.log).toEqual(['setup', 'teardown']);
    expect(replica.watched.seen).toEqual(['created', 'set up', 'deleted', 'torn down']);
    expect(session.ended).toBe('deleted');
  });

  it('is over even if its teardown fails', async () => {
    await begin();
    stage.setup.open();
    await settle();
    stage.teardown = new Gate();
    stage.teardown.fail(new Error('stuck'));
    await replica.sessions.end(session, 'deleted');
    expect(replica.watched.seen.at(-1)).toBe('teardown failed');
    expect(replica.sessions.local('ann', 's')).toBeUndefined();
  });

  it('ends its calls before it is torn down, and not after', async () => {
    await begin();
    stage.setup.open();
    const called = call();
    await settle();
    const ended = replica.sessions.end(session, 'deleted');
    await expect(called).rejects.toMatchObject({ code: 'gone' });
    await settle();
    expect(stage.log).toEqual(['setup', 'call', 'told to stop']); // the tool is still at it
    stage.tool.open('late');
    await ended;
    expect(stage.log.at(-1)).toBe('teardown');
  });

  it('is torn down all the same when a tool does not stop', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      await begin();
      stage.setup.open();
      call().catch(() => {});
      await settle();
      const ended = replica.sessions.end(session, 'deleted');
      await settle();
      jest.advanceTimersByTime(5_000);
      await ended;
      expect(stage.log.at(-1)).toBe('teardown');
    } finally {
      jest.useRealTimers();
    }
  });

  it('stops a tool that takes longer than it may, and says so', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      await begin({ callTimeoutMs: 2_000 });
      stage.setup.open();
      const called = call();
      await settle();
      jest.advanceTimersByTime(1_999);
      expect(await fateOf(called)).toBe('pending');
      jest.advanceTimersByTime(1);
      await expect(called).rejects.toThrow('wait took longer than 2 s.');
      expect(stage.log).toContain('told to stop');
      expect(replica.watched.reports).toMatchObject([{ tool: 'wait', end: 'timeout', reward: null }]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('shows what a tool throws, without its secrets', async () => {
    await begin({}, { KEY: 'the secret of ann' });
    stage.setup.open();
    stage.tool.open(new Error('broken by'));
    await expect(call()).rejects.toThrow('broken by [secret]');
    expect(replica.watched.reports).toMatchObject([{ end: 'error', error: 'broken by [secret]' }]);
  });

  it('keeps a reward of nothing apart from a reward of zero, and adds up the rest', async () => {
    await begin();
    stage.setup.open();
    for (const reward of [null, 0, 0.5, 1]) {
      stage.tool = new Gate<unknown>();
      stage.tool.open({ text: 'x', reward, finished: reward === 1 });
      await call();
    }
    expect(session).toMatchObject({ rewarded: 3, rewardSum: 1.5, finished: true, calls: 4 });
    expect(replica.watched.reports).toMatchObject([{ reward: null }, { reward: 0 }, { reward: 0.5 }, { reward: 1 }]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('refuses a reward of %p', async (reward) => {
    await begin();
    stage.setup.open();
    stage.tool.open({ text: 'x', reward });
    await expect(call()).rejects.toThrow(/reward/);
    expect(session.rewarded).toBe(0);
  });

  it('takes so many calls at the same time and no more', async () => {
    await begin({ maxCalls: 2 });
    const [leave] = [session.admit(), session.admit()];
    expect(() => session.admit()).toThrow(expect.objectContaining({ code: 'busy' }));
    leave?.();
    leave?.(); // twice does no harm
    session.admit();
    expect(() => session.admit()).toThrow();
  });
});
