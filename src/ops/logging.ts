import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LevelWithSilent,
  type Logger,
  pino,
} from 'pino';
import { prettyLines } from './pretty.ts';
import { isSecretName, scrub } from './scrub.ts';

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
    let copy: Record<string, unknown> | undefined;
    for (const key of Object.keys(record)) {
      // What a serializer is about to take apart stays whole: a request leads to half of the process.
      if (Object.hasOwn(serializers, key)) continue;
      const shown = isSecretName(key) ? '***' : scrub(record[key], 1);
      if (shown === record[key]) continue;
      copy ??= { ...record };
      copy[key] = shown;
    }
    return copy ?? record;
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

declare module 'node:http' {
  interface IncomingMessage {
    id: string;
    /** Names the request in every line. */
    readonly log: Logger;
  }
}

/**
 * One line per request when its answer is over, a stream's when the stream is. It is put together then and not before:
 * most requests have nothing else to say.
 */
export const requestLogger = ({
  logger,
  isProbe = (path) => PROBES.has(path),
}: RequestLoggerOptions): RequestHandler => {
  const pathOf = (url: string): string => url.split('?', 1)[0] as string;
  const levelOf = (req: Request, failed: boolean): 'debug' | 'info' | 'warn' | 'error' => {
    const probe = isProbe(pathOf(req.originalUrl));
    if (failed) return probe ? 'warn' : 'error'; // to be not ready is no fault
    return probe ? 'debug' : 'info';
  };
  // One function for all: requests that each had their own would all look different to the engine.
  const log = {
    configurable: true,
    get(this: Request): Logger {
      return logger.child({ requestId: this.id });
    },
  };
  return (req, res, next) => {
    const begun = Date.now();
    const id = requestIdOf(req.headers['x-request-id']);
    req.id = id;
    Object.defineProperty(req, 'log', log);
    res.setHeader('X-Request-Id', id);
    const over = (err?: Error): void => {
      res.off('finish', over).off('close', over).off('error', over);
      const failed = err !== undefined || res.statusCode >= 500;
      const level = levelOf(req, failed);
      if (!logger.isLevelEnabled(level)) return;
      const line = { requestId: id, req, res, durationMs: Date.now() - begun };
      if (failed) logger[level](err ? { ...line, err } : line, 'request failed');
      else logger[level](line, res.writableEnded ? 'request completed' : 'request closed');
    };
    res.on('finish', over).on('close', over).on('error', over);
    next();
  };
};
