import express, { type Request, type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import { parametersOf } from '../../auth/credentials.ts';
import { ChannelStream, type Pace } from '../../sse/channel-stream.ts';
import type { CloseReason } from '../../sse/closing.ts';
import type { ChannelDialect } from '../../sse/dialect.ts';
import type { Drainable } from '../../sse/drainable.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import type { Hub } from '../../streams/hub.ts';
import { jsonBody } from '../group.ts';
import { Problem } from '../problem.ts';
import { parseWait, poll, wantsPolling } from './poll.ts';
import { type PublishRules, publish } from './publish.ts';
import { checkWanted, parseWanted } from './wanted.ts';

export interface OssaOptions {
  readonly authenticator: Authenticator;
  readonly hub: Hub;
  readonly wheel: TimerWheel;
  readonly dialect: ChannelDialect;
  readonly publishing: PublishRules;
  readonly heartbeatSeconds: number;
  readonly retryMs: number;
  readonly slowMs: number;
  readonly maxChannels: number;
  /** A place for one more stream of a principal. */
  readonly acquire: (
    principal: string,
  ) => Promise<
    | { readonly allowed: true; readonly release: () => void }
    | { readonly allowed: false; readonly reason: 'principal' | 'total' }
  >;
  readonly pace: () => Pace;
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason | undefined) => void;
  /** The valid trace context of a request. */
  readonly traceparentOf: (header: string | undefined) => string | undefined;
  readonly published: (events: number, seconds: number) => void;
}

const BODY_BYTES = 8 * 1024 * 1024;

/** The header wins: a native reconnect repeats the old URL. */
const lastEventIdOf = (req: Request, parameters: URLSearchParams): string | undefined =>
  req.get('Last-Event-ID') ?? parameters.get('lastEventId') ?? parameters.get('cursor') ?? undefined;

/** Some clients write a list as one parameter, some as one for each: `channels=a,b` or `channels=a&channels=b`. */
const channelsOf = (parameters: URLSearchParams): string | undefined =>
  parameters.has('channels') ? parameters.getAll('channels').join(',') : undefined;

const REFUSED = {
  principal: 'You have as many open streams as you may.',
  total: 'This gateway has as many open streams as it may.',
} as const;

export const ossaRoutes = (options: OssaOptions): Router => {
  const { authenticator, hub, wheel, dialect, publishing } = options;
  const router = express.Router({ caseSensitive: true });

  router.get('/events', async (req, res) => {
    const principal = await authenticator.require(req);
    const parameters = parametersOf(req.originalUrl);
    const wanted = parseWanted(channelsOf(parameters), options.maxChannels);
    checkWanted(wanted, principal);
    const waitMs = wantsPolling(req) ? parseWait(parameters.get('wait') ?? undefined) : undefined;
    const place = await options.acquire(principal.sub);
    if (!place.allowed) {
      throw new Problem('RATE_LIMIT_EXCEEDED', REFUSED[place.reason], { headers: { 'Retry-After': '5' } });
    }
    if (waitMs !== undefined) {
      const cursor = lastEventIdOf(req, parameters);
      const polling = poll(res, {
        hub,
        wanted,
        granted: principal.subscribe,
        cursor,
        waitMs,
        opened: options.opened,
        closed: options.closed,
      });
      await polling.finally(place.release);
      return;
    }
    const stream: ChannelStream = new ChannelStream(res, {
      hub,
      wheel,
      dialect,
      ...wanted,
      granted: principal.subscribe,
      lastEventId: lastEventIdOf(req, parameters),
      heartbeatSeconds: options.heartbeatSeconds,
      retryMs: options.retryMs,
      slowMs: options.slowMs,
      expiresAt: principal.expiresAt,
      pace: options.pace(),
      closed: (reason) => {
        place.release();
        // A response that is over at once says so before the stream has a name.
        setImmediate(() => options.closed(stream, reason));
      },
    });
    options.opened(stream);
  });

  router.post('/events', async (req, res, next) => {
    // Before the body is read: a stranger's eight megabytes are none of our business.
    res.locals.principal = await authenticator.require(req);
    next();
  });
  router.post('/events', jsonBody(BODY_BYTES), async (req, res) => {
    const begin = performance.now();
    const traceparent = options.traceparentOf(req.get('traceparent'));
    const idempotencyKey = req.get('Idempotency-Key');
    const { principal } = res.locals as { principal: Awaited<ReturnType<Authenticator['require']>> };
    const ids = await publish(publishing, { principal, body: req.body, idempotencyKey, traceparent });
    const many = Array.isArray(ids);
    options.published(many ? ids.length : 1, (performance.now() - begin) / 1_000);
    res.status(201).json(many ? { ids } : { id: ids });
  });

  return router;
};
