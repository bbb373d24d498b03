// npm run bench:ors: calls of an echo tool over ORS, each session calling again as soon as it has its answer. The gateway is
// a process of its own with the settings that it has by itself; another one calls. Beside them stands what the reference
// server did on two cores like these.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { mintToken } from '../src/auth/token.ts';
import { freePort, startRedis } from '../test/support/redis.ts';
import { Process } from './jobs-shared.ts';
import type { ClientOptions, Measured } from './ors-client.ts';
import { cpuMicros } from './support.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '1,64,512' },
    seconds: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    store: { type: 'string', default: 'memory' },
    /** As `log.level`; what is logged goes to a file. */
    level: { type: 'string', default: 'info' },
    /** With a key, as in production: the log is JSON, and every call carries a token. */
    key: { type: 'boolean', default: false },
    /** A folder for CPU profiles of the gateway. */
    profile: { type: 'string' },
  },
});

/** Measured once on two cores with an echo tool: calls a second and p99 in ms, by sessions. */
const REFERENCE: Readonly<Record<number, { readonly rate: number; readonly p99?: number }>> = {
  1: { rate: 596 },
  64: { rate: 1_024, p99: 139 },
  512: { rate: 613, p99: 1_200 },
};

const SECRET = 'a secret of the bench that is long enough';
/** By itself one principal may have so many jobs at the same time. */
const MAX_JOBS = 1_000;
const listed = (text: string): string[] => text.split(',').filter(Boolean);
const most = Math.max(...listed(values.sessions).map(Number));
const off = most > MAX_JOBS ? ['SLUICE_MAX_JOBS_PER_PRINCIPAL', 'SLUICE_ORS_MAX_SESSIONS_PER_PRINCIPAL'] : [];

interface Running {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const startGateway = async (redisUrl: string | undefined): Promise<Running> => {
  const dir = mkdtempSync(join(tmpdir(), 'bench-ors-'));
  const module = join(import.meta.dirname, 'ors-echo.js');
  writeFileSync(join(dir, 'sluice.yaml'), JSON.stringify({ ors: { environments: [{ module }] } }));
  const port = await freePort();
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SLUICE_|REDIS_|OPENAI_|MCP_|NODE_)/.test(name));
  const output = openSync(join(dir, 'log'), 'w');
  const profiled = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(values.profile)}`];
  const child = spawn(
    process.execPath,
    [...profiled, '--enable-source-maps', join(import.meta.dirname, '../src/cli/sluice.js'), 'serve'],
    {
      cwd: dir,
      env: {
        ...Object.fromEntries(inherited),
        PORT: String(port),
        LOG_LEVEL: values.level,
        SLUICE_SHUTDOWN_DELAY_SECONDS: '0',
        ...(values.key && { SLUICE_JWT_SECRET: SECRET, SLUICE_ORS_PUBLIC: 'false' }),
        ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
        ...Object.fromEntries(off.map((name) => [name, '0'])),
      },
      stdio: ['ignore', output, 'inherit'],
    },
  );
  closeSync(output);
  const left = once(child, 'exit');
  for (let i = 0; child.exitCode === null && i < 200; i++) {
    if ((await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) break;
    await sleep(50);
  }
  return {
    port,
    pid: child.pid as number,
    stop: async () => {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 30_000);
      await left;
      clearTimeout(late);
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** Memory of a process now and at its peak, in MiB. */
const rssMib = (pid: number): { readonly now: number; readonly peak: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return { now: Math.round(kib('VmRSS') / 1024), peak: Math.round(kib('VmHWM') / 1024) };
};

interface Point extends Measured {
  readonly rate: number;
  readonly cpuMicros: number;
  readonly storeMicros: number;
  readonly rss: ReturnType<typeof rssMib>;
}

const measure = async (sessions: number, store: string): Promise<Point> => {
  const redis = store === 'redis' ? await startRedis() : undefined;
  const gateway = await startGateway(redis?.url); // anew each time: what one run leaves behind must not weigh on the next
  const token = values.key ? mintToken(SECRET, { sub: 'bench', scope: 'ors' }, 3_600) : '';
  const client = new Process('ors-client.js', { port: gateway.port, sessions, token } satisfies ClientOptions);
  try {
    await client.answer();
    await client.ask('start');
    await sleep(Number(values['warm-up']) * 1_000);
    const storePid = redis?.child.pid;
    await client.ask('count');
    const cpu = cpuMicros(gateway.pid);
    const storeCpu = storePid ? cpuMicros(storePid) : 0;
    await sleep(Number(values.seconds) * 1_000);
    const used = cpuMicros(gateway.pid) - cpu;
    const storeUsed = storePid ? cpuMicros(storePid) - storeCpu : 0;
    const rss = rssMib(gateway.pid);
    const measured = await client.ask<Measured>('result');
    if (measured.wrong > 0)
      throw new Error(`${measured.wrong} answers were wrong, the first one:\n${measured.example}`);
    const { calls, ms } = measured;
    return { ...measured, rate: (calls / ms) * 1_000, cpuMicros: used / calls, storeMicros: storeUsed / calls, rss };
  } finally {
    await Promise.allSettled([client.stop(), gateway.stop()]);
    await redis?.stop();
  }
};

const rounded = (x: number, digits = 0): number => Number(x.toFixed(digits));

const rounds = Number(values.rounds);
const logged = values.key ? 'JSON' : 'the lines for people that are written while there is no key';
console.log(
  `POST /echo/call in a closed loop, ${values.seconds} s after ${values['warm-up']} s of warm-up, the best of ${rounds}; other work on this machine counts.`,
);
console.log(
  `Log level ${values.level} to a file (${logged}); ${values.key ? 'every call carries a token' : 'no token'}; ${off.length === 0 ? 'all limits as they are by themselves' : `off: ${off.join(', ')}`}.`,
);
const rows: Record<string, string | number>[] = [];
for (const store of listed(values.store)) {
  for (const sessions of listed(values.sessions).map(Number)) {
    let best: Point | undefined;
    for (let round = 0; round < rounds; round++) {
      const point = await measure(sessions, store);
      if (!best || point.rate > best.rate) best = point;
    }
    if (!best) continue;
    const reference = REFERENCE[sessions];
    rows.push({
      store,
      sessions,
      'calls/s': rounded(best.rate),
      'p50 ms': rounded(best.p50, 2),
      'p99 ms': rounded(best.p99, 2),
      'us CPU/call': rounded(best.cpuMicros),
      ...(store === 'redis' && { 'us Redis CPU/call': rounded(best.storeMicros) }),
      'RSS MiB': best.rss.now,
      'peak MiB': best.rss.peak,
      'reference calls/s': reference?.rate ?? '',
      'reference p99 ms': reference?.p99 ?? '',
      'times its calls': reference ? rounded(best.rate / reference.rate, 1) : '',
      'of its p99': reference?.p99 === undefined ? '' : rounded(best.p99 / reference.p99, 3),
    });
  }
}
console.table(rows);
process.exit(0);
