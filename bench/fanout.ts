// npm run bench:fanout: one process, many subscribers; Nchan, the C module for nginx, beside it in the same run where it is
// installed (apt-get install nginx-light libnginx-mod-nchan). Needs gcc for the readers.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Contestant, NCHAN_MODULE, outputOf, startNchan, startSluice } from './contestants.ts';
import { cpuMicros, memoryKib } from './support.ts';

const { values } = parseArgs({
  options: {
    subscribers: { type: 'string', default: '1000' },
    rates: { type: 'string', default: '10,100,500,2000' },
    size: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '8' },
  },
});
const SECONDS = Number(values.seconds);
const here = import.meta.dirname;

const measure = async (
  contestant: Contestant,
  rate: string,
  sink: string,
): Promise<Record<string, string | number>> => {
  const { port, pid } = contestant;
  const before = memoryKib(pid);
  const reading = spawn(sink, [String(port), contestant.subscribe, values.subscribers, String(SECONDS + 4)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = outputOf(reading);
  await new Promise((resolve) => reading.stderr?.once('data', resolve));
  await sleep(1_500);
  const connected = memoryKib(pid);
  const cpu = cpuMicros(pid);
  const publishing = spawn(
    process.execPath,
    [
      join(here, 'publisher.js'),
      String(port),
      contestant.publish,
      rate,
      values.size,
      String(SECONDS),
      contestant.authorization,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const { sent, answered } = JSON.parse(await outputOf(publishing)) as { sent: number; answered: number };
  const used = cpuMicros(pid) - cpu;
  const { events, p50, p99 } = JSON.parse(await output) as { events: number; p50: number; p99: number };
  const subscribers = Number(values.subscribers);
  const greetings = 2 * subscribers; // the end of the headers, and a first frame or comment
  const deliveries = events - greetings;
  return {
    server: contestant.name,
    'events/s': rate,
    published: answered === sent ? sent : `${answered} of ${sent}`,
    'delivered %': Math.round((deliveries / (sent * subscribers)) * 1_000) / 10,
    'deliveries/CPU s': Math.round(deliveries / (used / 1e6)),
    'us CPU/delivery': Math.round((used / deliveries) * 100) / 100,
    'p50 ms': p50,
    'p99 ms': p99,
    'KiB/connection': Math.round(((connected - before) / subscribers) * 10) / 10,
  };
};

const dir = mkdtempSync(join(tmpdir(), 'bench-'));
const sink = join(dir, 'sink');
execFileSync('gcc', ['-O2', '-o', sink, join(here, '../../bench/sink.c')]);
const contestants = [() => startSluice(), ...(existsSync(NCHAN_MODULE) ? [startNchan] : [])];
const rows: Record<string, string | number>[] = [];
console.log(`${values.subscribers} subscribers of one channel, events of ${values.size} bytes, ${SECONDS} s each`);
for (const rate of values.rates.split(',')) {
  for (const start of contestants) {
    const contestant = await start(); // anew each time: what one run leaves behind must not weigh on the next
    if (rate === values.rates.split(',')[0]) console.log(`${contestant.name}: ${contestant.notes}`);
    try {
      rows.push(await measure(contestant, rate, sink));
    } finally {
      contestant.stop();
      await sleep(300);
    }
  }
}
console.table(rows);
rmSync(dir, { recursive: true, force: true });
