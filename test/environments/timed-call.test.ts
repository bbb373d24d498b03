import { getEventListeners } from 'node:events';
import type { Episode, Outcome } from '../../src/environments/environment.ts';
import { CallTimeout, timedCall } from '../../src/environments/timed-call.ts';
import { Gate } from './stage.ts';

const CALL = { name: 'work', input: {}, taskId: 't' };
const DONE: Outcome = { ok: true, output: { blocks: [], metadata: null, reward: null, finished: false } };

describe('a call with a time limit', () => {
  let gate: Gate<Outcome>;
  let signal: AbortSignal | undefined;
  const ending = new AbortController();
  const episode: Episode = {
    tools: async () => [],
    prompt: async () => [],
    close: async () => {},
    call: (call) => {
      signal = call.signal;
      return gate.promise;
    },
  };
  beforeEach(() => {
    gate = new Gate();
  });

  it('leaves nothing on the signal of its session', async () => {
    const { outcome, over } = timedCall(episode, CALL, 60_000, ending.signal);
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1);
    gate.open(DONE);
    expect(await outcome).toBe(DONE);
    await over;
    expect(getEventListeners(ending.signal, 'abort')).toEqual([]);
  });

  it('ends with its time, tells the tool so, and is over only when the tool is', async () => {
    const { outcome, over } = timedCall(episode, CALL, 1, ending.signal);
    await expect(outcome).rejects.toThrow(new CallTimeout('work took longer than 0.001 s.'));
    expect(signal?.aborted).toBe(true);
    let ended = false;
    void over.then(() => {
      ended = true;
    });
    await Promise.resolve();
    expect(ended).toBe(false);
    gate.fail(new Error('stopped'));
    await over;
  });

  it('ends with its session, for the same reason', async () => {
    const { outcome } = timedCall(episode, CALL, 0, ending.signal);
    ending.abort(new Error('deleted'));
    await expect(outcome).rejects.toThrow('deleted');
  });
});
