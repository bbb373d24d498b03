import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LevelWithSilent,
  type Logger,
  pino,
} from 'pino';
import { pinoHttp } from 'pino-http';
import { prettyLines } from './pretty.ts';
import { scrub } from './scrub.ts';

export interface LoggerOptions {
  readonly level: LevelWithSilent;
  readonly format: 'json' | 'pretty';
  /** A URL without its secrets. */
  readonly redactUrl: (url: string) => string;
  /** Standard output if absent. */
  readonly destination?: DestinationStream;
}

interface Requested {
  readonly id?: unknown;
  readonly method?: string;
  readonly url?: string;
  readonly originalUrl?: string;
}

export const makeLogger = ({ level, format, redactUrl, destination }: LoggerOptions): Logger => {
  const output = destination ?? pino.destination(1);
  const shownUrl = (url: unknown): unknown => (typeof url === 'string' ? redactUrl(url) : url);
  const serializers = {
    // Of a request only this: its headers and its parsed query say again what the URL must not.
    req: ({ id, method, url, originalUrl }: Requested) => ({ id, method, url: shownUrl(originalUrl ?? url) }),
    res: ({ statusCode }: { statusCode?: number }) => ({ status: statusCode }),
    url: shownUrl,
    originalUrl: shownUrl,
    err: scrub,
  };
  const clean = (record: Record<string, unknown>): Record<string, unknown> => {
    // What a serializer is about to take apart stays whole: a request leads to half of the process.
    const rest = Object.entries(record).filter(([key]) => !Object.hasOwn(serializers, key));
    return { ...record, ...(scrub(Object.fromEntries(rest)) as Record<string, unknown>) };
  };
  const logger = pino(
    { level, serializers, formatters: { log: clean } },
    format === 'pretty' ? prettyLines(output) : output,
  );
  // The formatter sees what each line adds; what a child carries is written once and for all when it is made.
  const { child } = logger;
  return Object.assign(logger, {
    child(this: Logger, bindings: Bindings, options?: ChildLoggerOptions) {
      return Reflect.apply(child, this, [clean(bindings), options]);
    },
  });
};

const SANE_ID = /^[!-~]{1,128}$/;

/** A caller's id is kept, so that its logs and ours can be laid side by side, unless it could do harm in a log or a header. */
export const requestIdOf = (header: string | string[] | undefined): string =>
  typeof header === 'string' && SANE_ID.test(header) ? header : randomUUID();

const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz', '/health', '/api/health', '/metrics']);

export interface RequestLoggerOptions {
  readonly logger: Logger;
  /** Paths that are asked every few seconds by machines. */
  readonly isProbe?: (path: string) => boolean;
}

/** One line per request when its answer is over, a stream's when the stream is. */
export const requestLogger = ({
  logger,
  isProbe = (path) => PROBES.has(path),
}: RequestLoggerOptions): RequestHandler => {
  const pathOf = (url: string | undefined): string => (url ?? '').split('?', 1)[0] as string;
  const log = pinoHttp({
    logger,
    wrapSerializers: false, // the serializers of the logger take the request itself
    quietReqLogger: true, // what handlers log names the request by its id alone
    genReqId: (req, res) => {
      const id = requestIdOf(req.headers['x-request-id']);
      res.setHeader('X-Request-Id', id);
      return id;
    },
    customAttributeKeys: { reqId: 'requestId', responseTime: 'durationMs' },
    customLogLevel: (req, res, error) => {
      const probe = isProbe(pathOf((req as Requested).originalUrl ?? req.url));
      if (error || res.statusCode >= 500) return probe ? 'warn' : 'error'; // to be not ready is no fault
      return probe ? 'debug' : 'info';
    },
    customSuccessMessage: (_, res) => (res.writableEnded ? 'request completed' : 'request closed'),
    customErrorMessage: () => 'request failed',
    // Without an error of its own pino-http makes one up, whose stack says nothing.
    customErrorObject: (_, res, error, { err, ...rest }: Record<string, unknown>) =>
      res.err === error || !error.message.startsWith('failed with status code') ? { ...rest, err } : rest,
  });
  return (req, res, next) => log(req, res, next);
};
