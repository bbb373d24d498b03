import type { Framing } from '../sse/framing.ts';
import { framed } from '../sse/framing.ts';
import type { Heartbeat } from '../sse/heartbeat.ts';
import type { JobEncoder } from './entry.ts';
import type { JobEvent, JobFacts } from './job.ts';
import type { Reset } from './reader.ts';

/** How a protocol writes the stream of a job. Stateless: all streams share one. */
export interface JobDialect {
  /** One object per framing: streams that share it share what it has written. */
  readonly encoders: Readonly<Record<Framing, JobEncoder>>;
  readonly heartbeat: Heartbeat;
  /** What comes before everything else. */
  opening?(facts: JobFacts): string;
  /** The position no longer holds: a snapshot to replace what the client has, or a notice that everything comes again. */
  reset(reset: Reset, facts: JobFacts, lastEventId: string | null): string;
  /** The last frame before the gateway closes a stream that should be opened again after a while. */
  closing?(retryMs: number): string;
  /** The number behind an id of this dialect; undefined if it is none. */
  positionOf(id: string): number | undefined;
}

/** Encoders for both framings from what writes an event as a frame. */
export const jobEncoders = (write: (event: JobEvent) => string): Readonly<Record<Framing, JobEncoder>> => ({
  chunked: { encode: (event) => framed('chunked', write(event)) },
  plain: { encode: (event) => framed('plain', write(event)) },
});

/** Ids that are bare sequence numbers. */
export const numberOf = (id: string): number | undefined => (/^(0|[1-9]\d{0,14})$/.test(id) ? Number(id) : undefined);
