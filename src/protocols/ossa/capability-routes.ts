import { createHash } from 'node:crypto';
import { Ajv } from 'ajv';
import express, { type Request, type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import { parametersOf } from '../../auth/credentials.ts';
import type { Principal } from '../../auth/principal.ts';
import type { Tickets } from '../../auth/tickets.ts';
import type { JobDialect } from '../../jobs/dialect.ts';
import type { Jobs } from '../../jobs/jobs.ts';
import { resumeJob } from '../../jobs/resume.ts';
import type { Catalogue, Offered } from '../../manifests/catalogue.ts';
import { isObject } from '../../manifests/plain.ts';
import type { CloseReason } from '../../sse/closing.ts';
import type { Drainable } from '../../sse/drainable.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import { jsonBody } from '../group.ts';
import { Problem, quoted } from '../problem.ts';
import { capabilityKind } from './capability-event.ts';
import type { Invocations } from './invocations.ts';
import { type AcquireStream, placeFor } from './stream-place.ts';

export interface CapabilityOptions {
  readonly authenticator: Authenticator;
  readonly tickets: Tickets;
  readonly jobs: Jobs;
  readonly invocations: Invocations;
  readonly catalogue: () => Catalogue;
  readonly wheel: TimerWheel;
  readonly dialect: JobDialect;
  readonly heartbeatSeconds: number;
  readonly slowMs: number;
  /** Where clients find the gateway; undefined: wherever they have found it. */
  readonly publicUrl: string | undefined;
  readonly acquire: AcquireStream;
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason) => void;
}

const BODY_BYTES = 8 * 1024 * 1024;
/** The client closes the stream behind the last event; one that does not is not kept waiting for ever. */
const LINGER_MS = 30_000;
/** Waiting in line is not counted in the time that a capability may take. */
const LINE_MS = 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TEXT = { type: 'string', minLength: 1, maxLength: 512, pattern: '^[^\\u0000-\\u001f\\u007f]*$' } as const;

interface Invoked {
  readonly input?: Readonly<Record<string, unknown>>;
  readonly options?: { readonly timeout_seconds?: number; readonly correlationId?: string };
}

export const INVOKED_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    input: { type: 'object' },
    options: {
      type: 'object',
      properties: {
        timeout_seconds: { type: 'number', exclusiveMinimum: 0 },
        priority: { enum: ['low', 'normal', 'high', 'critical'] },
        correlationId: TEXT,
      },
    },
  },
} as const;

const isInvoked = new Ajv().compile<Invoked>(INVOKED_SCHEMA);

const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

const parseInvoked = (body: unknown): Invoked => {
  if (isInvoked(body)) return body;
  const { instancePath = '', message = 'is wrong' } = isInvoked.errors?.[0] ?? {};
  throw new Problem('PROTOCOL_ERROR', `${instancePath || 'The body'} ${message}.`, { details: { path: instancePath } });
};

const find = (catalogue: Catalogue, name: string): Offered => {
  const found = catalogue.capability(name);
  if (!found) throw new Problem('CAPABILITY_NOT_FOUND', `No agent offers the capability ${quoted(name)}.`);
  if (found.outcome === 'found') return found;
  throw new Problem(
    'CONFLICT',
    `Several agents offer ${quoted(name)}: say which, as one of ${found.names.join(', ')}.`,
    {
      details: { names: found.names },
    },
  );
};

/** Scopes that a manifest asks for beyond the one for capabilities; they stand in the same claim. */
const checkScopes = (principal: Principal, { capability }: Offered): void => {
  if (!principal.scopes.has('capabilities')) {
    throw new Problem('FORBIDDEN', 'This needs the scope capabilities.');
  }
  const missing = capability.scopes.filter((scope) => !principal.scopes.has(scope));
  if (missing.length === 0) return;
  throw new Problem('FORBIDDEN', `${capability.name} needs the scope ${missing.join(', ')}.`, {
    details: { scopes: missing },
  });
};

const checkInput = ({ capability }: Offered, input: unknown): Readonly<Record<string, unknown>> => {
  if (!isObject(input)) throw new Problem('PROTOCOL_ERROR', 'The input must be an object.');
  const fault = capability.inputCheck?.fault(input);
  if (fault !== undefined) throw new Problem('PROTOCOL_ERROR', `Input of ${capability.name}: ${fault}`);
  return input;
};

const correlationOf = (req: Request, given: string | undefined): string | undefined => {
  const id = req.get('X-Correlation-ID') ?? given;
  if (id === undefined || /^[^\p{Cc}]{1,512}$/u.test(id)) return id;
  throw new Problem('PROTOCOL_ERROR', 'X-Correlation-ID has 1 to 512 characters, none of them a control character.');
};

const idempotencyOf = (req: Request, name: string): { key: string; fingerprint: string } | undefined => {
  const key = req.get('Idempotency-Key');
  if (key === undefined) return undefined;
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw new Problem('PROTOCOL_ERROR', 'An Idempotency-Key has 1 to 255 visible ASCII characters.');
  }
  const fingerprint = createHash('sha256')
    .update(`${name}\n${JSON.stringify(req.body)}`)
    .digest('base64url');
  return { key: `capability ${key}`, fingerprint };
};

export const capabilityRoutes = (options: CapabilityOptions): Router => {
  const { authenticator, tickets, jobs, invocations } = options;
  const router = express.Router({ caseSensitive: true });

  router.post(['/capabilities/:name', '/capabilities/:name/invoke'], async (req, res, next) => {
    res.locals.principal = await authenticator.require(req); // before the body is read
    next();
  });
  router.post(['/capabilities/:name', '/capabilities/:name/invoke'], jsonBody(BODY_BYTES), async (req, res) => {
    const { principal } = res.locals as { principal: Principal };
    const { name } = req.params as { name: string };
    const offered = find(options.catalogue(), name);
    checkScopes(principal, offered);
    const wrapped = /\/invoke\/?$/.test(req.path);
    const { input, options: wanted = {} }: Invoked = wrapped ? parseInvoked(req.body) : { input: req.body };
    const correlationId = correlationOf(req, wanted.correlationId);
    const idempotency = idempotencyOf(req, name);
    const started = await invocations.start({
      ...offered,
      input: checkInput(offered, input ?? {}),
      principal: principal.sub,
      ...(correlationId !== undefined && { correlationId }),
      ...(wanted.timeout_seconds !== undefined && { timeoutSeconds: wanted.timeout_seconds }),
      ...(idempotency && { idempotency }),
    });
    const path = `/events/stream/${started.id}`;
    const until = Date.now() + LINE_MS + started.timeoutMs + capabilityKind.keepMs;
    const base =
      options.publicUrl?.replace(/\/$/, '') ?? (req.host === undefined ? '' : `${req.protocol}://${req.host}`);
    res.status(202).json({
      streamId: started.id,
      taskId: started.id,
      streamUrl: `${base}${path}?ticket=${tickets.issueReadOnly(principal.sub, path, until)}`,
      correlationId: started.correlationId,
    });
  });

  const follow = async (req: Request, res: express.Response, id: string): Promise<void> => {
    const principal = await authenticator.require(req);
    const parameters = parametersOf(req.originalUrl);
    const missing = new Problem('NOT_FOUND', `There is no stream ${quoted(id)}.`);
    if (!UUID.test(id)) throw missing;
    const place = await placeFor(options.acquire, principal.sub);
    const stream = await resumeJob(req, res, {
      ...{ jobs, id, principal: principal.sub },
      after: parameters.get('lastEventId') ?? undefined,
      dialect: options.dialect,
      wheel: options.wheel,
      heartbeatSeconds: options.heartbeatSeconds,
      slowMs: options.slowMs,
      expiresAt: principal.expiresAt,
      lingerMs: LINGER_MS,
      closed: (reason) => {
        place.release();
        setImmediate(() => {
          if (typeof stream === 'object') options.closed(stream, reason);
        });
      },
    });
    if (stream === undefined) throw missing;
    if (stream !== 'finished') options.opened(stream);
  };
  router.get('/events/stream/:id', (req, res) => follow(req, res, req.params.id));
  router.get('/events', (req, res, next) => {
    const parameters = parametersOf(req.originalUrl);
    const id = parameters.get('stream') ?? parameters.get('task');
    if (id === null) return next();
    if (parameters.has('channels')) throw new Problem('PROTOCOL_ERROR', 'Follow channels or one stream, not both.');
    return follow(req, res, id);
  });
  return router;
};
