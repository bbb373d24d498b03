import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Metrics } from '../../src/ops/metrics.ts';
import { startGateway } from '../support/gateway.ts';

it('the metrics are those that the page lists, and of the type it says', async () => {
  const page = readFileSync(join(__dirname, '../../docs/OPERATIONS.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `(sluice_\w+)` \| (\w+) \| (?:`\w+`(?:, )?)* *\|/gm)].map(([, name, type]) => [
    name,
    type,
  ]);
  const { gateway, stop } = await startGateway();
  const metrics = (await gateway.metrics.registry.getMetricsAsJSON()) as unknown as { name: string; type: string }[];
  const real = metrics.filter(({ name }) => name.startsWith('sluice_')).map(({ name, type }) => [name, type]);
  expect(listed.sort()).toEqual(real.sort());
  await stop();
});

it('counts what happens to jobs', async () => {
  const metrics = new Metrics();
  const { jobs } = metrics;
  jobs.started('run');
  jobs.ended('run', 'completed');
  jobs.first('run', 4);
  jobs.batch(7);
  jobs.fenced('run');
  jobs.restored('run');
  jobs.reaped('run');
  const text = await metrics.registry.metrics();
  for (const line of [
    'sluice_jobs_started_total{kind="run"} 1',
    'sluice_jobs_ended_total{kind="run",state="completed"} 1',
    'sluice_jobs_fenced_total{kind="run"} 1',
    'sluice_jobs_restored_total{kind="run"} 1',
    'sluice_jobs_reaped_total{kind="run"} 1',
    'sluice_job_first_event_seconds_sum{kind="run"} 0.004',
    'sluice_job_batch_events_bucket{le="10"} 1',
    'sluice_job_batch_events_bucket{le="5"} 0',
  ]) {
    expect(text).toContain(line);
  }
});
