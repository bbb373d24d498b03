// npm run bench:models: what ChatBackend adds to each streamed chunk, against reading the same backend without looking
// at what it says. The backend runs in a process of its own; readers take turns in this one, several rounds of each.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ChatBackend } from '../src/models/chat-backend.ts';
import type { ModelEvent } from '../src/models/model.ts';
import { Models } from '../src/models/models.ts';
import { percentile } from './support.ts';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '50' },
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '3' },
    flood: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
  },
});

interface Load {
  readonly count: number;
  readonly pauseMs: number;
}

/** Reads one answer; `seen` is told the time that a chunk carries, in microseconds. */
type Reader = (load: Load, seen: (stamp: number) => void) => Promise<void>;

const server = fork(join(import.meta.dirname, 'model-server.js'), { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
if (!server.stdout) throw new Error('The backend has no output.');
const [port] = (await once(server.stdout, 'data')) as [Buffer];
const url = `http://127.0.0.1:${Number(String(port))}/v1/chat/completions`;

const now = (): number => Number(process.hrtime.bigint() / 1_000n);

/** The newest stamp in some bytes, found without parsing them. */
const stampIn = (bytes: Uint8Array): number | undefined => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = buffer.lastIndexOf('"t');
  if (at < 0) return undefined;
  const end = buffer.indexOf(' ', at);
  return end < 0 ? undefined : Number(buffer.toString('latin1', at + 2, end));
};

const taste = (bytes: Uint8Array, seen: (stamp: number) => void): void => {
  const stamp = stampIn(bytes);
  if (stamp !== undefined) seen(stamp);
};

const plain: Reader = (load, seen) =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST' }, (response) => {
      response.on('data', (bytes: Buffer) => taste(bytes, seen));
      response.on('end', resolve);
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(load));
  });

const fetched: Reader = async (load, seen) => {
  const { body } = await fetch(url, { method: 'POST', body: JSON.stringify(load) });
  for await (const bytes of body ?? []) taste(bytes as Uint8Array, seen);
};

const backend = new ChatBackend({ baseUrl: url.replace('/chat/completions', ''), maxBytes: 2 ** 40 });
const models = new Models({ backends: [{ name: 'bench', backend }] });

const through =
  (
    stream: (fields: { model: string; messages: []; extra: Record<string, unknown> }) => AsyncIterable<ModelEvent>,
  ): Reader =>
  async (load, seen) => {
    for await (const event of stream({ model: 'bench', messages: [], extra: { ...load } })) {
      if (event.type === 'text') seen(Number(event.delta.slice(1, event.delta.indexOf(' '))));
    }
  };

const READERS: Readonly<Record<string, Reader>> = {
  'node:http, unread': plain,
  'fetch, unread': fetched,
  ChatBackend: through((fields) => backend.stream(fields)),
  'Models, ChatBackend': through((fields) => models.stream(fields)),
};

interface Cost {
  readonly cpu: number;
  readonly delays: readonly number[];
}

const measure = async (reader: Reader, streams: number, load: Load): Promise<Cost> => {
  const delays: number[] = [];
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: streams }, () => reader(load, (stamp) => void delays.push(now() - stamp))));
  const { user, system } = process.cpuUsage(before);
  return { cpu: (user + system) / (streams * load.count), delays: delays.sort((a, b) => a - b) };
};

const median = (numbers: readonly number[]): number =>
  percentile(
    [...numbers].sort((a, b) => a - b),
    0.5,
  );

const compare = async (title: string, streams: number, load: Load, paced: boolean): Promise<void> => {
  const costs = new Map<string, Cost[]>(Object.keys(READERS).map((name) => [name, []]));
  for (const reader of Object.values(READERS))
    await measure(reader, 2, { ...load, count: Math.min(load.count, 2_000) / (paced ? 20 : 1) });
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, reader] of Object.entries(READERS)) costs.get(name)?.push(await measure(reader, streams, load));
  }
  const base = median((costs.get('node:http, unread') ?? []).map(({ cpu }) => cpu));
  console.log(title);
  console.table(
    [...costs].map(([reader, rounds]) => {
      const cpu = median(rounds.map((cost) => cost.cpu));
      const delay = (p: number) => Math.round(median(rounds.map(({ delays }) => percentile(delays, p))));
      return {
        reader,
        'us CPU/chunk': Math.round(cpu * 100) / 100,
        added: Math.round((cpu - base) * 100) / 100,
        ratio: Math.round((cpu / base) * 100) / 100,
        ...(paced && { 'p50 us': delay(0.5), 'p99 us': delay(0.99) }),
      };
    }),
  );
};

const streams = Number(values.streams);
const pauseMs = 1_000 / Number(values.rate);
const count = Math.round((Number(values.seconds) * 1_000) / pauseMs);
await compare(`${streams} answers at once, ${values.rate} chunks a second each`, streams, { count, pauseMs }, true);
await compare(
  `one answer of ${values.flood} chunks, as fast as it is read`,
  1,
  { count: Number(values.flood), pauseMs: 0 },
  false,
);
models.close();
server.disconnect();
