import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { JobStream, type JobStreamOptions } from './job-stream.ts';
import type { Jobs } from './jobs.ts';

export interface ResumeOptions extends JobStreamOptions {
  readonly jobs: Jobs;
  readonly id: string;
  /** Undefined: whoever it belongs to. */
  readonly principal: string | undefined;
  /** `?after=`, as it was given. */
  readonly after: string | undefined;
}

/** A store that has not answered by then is away, and the stream is opened to wait for it. */
const PATIENCE_MS = 2_500;

/**
 * The stream of a job over HTTP, from wherever the client has got to: `Last-Event-ID` wins over `?after=`, because a
 * native reconnect repeats the old URL. 204 when there is nothing to come back for. Undefined: there is no such job for
 * this principal, and nothing was answered.
 */
export const resumeJob = async (
  req: IncomingMessage,
  res: ServerResponse,
  { jobs, id, principal, after, ...options }: ResumeOptions,
): Promise<JobStream | 'finished' | undefined> => {
  const header = req.headers['last-event-id'];
  const given = (Array.isArray(header) ? header[0] : header) ?? after;
  const position = given === undefined || given === '' ? 0 : options.dialect.positionOf(given);
  const attached = jobs.attach(id, { after: position, ...(principal !== undefined && { principal }) });
  const late = new AbortController();
  const first = await Promise.race([
    attached,
    sleep(PATIENCE_MS, 'late' as const, { signal: late.signal, ref: false }).catch(() => 'late' as const),
  ]);
  late.abort();
  // A refusal would end a browser's EventSource for good, and the store may be back in a moment.
  const stream = { ...options, ...(given !== undefined && { lastEventId: given }) };
  if (first === 'late') return new JobStream(res, attached, stream);
  if (!first) {
    options.closed('client');
    return undefined;
  }
  if (position !== undefined && first.atEnd) {
    first.close();
    options.closed('finished');
    res.writeHead(204, { 'Cache-Control': 'no-store' }).end();
    return 'finished';
  }
  return new JobStream(res, first, stream);
};
