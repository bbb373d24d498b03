import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ModuleEnvironment } from '../../src/environments/module/module-environment.ts';
import { eventually } from '../streams/logs.ts';
import { makeDirectory } from '../support/directory.ts';
import { lab, startHosting } from '../support/environment.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis.ts';
import { Trainer } from '../support/trainer.ts';

type Line = Readonly<Record<string, unknown>>;

/** An episode with a reward, one whose setup fails, and one that is there when the gateway stops. */
const episodes = async ({ url }: RunningGateway): Promise<string[]> => {
  const trainer = new Trainer(url);
  const whole = await trainer.session({ split: 'train', index: 1 });
  await trainer.call(whole, 'repeat', { text: 'said by a model', times: 1 });
  await trainer.call(whole, 'submit', { n: 1 });
  await trainer.call(whole, 'refuse');
  await trainer.call(whole, 'throw');
  await trainer.ask('POST', '/delete', { sid: whole });
  const broken = await trainer.session({ task_spec: { setup: 'throw' } });
  await trainer.ask('GET', '/prompt', { sid: broken });
  await trainer.ask('POST', '/delete', { sid: broken });
  const last = await trainer.session({ split: 'test', index: 1 }); // its teardown fails
  await trainer.ask('GET', '/task_tools', { sid: last });
  trainer.close();
  return [whole, broken, last];
};

const expectWhole = (lines: readonly Line[], [whole, broken, last]: readonly string[]): void => {
  const of = (sid: string | undefined): Line[] => lines.filter((line) => line.sid === sid);
  for (const line of lines) expect(line).toMatchObject({ environment: 'lab', at: expect.stringMatching(/Z$/) });
  expect(of(whole)).toMatchObject([
    { event: 'begin', split: 'train', index: 1 },
    { event: 'setup', ok: true },
    { event: 'call', tool: 'repeat', outcome: 'ok', reward: null, finished: false, after_finished: false },
    { event: 'call', tool: 'submit', outcome: 'ok', reward: 1, finished: true, after_finished: false },
    { event: 'call', tool: 'refuse', outcome: 'refused', reward: null, after_finished: true },
    { event: 'call', tool: 'throw', outcome: 'error', reward: null, after_finished: true },
    { event: 'end', stop: 'deleted', finished: true, calls: 4, rewarded: 1, reward_sum: 1 },
  ]);
  expect(of(broken)).toMatchObject([
    { event: 'begin', task: { setup: 'throw' } },
    { event: 'setup', ok: false, error: expect.stringContaining('cannot begin') },
    { event: 'end', stop: 'setup_failed', calls: 0, reward_sum: null },
  ]);
  expect(of(last)).toMatchObject([
    { event: 'begin' },
    { event: 'setup', ok: true },
    { event: 'end', stop: 'stopped', finished: false, calls: 0, reward_sum: null },
  ]);
  expect(lines).toHaveLength(13);
  expect(JSON.stringify(lines)).not.toContain('said by a model');
};

describe('the episode log of a gateway', () => {
  it('is a file that is whole when the gateway has stopped; the metrics say the same', async () => {
    const directory = makeDirectory();
    const file = join(directory.path, 'episodes.jsonl');
    const running = await startHosting([lab()], { env: { SLUICE_ORS_PUBLIC: 'true', SLUICE_ORS_EPISODE_LOG: file } });
    const sids = await episodes(running);
    const { registry } = running.gateway.metrics;
    /** Every count of a metric that is not 0, by its labels. */
    const counts = async (name: string): Promise<Record<string, number>> => {
      const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
      const all = values as { labels: Record<string, string>; value: number; metricName?: string }[];
      const counted = all.filter(
        ({ metricName = name, value }) => /(?:_count|_total|_sessions)$/.test(metricName) && value > 0,
      );
      return Object.fromEntries(counted.map(({ labels, value }) => [Object.values(labels).join(' '), value]));
    };
    expect(await counts('sluice_ors_sessions')).toEqual({ 'lab ready': 1 });
    expect(await counts('sluice_ors_setup_seconds')).toEqual({ 'lab ok': 2, 'lab error': 1 });
    expect(await counts('sluice_ors_call_seconds')).toEqual({ 'lab ok': 2, 'lab refused': 1, 'lab error': 1 });
    expect(await counts('sluice_ors_teardown_seconds')).toEqual({ 'lab ok': 1 });
    expect(await counts('sluice_ors_sessions_ended_total')).toEqual({ 'lab deleted': 2 });
    const closed = jest.spyOn(ModuleEnvironment.prototype, 'close');
    await running.stop();
    expect(closed).toHaveBeenCalled();
    closed.mockRestore();
    expect(await counts('sluice_ors_sessions')).toEqual({});
    expect(await counts('sluice_ors_teardown_seconds')).toEqual({ 'lab ok': 1, 'lab error': 1 });
    expect(await counts('sluice_ors_sessions_ended_total')).toEqual({ 'lab deleted': 2, 'lab stopped': 1 });
    const text = readFileSync(file, 'utf8');
    expectWhole(
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line),
      sids,
    );
    directory.remove();
  });

  it('is a stream of Redis that is whole when the gateway has stopped', async () => {
    const redis = await startRedis();
    const running = await startHosting([lab()], {
      env: { SLUICE_ORS_PUBLIC: 'true', SLUICE_ORS_EPISODE_LOG: 'redis', REDIS_URL: redis.url },
    });
    await eventually(async () => (await fetch(`${running.url}/readyz`)).status === 200);
    const sids = await episodes(running);
    await running.stop();
    const admin = new Redis(redis.port, '127.0.0.1');
    const [key = ''] = await admin.keys('*ors:episodes');
    const entries = await admin.xrange(key, '-', '+');
    admin.disconnect();
    await redis.stop();
    expect(entries.every(([, fields]) => fields.length === 2 && fields[0] === 'e')).toBe(true);
    expectWhole(
      entries.map(([, fields]) => JSON.parse(fields[1] as string) as Line),
      sids,
    );
  });
});
