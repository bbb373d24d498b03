// npm run bench:slow: a reader that never reads, for a minute at 500 events/s: it must be cut, the process must not grow,
// and the other readers must get everything in time.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { outputOf, startSluice } from './contestants.ts';
import { memoryKib } from './support.ts';

const SECONDS = 75;
const [rate, size, readers] = ['500', '1000', '50'];
const dir = mkdtempSync(join(tmpdir(), 'bench-'));
const sink = join(dir, 'sink');
execFileSync('gcc', ['-O2', '-o', sink, join(import.meta.dirname, '../../bench/sink.c')]);
const gateway = await startSluice({ SLUICE_METRICS_PUBLIC: 'true' });
const { port, pid } = gateway;

const stalled = connect(port, '127.0.0.1');
stalled.write(`GET ${gateway.subscribe} HTTP/1.1\r\nHost: x\r\n\r\n`);
stalled.pause();
const reading = spawn(sink, [String(port), gateway.subscribe, readers, String(SECONDS + 3)], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
const output = outputOf(reading);
await new Promise((resolve) => reading.stderr?.once('data', resolve));
await sleep(500);
const publisher = join(import.meta.dirname, 'publisher.js');
const publishing = spawn(
  process.execPath,
  [publisher, String(port), gateway.publish, rate, size, String(SECONDS), gateway.authorization],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const published = outputOf(publishing);
const begin = performance.now();
let cutAfter: number | undefined;
const memory: number[] = [];
for (let i = 0; i < SECONDS; i++) {
  await sleep(1_000);
  if (i % 5 === 4) memory.push(Math.round(memoryKib(pid) / 1024));
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  if (cutAfter === undefined && /closed_total\{reason="slow"\} 1/.test(metrics))
    cutAfter = (performance.now() - begin) / 1_000;
}
const { sent } = JSON.parse(await published) as { sent: number };
const { events, p50, p99 } = JSON.parse(await output) as { events: number; p50: number; p99: number };
const deliveries = events - 2 * Number(readers);
console.log(`${rate} events/s of ${size} bytes for ${SECONDS} s, ${readers} readers and one that never reads`);
console.log(`cut after ${cutAfter === undefined ? 'never' : `${Math.round(cutAfter)} s`}`);
console.log(`memory of the process every 5 s, MiB: ${memory.join(' ')}`);
console.log(
  `others: ${((100 * deliveries) / (sent * Number(readers))).toFixed(1)} % delivered, p50 ${p50} ms, p99 ${p99} ms`,
);
gateway.stop();
rmSync(dir, { recursive: true, force: true });
process.exit(0);
