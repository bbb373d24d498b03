import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeDirectory } from './directory.ts';
import { freePort } from './redis.ts';
import { running } from './running.ts';

export interface RunningNginx {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** One server with what is said about proxies by default; buffering is on, so it is the gateway that has to ask for none. */
const configuration = (port: number, backends: readonly number[]): string => `
daemon off;
master_process off;
pid nginx.pid;
worker_processes 1;
error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream gateways {
    ${backends.map((backend) => `server 127.0.0.1:${backend} fail_timeout=1s;`).join('\n    ')}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout 1h;
      add_header X-Backend $upstream_addr;
    }
    location /plain/ {
      proxy_pass http://gateways/;
      add_header X-Backend $upstream_addr;
    }
  }
}
`;

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

/**
 * A real nginx that spreads requests over gateways in turn. Every answer names its gateway in `X-Backend`. What is
 * asked for under `/plain/` it asks for in HTTP/1.0, as it does by default.
 */
export const startNginx = async (backends: readonly number[]): Promise<RunningNginx> => {
  const port = await freePort();
  const directory = makeDirectory();
  const file = directory.write('nginx.conf', configuration(port, backends));
  // setpriv: the kernel kills it when this process dies; it is a single one, a worker would live on. -e: before it reads the file it would write to /var/log.
  const argv = ['--pdeathsig', 'KILL', '/usr/sbin/nginx', '-p', directory.path, '-c', file, '-e', 'stderr'];
  const child = spawn('setpriv', argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (bytes: Buffer) => {
    log += bytes.toString();
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const nginx: RunningNginx = {
    port,
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      running.delete(nginx);
      child.kill('SIGKILL');
      await exited;
      directory.remove();
    },
  };
  running.add(nginx);
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`nginx exited with ${child.exitCode}: ${log}`);
    await sleep(10);
  }
  return nginx;
};
