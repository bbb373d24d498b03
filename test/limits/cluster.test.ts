import { Connections } from '../../src/limits/connections.ts';
import { PublishRate } from '../../src/limits/publish-rate.ts';
import { findMaster } from '../../src/streams/redis/topology.ts';
import { startCluster } from '../support/redis.ts';
import { ReplicaLink } from '../support/replica-link.ts';

it('counts on one node of a cluster, by the hash tag of its prefix', async () => {
  const nodes = await startCluster();
  const settings = {
    kind: 'cluster',
    nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    keyPrefix: 'sluice:',
    partitions: 4,
  } as const;
  const keyPrefix = 'sluice:{0}:';
  const { port } = await findMaster(settings, keyPrefix);
  const links = [await new ReplicaLink(port).connect(), await new ReplicaLink(port).connect()];
  const failures: unknown[] = [];
  const failed = (error: unknown): void => void failures.push(error);
  const [one, two] = links.map(({ current }) => ({
    connections: new Connections({ total: 0, perPrincipal: 1, redis: current, keyPrefix, renewEveryMs: 0, failed }),
    rate: new PublishRate({ perSecond: 1, redis: current, keyPrefix, failed }),
  }));
  expect(await one?.connections.acquire('a')).toMatchObject({ allowed: true });
  expect(await two?.connections.acquire('a')).toEqual({ allowed: false, reason: 'principal' });
  expect(await one?.rate.take('a', 100)).toEqual({ allowed: true });
  expect(await two?.rate.take('a', 1)).toMatchObject({ allowed: false });
  expect(failures).toEqual([]);
  for (const link of links) link.cut();
}, 20_000);
