import { testKind } from '../jobs/replicas.ts';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const forever = (): Promise<void> => new Promise(() => {});

describe('jobs of whole gateways', () => {
  let redis: RunningRedis;
  let gateways: RunningGateway[];
  const kind = testKind();

  beforeAll(async () => {
    redis = await startRedis();
    const env = { REDIS_URL: redis.url, SLUICE_MAX_JOBS_PER_PRINCIPAL: '3' };
    gateways = [await startGateway(env), await startGateway(env)];
    for (const { gateway } of gateways) gateway.jobs.declare(kind);
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded));
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await redis.stop();
  });

  const start = (i: number, principal: string): Promise<{ id: string }> =>
    (gateways[i] as RunningGateway).gateway.jobs.start({ kind, principal }, forever);

  it('count against one limit of their principal over all replicas', async () => {
    await start(0, 'ann');
    const { id } = await start(1, 'ann');
    await start(0, 'ann');
    await expect(start(0, 'ann')).rejects.toMatchObject({ code: 'limit' });
    await expect(start(1, 'ann')).rejects.toMatchObject({ code: 'limit' });
    await start(1, 'bob');
    await gateways[0]?.gateway.jobs.cancel(id, 'ann', 'make room');
    const jobs = gateways[1]?.gateway.jobs;
    await eventually(async () => (await jobs?.find(id))?.cancel === 'make room');
    jobs?.running(); // still there: this work does not listen, and is ended for it later
    expect((await jobs?.find(id))?.state).toBe('running');
  });

  it('show in the metrics', async () => {
    const headers = { Authorization: `Bearer ${tokenFor({ scope: 'admin' })}` };
    const text = await (await fetch(`${gateways[0]?.url}/metrics`, { headers })).text();
    expect(text).toContain('sluice_jobs{kind="test",state="running"} 2');
    expect(text).toContain('sluice_jobs{kind="test",state="waiting"} 0');
    expect(text).toContain('sluice_jobs_started_total{kind="test"} 2');
  });

  it('are ended when their gateway stops, and leave it out of the store', async () => {
    const { id } = await start(0, 'cyd');
    await gateways[0]?.stop();
    const record = await gateways[1]?.gateway.jobs.find(id);
    expect(record?.state).toBe('interrupted');
  });
});
