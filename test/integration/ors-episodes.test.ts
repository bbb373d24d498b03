import { eventually } from '../streams/logs.ts';
import { lab, startHosting } from '../support/environment.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

/** What each call has given, in their order over all gateways. */
const ran: number[] = [];
let release: () => void = () => {};
const tools = [
  { name: 'count', description: 'Counts.', run: () => String(ran.push(ran.length)) },
  {
    name: 'slow',
    description: 'Counts, and waits.',
    run: async () => {
      ran.push(ran.length);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return 'over';
    },
  },
];

type Ask = (on: RunningGateway, path: string, body: object, more?: Record<string, string>) => Promise<string>;
const sending =
  (sid: string): Ask =>
  async ({ url }, path, body, more = {}) => {
    const headers = { 'X-Session-ID': sid, ...more };
    return (await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  };
/** Of a call that has ended; through another gateway a comment may stand in between. */
const taskIdOf = (text: string): string =>
  /^event: task_id\ndata: (\S+)\n\n(?::.*\n\n)?event: end\n/.exec(text)?.[1] ?? '';
const call = { name: 'count', input: {} };
const keyed = { 'Idempotency-Key': 'step-1' };
const task = { split: 'train', index: 0 };

describe.each([
  ['one gateway', false],
  ['two gateways with one Redis', true],
])('a session id that is used again, on %s', (_what, shared) => {
  let redis: RunningRedis | undefined;
  let one: RunningGateway;
  let two: RunningGateway;

  beforeAll(async () => {
    redis = shared ? await startRedis() : undefined;
    const env = redis ? { REDIS_URL: redis.url } : {};
    one = await startHosting([lab('lab', { tools })], { env });
    two = redis ? await startHosting([lab('lab', { tools })], { env }) : one;
    await eventually(() => one.gateway.hub.loaded && two.gateway.hub.loaded);
  });

  it('runs its calls anew: an Idempotency-Key counts for one session only', async () => {
    const ask = sending('keyed');
    await ask(one, '/create', task);
    const first = await ask(two, '/call', call, keyed);
    expect(taskIdOf(first)).not.toBe('');
    expect(await ask(one, '/call', call, keyed)).toBe(first);
    const count = ran.length;
    await ask(two, '/delete', {});
    await ask(two, '/create', task);
    const again = await ask(one, '/call', call, keyed);
    expect(taskIdOf(again)).not.toBe(taskIdOf(first));
    expect(ran.length).toBe(count + 1);
  });

  it('does not know the calls of the session before', async () => {
    const ask = sending('known');
    await ask(one, '/create', task);
    const task_id = taskIdOf(await ask(one, '/call', call));
    expect(taskIdOf(await ask(two, '/call', { ...call, task_id }))).toBe(task_id);
    await ask(one, '/delete', {});
    await ask(one, '/create', task);
    for (const on of [one, two]) {
      expect(await ask(on, '/call', { ...call, task_id })).toBe('event: error\ndata: unknown task_id\n\n');
    }
  });

  it('does not join a call whose client was lost in the session before', async () => {
    const ask = sending('left');
    const slow = { name: 'slow', input: {} };
    await ask(one, '/create', task);
    const gone = new AbortController();
    const count = ran.length;
    const lost = await fetch(`${two.url}/call`, {
      method: 'POST',
      headers: { 'X-Session-ID': 'left' },
      body: JSON.stringify(slow),
      signal: gone.signal,
    });
    await eventually(() => ran.length === count + 1);
    gone.abort();
    await lost.text().catch(() => {});
    const closed = async (): Promise<boolean> =>
      /sluice_streams_closed_total\{reason="client"\} [1-9]/.test(await two.gateway.metrics.registry.metrics());
    await eventually(closed);
    release();
    await ask(one, '/delete', {});
    await ask(one, '/create', task);
    const again = ask(one, '/call', slow);
    await eventually(() => ran.length === count + 2);
    release();
    expect(taskIdOf(await again)).not.toBe('');
  });
});
