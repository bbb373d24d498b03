import { EnvironmentError, type Outcome } from '../../src/environments/environment.ts';
import { within } from '../../src/environments/pause.ts';
import type { Session } from '../../src/environments/session.ts';
import type { Hosted } from '../../src/environments/sessions.ts';
import { BareEnvironment } from './bare.ts';
import { Gate, Replica, settle } from './stage.ts';

const WAIT_MS = 60_000;
const SECRET = 'the secret of ann';
const never = (): Promise<never> => new Promise(() => {});
const said = (output: object): Outcome => ({ ok: true, output }) as unknown as Outcome;
const fine = said({ blocks: [], metadata: null, reward: null, finished: false });

describe('a session, whatever its environment does', () => {
  let bare: BareEnvironment;
  let replica: Replica;
  let now: number;
  const begin = async (limits: Partial<Hosted['limits']> = {}): Promise<Session> => {
    const hosted: Hosted = {
      environment: bare,
      ...{ maxSessions: 0, maxQueued: 0 },
      limits: { maxCalls: 16, callTimeoutMs: 0, maxOutputBytes: 1_000, ...limits },
    };
    replica = new Replica([hosted], { now: () => now });
    const session = await replica.create(hosted, 's', 'ann', { KEY: SECRET });
    await settle();
    return session;
  };
  const call = (session: Session): Promise<Outcome> => session.call('tool', {}, 'task', WAIT_MS);
  beforeEach(() => {
    bare = new BareEnvironment();
    now = 1_000_000;
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
  });
  afterEach(async () => {
    await replica.sessions.close();
    expect(jest.getTimerCount()).toBe(0); // neither limits of calls nor looks at sessions go on
    jest.useRealTimers();
  });

  it.each([
    ['a reward that is not a number', { blocks: [], reward: Number.NaN, finished: false }, /finite/],
    ['a reward without end', { blocks: [], reward: Number.NEGATIVE_INFINITY, finished: false }, /finite/],
    ['a reward in words', { blocks: [], reward: '1', finished: false }, /finite/],
    ['an end that is neither true nor false', { blocks: [], reward: null, finished: 1 }, /finished/],
    ['no blocks', { reward: null, finished: false }, /blocks/],
  ])('refuses %s', async (_, output, says) => {
    const session = await begin();
    bare.calls = async () => said(output);
    await expect(call(session)).rejects.toThrow(says);
    expect(session).toMatchObject({ rewarded: 0, finished: false, calls: 1 });
    expect(replica.watched.reports).toMatchObject([{ end: 'error', reward: null, finished: false }]);
  });

  it('passes on what kind of failure it was, and nothing that is secret, however it is asked', async () => {
    const session = await begin();
    const fail = async (): Promise<never> => {
      throw new EnvironmentError('busy', `too much for ${SECRET}`, new Error(SECRET));
    };
    bare.calls = fail;
    bare.prompts = fail;
    for (const asked of [call(session), session.prompt(WAIT_MS)]) {
      const error = (await asked.catch((thrown: unknown) => thrown)) as EnvironmentError;
      expect(error).toMatchObject({ code: 'busy', message: 'too much for [secret]' });
      expect(String((error.cause as Error).stack)).not.toContain(SECRET);
    }
    bare.calls = async () => ({ ok: false, error: `not with ${SECRET}`, reason: 'not_found' });
    expect(await call(session)).toEqual({ ok: false, error: 'not with [secret]', reason: 'not_found' });
    expect(replica.watched.reports.at(-1)).toMatchObject({ end: 'refused', error: 'not with [secret]' });
  });

  it('hides secrets in the cause of a setup that has failed, too', async () => {
    bare.opens = async () => {
      throw new Error(SECRET, { cause: new Error(SECRET) });
    };
    const session = await begin();
    const error = (await session.prompt(WAIT_MS).catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toBe('Setup failed: [secret]');
    expect(String((error.cause as Error).stack)).not.toContain(SECRET);
    expect(session.state).toBe('failed');
  });

  it('ends a tool after its own time and not that of the settings; 0 is no limit', async () => {
    let own: number | undefined = 1_000;
    bare.limits = () => own;
    bare.calls = never;
    const session = await begin({ callTimeoutMs: 5_000 });
    const fates: string[] = [];
    const begun = async (limit: number | undefined): Promise<void> => {
      own = limit;
      call(session).catch(({ message }: Error) => fates.push(message));
      await settle();
    };
    await begun(1_000);
    await begun(undefined);
    await begun(0);
    await begun(2 ** 40); // longer than a timer can wait
    await jest.advanceTimersByTimeAsync(1_000);
    expect(fates).toEqual(['tool took longer than 1 s.']);
    await jest.advanceTimersByTimeAsync(4_000);
    expect(fates).toEqual(['tool took longer than 1 s.', 'tool took longer than 5 s.']);
    await jest.advanceTimersByTimeAsync(3_600_000);
    expect(fates).toHaveLength(2);
    const ended = replica.sessions.end(session, 'deleted');
    await jest.advanceTimersByTimeAsync(5_000);
    await ended;
    expect(fates.slice(2)).toEqual(['Session deleted', 'Session deleted']);
  });

  it('leaves no timer behind a call that ends in time', async () => {
    bare.calls = async () => fine;
    const session = await begin({ callTimeoutMs: 5_000 });
    const before = jest.getTimerCount();
    await call(session);
    await session.prompt(WAIT_MS);
    expect(jest.getTimerCount()).toBe(before);
  });

  it('that has ended answers nobody, though its teardown still waits for a tool', async () => {
    bare.calls = never;
    const session = await begin();
    call(session).catch(() => {});
    await settle();
    bare.calls = async () => fine;
    const ended = replica.sessions.end(session, 'expired');
    expect(session.state).toBe('ended');
    expect(replica.sessions.counts().get('bare')).toMatchObject({ ended: 1, ready: 0 });
    const gone = { code: 'gone', message: expect.stringMatching(/^Session expired/) };
    await expect(call(session)).rejects.toMatchObject(gone);
    await expect(session.prompt(WAIT_MS)).rejects.toMatchObject(gone);
    await expect(replica.sessions.find('ann', 's')).rejects.toMatchObject(gone);
    expect(() => session.admit()).toThrow(expect.objectContaining(gone));
    await jest.advanceTimersByTimeAsync(5_000);
    await ended;
    expect(bare.log).toEqual(['open', 'close']);
  });

  it('ends a question that the environment does not answer when it is deleted', async () => {
    bare.prompts = never;
    const session = await begin();
    const asked = session.prompt(WAIT_MS);
    await settle();
    await replica.sessions.end(session, 'deleted');
    await expect(asked).rejects.toMatchObject({ code: 'gone', message: 'Session deleted' });
  });

  it('is not idle while a question waits, and right after it', async () => {
    const answer = new Gate<[]>();
    bare.prompts = () => answer.promise;
    const session = await begin();
    const asked = session.prompt(WAIT_MS);
    await settle();
    now += 100 * 60_000;
    expect(session.idleMs(now)).toBe(0);
    answer.open([]);
    await asked;
    expect(session.idleMs(now)).toBe(0);
    now += 1;
    expect(session.idleMs(now)).toBe(1);
    session.touch(now - 5_000); // what was known before does not make it older
    expect(session.idleMs(now)).toBe(1);
  });

  it('tears an episode down that comes when everybody has stopped waiting for it', async () => {
    const setup = new Gate();
    bare.opens = () => setup.promise;
    const session = await begin();
    const ended = replica.sessions.end(session, 'deleted');
    await jest.advanceTimersByTimeAsync(5_000);
    await ended;
    expect(bare.log).toEqual(['open']);
    setup.open();
    await settle();
    expect(bare.log).toEqual(['open', 'close']);
    expect(session.state).toBe('ended');
  });

  it('takes any number of calls at the same time if there is no limit', async () => {
    const session = await begin({ maxCalls: 0 });
    for (let i = 0; i < 100; i++) session.admit();
  });
});

describe('a wait', () => {
  it('that is longer than a timer can do is not over at once, and leaves no timer behind', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      const work = new Gate<string>();
      const waited = within(2 ** 40, work.promise);
      await jest.advanceTimersByTimeAsync(1_000);
      work.open('done');
      expect(await waited).toBe('done');
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
