import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mintToken } from '../src/auth/token.ts';

const SECRET = 'a secret of the bench that is long enough';
export const NCHAN_MODULE = '/usr/lib/nginx/modules/ngx_nchan_module.so';

/** A server under test. */
export interface Contestant {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly subscribe: string;
  readonly publish: string;
  readonly authorization: string;
  readonly notes: string;
  stop(): void;
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

const answers = async (url: string): Promise<void> => {
  for (let i = 0; i < 200; i++) {
    if (await fetch(url).catch(() => undefined)) return;
    await sleep(50);
  }
  throw new Error(`${url} does not answer`);
};

export const startSluice = async (more: Readonly<Record<string, string>> = {}): Promise<Contestant> => {
  const port = await freePort();
  const limits = [
    'MAX_CONNECTIONS',
    'MAX_CONNECTIONS_PER_PRINCIPAL',
    'MAX_EVENTS_PER_SECOND',
    'MAX_PUBLISH_PER_SECOND',
  ];
  const env = {
    ...process.env,
    PORT: String(port),
    SLUICE_JWT_SECRET: SECRET,
    LOG_LEVEL: 'warn',
    ...more,
    ...Object.fromEntries(limits.map((name) => [`SLUICE_${name}`, '0'])),
  };
  const child = spawn(process.execPath, [join(import.meta.dirname, '../src/cli/sluice.js'), 'serve'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await answers(`http://127.0.0.1:${port}/livez`);
  const token = mintToken(SECRET, { sub: 'bench', channels: { subscribe: ['#'], publish: ['#'] } }, 3_600);
  return {
    name: 'sluice',
    port,
    pid: child.pid as number,
    subscribe: `/events?channels=bench&token=${token}`,
    publish: '/events',
    authorization: `Bearer ${token}`,
    notes: `embedded store; off: ${limits.join(', ')}`,
    stop: () => child.kill('SIGKILL'),
  };
};

export const startNchan = async (): Promise<Contestant> => {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'nchan-'));
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${dir}/${name};`)
    .join(' ');
  writeFileSync(
    join(dir, 'nginx.conf'),
    `load_module ${NCHAN_MODULE}; daemon off; worker_processes 1; pid ${dir}/pid; error_log ${dir}/error.log; user root;
events { worker_connections 20000; }
http { access_log off; ${temp} keepalive_requests 1000000000;
  server { listen 127.0.0.1:${port};
    location = /pub { nchan_publisher; nchan_channel_id bench; nchan_message_buffer_length 100; nchan_message_timeout 5m; }
    location = /sub { nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest; } } }`,
  );
  const master = spawn('nginx', ['-c', join(dir, 'nginx.conf')], { stdio: 'ignore' });
  await answers(`http://127.0.0.1:${port}/`);
  const [pid = ''] = execFileSync('pgrep', ['-P', String(master.pid)], { encoding: 'utf8' })
    .trim()
    .split('\n');
  return {
    name: 'nchan',
    port,
    pid: Number(pid),
    subscribe: '/sub',
    publish: '/pub',
    authorization: '',
    notes: 'one worker, memory store',
    stop: () => {
      master.kill('SIGTERM');
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** What a program prints, once it has ended. */
export const outputOf = async (child: ChildProcess): Promise<string> => {
  let text = '';
  child.stdout?.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  await new Promise((resolve) => child.once('close', resolve));
  return text;
};
