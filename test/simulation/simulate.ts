import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Hub } from '../../src/streams/hub.ts';
import type { LimitsOf } from '../../src/streams/log.ts';
import { partitionOf } from '../../src/streams/partition-of.ts';
import { startGateway } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Random } from '../support/random.ts';
import { Checker, type Verdict } from './checker.ts';
import { Client } from './client.ts';
import { FaultyLog, type Rule } from './faulty-log.ts';
import { HttpReplica } from './http-replica.ts';
import { Record as PublishRecord } from './record.ts';
import { DirectReplica, type Replica } from './replica.ts';
import { clusterStore, type Fault, memoryStore, PREFIX, redisStore, type SimulatedStore } from './stores.ts';

export interface SimulationOptions {
  readonly store: 'memory' | 'redis' | 'cluster';
  readonly seed: number;
  readonly seconds: number;
  readonly replicas?: number;
  readonly partitions?: number;
  /** Whole gateways and the `eventsource` package in place of hubs and functions; with Redis only. */
  readonly http?: boolean;
  /** How far the feeds lag at first; later by chance. */
  readonly lagMs?: number;
  /** A rule to leave out, to see that it is missed. */
  readonly without?: Rule;
}

export interface SimulationResult extends Verdict {
  readonly acknowledged: number;
  readonly refused: number;
  readonly sessions: number;
  readonly faults: Record<string, number>;
  readonly served: Record<string, number>;
}

const CHANNELS = ['a.0', 'a.1', 'a.2', 'a.3', 'b.0', 'b.1', 'b.2', 'b.3', 'c', 'd'];
const CLIENTS = 40;
const PUBLISHERS = 3;
/** How long everybody may take to get to the end once nothing breaks any more. */
const SETTLE_MS = 20_000;

/** Half of the channels keep plenty, half of them little. */
const mixedLimits: LimitsOf = (channel) => ({
  events: CHANNELS.indexOf(channel) % 2 === 0 ? 5_000 : 20,
  ageMs: 300_000,
});

/** What a gateway without manifests can be told. */
const evenLimits: LimitsOf = () => ({ events: 5_000, ageMs: 300_000 });

const limitsFor = ({ http }: SimulationOptions): LimitsOf => (http ? evenLimits : mixedLimits);

const open = (options: SimulationOptions): Promise<SimulatedStore> | SimulatedStore => {
  if (options.store === 'redis') return redisStore(limitsFor(options));
  if (options.store === 'cluster') return clusterStore(limitsFor(options), options.partitions ?? 4);
  return memoryStore(limitsFor(options), options.partitions ?? 1);
};

/** Gateways, or hubs alone; and what can go wrong besides the store. */
const openReplicas = async (
  options: SimulationOptions,
  store: SimulatedStore,
  random: Random,
): Promise<{ replicas: Replica[]; faults: readonly Fault[]; calm(): void }> => {
  const count = options.replicas ?? 2;
  if (options.http) {
    const replicas = await Promise.all(
      Array.from({ length: count }, async () => {
        const env = {
          REDIS_URL: store.url as string,
          SLUICE_REDIS_KEY_PREFIX: PREFIX,
          SLUICE_BUFFER_EVENTS: '5000',
          SLUICE_MAX_EVENTS_PER_SECOND: '0',
          SLUICE_OSSA_RETRY_MS: '20',
        };
        const running = await startGateway(env);
        return new HttpReplica(running, await TcpProxy.start(running.port));
      }),
    );
    const cut: Fault = { name: 'sockets cut', weight: 4, strike: async (dice) => dice.pick(replicas).cutAll() };
    return { replicas, faults: [...store.faults([]), cut], calm: () => {} };
  }
  const logs = Array.from({ length: count }, () => new FaultyLog(store.open(), options.without));
  const lag = (ms: number): void => {
    for (const log of logs) log.lagMs = ms;
  };
  lag(options.lagMs ?? 0);
  // Small mirrors and pages make followers read from the log, large ones let them be live: both, by seed.
  const sizes = random.pick([{ mirrorEvents: 8, pageEvents: 20 }, { mirrorEvents: 100, pageEvents: 100 }, {}]);
  const replicas = logs.map((log) => new DirectReplica(new Hub(log, sizes), log));
  return { replicas, faults: store.faults(logs), calm: () => lag(0) };
};

const publish = async (
  replicas: readonly Replica[],
  record: PublishRecord,
  random: Random,
  name: string,
  done: AbortSignal,
) => {
  let count = 0;
  while (!done.aborted) {
    const events = Array.from({ length: 1 + random.below(4) }, () => {
      const channel = CHANNELS[Math.floor(random.next() * random.next() * CHANNELS.length)] as string;
      const data = `${name}.${count++}`;
      record.try(channel, data);
      return { channel, data };
    });
    const key = random.chance(0.3) ? `${name}.${count}` : undefined;
    // With a key a publisher may repeat after an error, on any replica, and the events still come once.
    for (let tries = key ? 3 : 1; tries > 0; tries--) {
      try {
        const places = await random.pick(replicas).publish(events, key);
        for (const [i, place] of places.entries()) record.acknowledge((events[i] as { data: string }).data, place);
        break;
      } catch {
        record.refused += events.length;
        await sleep(random.below(20));
      }
    }
    await sleep(random.chance(0.01) ? random.below(500) : random.below(6));
  }
};

const wantedBy = (random: Random): { names: string[]; patterns?: string[] } => {
  if (random.chance(0.2)) return { names: [], patterns: [random.pick(['a.*', 'b.#', '#', '*'])] };
  const names = [...new Set(Array.from({ length: 1 + random.below(4) }, () => random.pick(CHANNELS)))];
  return random.chance(0.1) ? { names, patterns: ['c', 'a.*'] } : { names };
};

const visit = async (client: Client, random: Random, done: AbortSignal): Promise<void> => {
  while (!done.aborted) {
    await client.session(false, done);
    await sleep(random.chance(0.15) ? random.below(1_500) : random.below(120));
  }
};

/** A last event on every channel; whoever follows it must get it. */
const sayGoodbye = async (replica: Replica, record: PublishRecord, until: number): Promise<Map<string, string>> => {
  const last = new Map<string, string>();
  for (const channel of CHANNELS) {
    for (let i = 0; !last.has(channel); i++) {
      const payload = `goodbye.${channel}.${i}`;
      record.try(channel, payload);
      try {
        const [place] = await replica.publish([{ channel, data: payload }], undefined);
        if (place) record.acknowledge(payload, place);
        last.set(channel, payload);
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(100);
      }
    }
  }
  return last;
};

const pickWeighted = <T extends { readonly weight: number }>(items: readonly T[], random: Random): T => {
  let at = random.next() * items.reduce((sum, { weight }) => sum + weight, 0);
  for (const item of items) {
    at -= item.weight;
    if (at < 0) return item;
  }
  return items.at(-1) as T;
};

export const simulate = async (options: SimulationOptions): Promise<SimulationResult> => {
  const random = new Random(options.seed);
  const store = await open(options);
  const partitions = options.store === 'redis' ? 1 : (options.partitions ?? (options.store === 'cluster' ? 4 : 1));
  const { replicas, faults, calm } = await openReplicas(options, store, random);
  const record = new PublishRecord();
  const clients = Array.from({ length: CLIENTS }, () => {
    const mine = random.fork();
    return { client: new Client(wantedBy(mine), replicas, mine), random: mine };
  });
  const done = new AbortController();
  setMaxListeners(0, done.signal);
  const struck: Record<string, number> = {};
  const strike = async (): Promise<void> => {
    const mine = random.fork();
    while (!done.signal.aborted) {
      await sleep(200 + mine.below(600), undefined, { signal: done.signal }).catch(() => {});
      if (done.signal.aborted) return;
      const fault = pickWeighted(faults, mine);
      struck[fault.name] = (struck[fault.name] ?? 0) + 1;
      await fault.strike(mine).catch(() => {});
    }
  };
  try {
    const work = [
      ...clients.map((c) => visit(c.client, c.random, done.signal)),
      ...Array.from({ length: PUBLISHERS }, (_, i) => publish(replicas, record, random.fork(), `p${i}`, done.signal)),
      strike(),
    ];
    await sleep(options.seconds * 1_000);
    done.abort();
    await Promise.all(work);

    calm();
    const until = performance.now() + SETTLE_MS;
    const end = new AbortController();
    setMaxListeners(0, end.signal);
    const last = clients.map(({ client }) => client.session(true, end.signal));
    await sleep(300);
    const goodbye = await sayGoodbye(replicas[0] as Replica, record, until);
    const arrived = (client: Client): boolean => {
      const { names, patterns = [] } = client.wanted;
      const all = CHANNELS.filter(
        (channel) => names.includes(channel) || (patterns.length > 0 && finds(patterns, channel)),
      );
      return all.every((channel) => client.has(goodbye.get(channel) as string));
    };
    while (!clients.every(({ client }) => arrived(client)) && performance.now() < until) await sleep(20);
    const checker = new Checker(record, limitsFor(options), partitions, (channel) => partitionOf(channel, partitions));
    for (const [i, { client }] of clients.entries()) {
      if (!arrived(client)) checker.fail('stuck', `client ${i} ${JSON.stringify(client.wanted)}`);
    }
    end.abort();
    await Promise.all(last);
    for (const [i, { client }] of clients.entries()) checker.check(client, `client ${i}`);
    const served: Record<string, number> = {};
    for (const replica of replicas) {
      for (const [from, n] of Object.entries(replica.served())) served[from] = (served[from] ?? 0) + n;
    }
    return {
      ...checker.verdict(),
      acknowledged: record.acknowledged,
      refused: record.refused,
      sessions: clients.reduce((sum, { client }) => sum + client.sessions, 0),
      faults: struck,
      served,
    };
  } finally {
    done.abort();
    await Promise.all(replicas.map((replica) => replica.stop()));
    await store.stop();
  }
};

const finds = (patterns: readonly string[], channel: string): boolean =>
  patterns.some((pattern) => {
    const segments = channel.split('.');
    if (pattern === '#') return true;
    if (pattern === '*') return segments.length === 1;
    return pattern === channel || (segments.length === 2 && pattern.slice(0, 1) === segments[0]);
  });
