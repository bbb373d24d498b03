import express, { type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import type { CloseReason } from '../../sse/closing.ts';
import { Connection } from '../../sse/connection.ts';
import type { Drainable } from '../../sse/drainable.ts';
import { comment, frame } from '../../sse/frame.ts';
import { framed } from '../../sse/framing.ts';
import { Heartbeat } from '../../sse/heartbeat.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import { encodeUuid } from '../../streams/id.ts';
import type { Status, StatusReports } from './status-reports.ts';
import { type AcquireStream, placeFor } from './stream-place.ts';

export interface StatusRoutesOptions {
  readonly authenticator: Authenticator;
  readonly reports: StatusReports;
  readonly wheel: TimerWheel;
  /** The gateway's own. */
  readonly agentId: string;
  readonly heartbeatSeconds: number;
  readonly retryMs: number;
  readonly slowMs: number;
  readonly acquire: AcquireStream;
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason) => void;
}

const heartbeat = new Heartbeat((time) => comment(`heartbeat - ${time.toISOString()}`));

/** `GET /agent-status`: how busy everything is, now and every few seconds. There is nothing to resume. */
export const statusRoutes = (options: StatusRoutesOptions): Router => {
  const { authenticator, reports, agentId } = options;
  const router = express.Router({ caseSensitive: true });
  let reported = 0;
  const frameOf = (payload: Status, retry?: number): string => {
    const ms = Date.now();
    const id = `status-${encodeUuid({ ms, seq: ++reported, partition: 0, epoch: 0 })}`;
    const event = { type: 'status', id, timestamp: new Date(ms).toISOString(), payload, metadata: { agentId } };
    return frame({ ...(retry !== undefined && { retry }), event: 'status', id, data: JSON.stringify(event) });
  };

  router.get('/agent-status', async (req, res) => {
    const principal = await authenticator.require(req);
    const place = await placeFor(options.acquire, principal.sub);
    let connection: Connection | undefined;
    let blocked = false;
    let end: () => void = () => {};
    const stream: Drainable = {
      drain: (retryMs) => connection?.end('draining', frame({ retry: retryMs })),
    };
    const write = (text: string): void => {
      // A report that cannot be taken is left out: the next one says all that it would have said.
      if (connection && !blocked) blocked = !connection.write(framed(connection.framing, text));
    };
    options.opened(stream);
    Connection.open(
      res,
      {
        ...{ wheel: options.wheel, heartbeat, heartbeatSeconds: options.heartbeatSeconds, slowMs: options.slowMs },
        expiresAt: principal.expiresAt,
        drained: () => {
          blocked = false;
        },
        closed: (reason) => {
          end();
          place.release();
          options.closed(stream, reason);
        },
      },
      {},
      (opened) => {
        connection = opened;
        write(frameOf(reports.current, options.retryMs));
        end = reports.listen((status) => write(frameOf(status)));
      },
    );
  });
  return router;
};
