// npm run bench:log: what the log costs, on the memory store and on a Redis of its own on loopback.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Encoder } from '../src/streams/entry.ts';
import { Hub } from '../src/streams/hub.ts';
import type { StreamLog } from '../src/streams/log.ts';
import { MemoryLog } from '../src/streams/memory-log.ts';
import { RedisLog } from '../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../src/streams/redis/settings.ts';
import { startRedis } from '../test/support/redis.ts';
import { cpuMicros, rate, spread } from './support.ts';

const SIZE = 200;
const limitsOf = () => ({ events: 100, ageMs: 300_000 });
const encoder: Encoder = { encode: ({ data }, uuid) => Buffer.from(`id: msg-${uuid}\ndata: ${data}\n\n`) };

const connected = (hub: Hub, channel: string, on: (data: string) => void): Promise<void> =>
  new Promise((resolve) => {
    const sink = {
      connected: () => resolve(),
      resync: () => {},
      events: ({ events }: { events: readonly { data: string }[] }) => {
        for (const { data } of events) on(data);
        return true;
      },
    };
    hub.follow({ names: [channel], encoder, sink });
  });

/** Appends with some in flight at a time; returns how many per second, and the store's CPU per event. */
const appends = async (log: StreamLog, batch: number, storePid: number | undefined): Promise<string> => {
  const data = 'x'.repeat(SIZE);
  const until = performance.now() + 3_000;
  const cpu = storePid ? cpuMicros(storePid) : 0;
  const begin = performance.now();
  let count = 0;
  const worker = async (name: string): Promise<void> => {
    while (performance.now() < until) {
      await log.append(Array.from({ length: batch }, () => ({ channel: name, data })));
      count += batch;
      if (!storePid && count % 1_000 < batch) await sleep(0); // one process: let the clock be seen
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, i) => worker(`bench.${i}`)));
  const ms = performance.now() - begin;
  const cost = storePid ? `, Redis CPU ${((cpuMicros(storePid) - cpu) / count).toFixed(1)} us per event` : '';
  return `${rate(count, ms)}${cost}`;
};

/** From the call of append to the follower, at a moderate rate. */
const latency = async (publisher: StreamLog, hub: Hub): Promise<string> => {
  const times: number[] = [];
  await connected(hub, 'bench.latency', (data) => times.push(performance.now() - Number(data.split(' ')[0])));
  for (let i = 0; i < 3_000; i++) {
    void publisher.append([{ channel: 'bench.latency', data: `${performance.now()} ${'x'.repeat(SIZE)}` }]);
    await sleep(1);
  }
  await sleep(100);
  return `${spread(times)} (${times.length} events)`;
};

/** One channel, a thousand functions. */
const fanOut = async (log: StreamLog, hub: Hub): Promise<string> => {
  const FOLLOWERS = 1_000;
  let delivered = 0;
  await Promise.all(
    Array.from({ length: FOLLOWERS }, () =>
      connected(hub, 'bench.fanout', () => {
        delivered++;
      }),
    ),
  );
  const EVENTS = 2_000;
  const cpu = process.cpuUsage();
  const begin = performance.now();
  for (let i = 0; i < EVENTS; i++) {
    await log.append([{ channel: 'bench.fanout', data: 'x'.repeat(SIZE) }]);
    if (i % 10 === 0) await sleep(1);
  }
  while (delivered < EVENTS * FOLLOWERS) await sleep(1);
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return `${rate(delivered, ms)} deliveries, ${((user + system) / delivered).toFixed(3)} us CPU per delivery, publishing included`;
};

const measure = async (name: string, publisher: StreamLog, follower: StreamLog, storePid?: number): Promise<void> => {
  const hub = new Hub(follower);
  await sleep(500);
  console.log(`${name}, events of ${SIZE} bytes`);
  console.log(`  append, one at a time, 16 in flight   ${await appends(publisher, 1, storePid)}`);
  console.log(`  append, batches of 50, 16 in flight   ${await appends(publisher, 50, storePid)}`);
  console.log(`  append to follower                    ${await latency(publisher, hub)}`);
  console.log(`  fan-out to 1,000 functions            ${await fanOut(publisher, hub)}`);
  hub.close();
};

const memory = new MemoryLog({ limitsOf });
await measure('memory', memory, memory);

const server = await startRedis();
const settings = parseRedisUrl(server.url);
const [one, two] = [new RedisLog({ settings, limitsOf }), new RedisLog({ settings, limitsOf })];
await measure('redis, published on one replica and followed on another', one, two, Number(server.child.pid));
await Promise.all([one.close(), two.close()]);
await server.stop();
process.exit(0);
