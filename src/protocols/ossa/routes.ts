import express, { type Request, type RequestHandler, type Response, type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import { parametersOf } from '../../auth/credentials.ts';
import type { Principal } from '../../auth/principal.ts';
import type { Catalogue, DeclaredChannel } from '../../manifests/catalogue.ts';
import { ChannelStream, type Pace } from '../../sse/channel-stream.ts';
import type { CloseReason } from '../../sse/closing.ts';
import type { ChannelDialect } from '../../sse/dialect.ts';
import type { Drainable } from '../../sse/drainable.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import type { Hub } from '../../streams/hub.ts';
import { jsonBody } from '../group.ts';

import { parseWait, poll, wantsPolling } from './poll.ts';
import { type PublishRules, publish } from './publish.ts';
import { type AcquireStream, placeFor } from './stream-place.ts';
import { checkWanted, hiddenFrom, parseWanted } from './wanted.ts';

export interface OssaOptions {
  readonly authenticator: Authenticator;
  readonly hub: Hub;
  readonly catalogue: () => Catalogue;
  readonly wheel: TimerWheel;
  readonly dialect: ChannelDialect;
  readonly publishing: PublishRules;
  readonly heartbeatSeconds: number;
  readonly retryMs: number;
  readonly slowMs: number;
  readonly maxChannels: number;
  readonly acquire: AcquireStream;
  readonly pace: () => Pace;
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason | undefined) => void;
  /** The valid trace context of a request. */
  readonly traceparentOf: (header: string | undefined) => string | undefined;
  readonly published: (events: number, seconds: number) => void;
}

const EVENTS = '/events';
const BODY_BYTES = 8 * 1024 * 1024;

/** The header wins: a native reconnect repeats the old URL. */
const lastEventIdOf = (req: Request, parameters: URLSearchParams): string | undefined =>
  req.get('Last-Event-ID') ?? parameters.get('lastEventId') ?? parameters.get('cursor') ?? undefined;

/** Some clients write a list as one parameter, some as one for each: `channels=a,b` or `channels=a&channels=b`. */
const channelsOf = (parameters: URLSearchParams): string | undefined =>
  parameters.has('channels') ? parameters.getAll('channels').join(',') : undefined;

/** The smallest of what the manifests say of some channels; what none says is left to the settings. */
const smallest = (
  catalogue: Catalogue,
  names: readonly string[],
  of: (channel: DeclaredChannel) => number | undefined,
  otherwise: number,
): number => {
  const said = names.flatMap((name) => {
    const channel = catalogue.channel(name);
    return (channel && of(channel)) ?? [];
  });
  return said.length > 0 ? Math.min(...said) : otherwise;
};

export const ossaRoutes = (options: OssaOptions): Router => {
  const { authenticator, hub, wheel, dialect, publishing } = options;
  const router = express.Router({ caseSensitive: true });

  /** Channels, at an endpoint that manifests share. */
  const follow = async (req: Request, res: Response, endpoint: string): Promise<void> => {
    const principal = await authenticator.require(req);
    const parameters = parametersOf(req.originalUrl);
    const catalogue = options.catalogue();
    const declared = catalogue.channelsOf(endpoint);
    const wanted = parseWanted(channelsOf(parameters), options.maxChannels, declared, principal);
    checkWanted(wanted, principal);
    const waitMs = wantsPolling(req) ? parseWait(parameters.get('wait') ?? undefined) : undefined;
    const lastEventId = lastEventIdOf(req, parameters);
    const seen = { granted: principal.subscribe, hidden: hiddenFrom(principal) };
    const place = await placeFor(options.acquire, principal.sub);
    if (waitMs !== undefined) {
      const { opened, closed } = options;
      await poll(res, { hub, wanted, ...seen, cursor: lastEventId, waitMs, opened, closed }).finally(place.release);
      return;
    }
    const { names } = wanted;
    const stream: ChannelStream = new ChannelStream(res, {
      ...{ hub, wheel, dialect, ...wanted, ...seen, lastEventId },
      heartbeatSeconds: smallest(catalogue, names, (one) => one.heartbeatSeconds, options.heartbeatSeconds),
      retryMs: smallest(catalogue, names, (one) => one.retryMs, options.retryMs),
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
  };

  const publishAt: RequestHandler = async (req, res) => {
    const begin = performance.now();
    const traceparent = options.traceparentOf(req.get('traceparent'));
    const idempotencyKey = req.get('Idempotency-Key');
    const { principal } = res.locals as { principal: Principal };
    const ids = await publish(publishing, { principal, body: req.body, idempotencyKey, traceparent });
    const many = Array.isArray(ids);
    options.published(many ? ids.length : 1, (performance.now() - begin) / 1_000);
    res.status(201).json(many ? { ids } : { id: ids });
  };
  const knownFirst: RequestHandler = async (req, res, next) => {
    // Before the body is read: a stranger's eight megabytes are none of our business.
    res.locals.principal = await authenticator.require(req);
    next();
  };
  const parse = jsonBody(BODY_BYTES);

  router.get(EVENTS, (req, res) => follow(req, res, EVENTS));
  router.post(EVENTS, knownFirst, parse, publishAt);

  // The manifests' own endpoints come and go with them.
  const isOwn = (req: Request): boolean => options.catalogue().hasEndpoint(req.path);
  router.use((req, res, next) => (req.method === 'GET' && isOwn(req) ? follow(req, res, req.path) : next()));
  router.post(/.*/, (req, _, next) => next(isOwn(req) ? undefined : 'router'), knownFirst, parse, publishAt);
  return router;
};
