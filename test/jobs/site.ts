import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type JobDialect, jobEncoders, numberOf } from '../../src/jobs/dialect.ts';
import type { JobStream, JobStreamOptions } from '../../src/jobs/job-stream.ts';
import { resumeJob } from '../../src/jobs/resume.ts';
import type { CloseReason } from '../../src/sse/closing.ts';
import { comment, frame } from '../../src/sse/frame.ts';
import { Heartbeat } from '../../src/sse/heartbeat.ts';
import { TimerWheel } from '../../src/sse/timer-wheel.ts';
import { running } from '../support/running.ts';
import type { Replica } from './replicas.ts';

export const testDialect: JobDialect = {
  encoders: jobEncoders(({ seq, data }) => frame({ id: String(seq), data })),
  heartbeat: new Heartbeat(() => comment('keepalive')),
  reset: ({ reason, snapshot, from }) =>
    frame({ event: snapshot === undefined ? 'resync' : 'snapshot', data: `${reason} ${from} ${snapshot ?? ''}` }),
  closing: (retryMs) => frame({ retry: retryMs }),
  positionOf: numberOf,
};

/** The streams of a replica's jobs over HTTP: `/<id>?after=`, for whoever the header `principal` names. */
export class Site {
  readonly reasons: CloseReason[] = [];
  readonly streams = new Set<JobStream>();
  readonly wheel: TimerWheel;
  /** Called with every write of a frame to a socket. */
  wrote: () => void = () => {};
  private readonly server: Server;

  constructor(replica: Replica, options: Partial<JobStreamOptions> = {}, now: () => number = Date.now) {
    this.wheel = new TimerWheel(now).start();
    this.server = createServer((req, res) => {
      const url = new URL(req.url ?? '/', 'http://localhost');
      resumeJob(req, res, {
        jobs: replica.jobs,
        id: url.pathname.slice(1),
        principal: (req.headers.principal as string | undefined) ?? 'ann',
        after: url.searchParams.get('after') ?? undefined,
        dialect: testDialect,
        wheel: this.wheel,
        heartbeatSeconds: 30,
        slowMs: 30_000,
        expiresAt: Number.POSITIVE_INFINITY,
        closed: (reason) => this.reasons.push(reason),
        ...options,
      }).then(
        (stream) => {
          if (stream === undefined) res.writeHead(404).end();
          else if (stream !== 'finished') this.streams.add(stream);
        },
        () => res.destroy(),
      );
    });
    this.server.on('connection', (socket) => {
      const write = socket.write.bind(socket);
      socket.write = ((bytes: Buffer | string, ...rest: never[]) => {
        if (bytes.includes('data: ')) this.wrote();
        return write(bytes, ...rest);
      }) as typeof socket.write;
    });
    running.add(this);
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.wheel.stop();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
