import { type JobDialect, jobEncoders } from '../../jobs/dialect.ts';
import type { JobFacts } from '../../jobs/job.ts';
import type { Cause, JobKind } from '../../jobs/kind.ts';
import type { ResetReason } from '../../jobs/reader.ts';
import { comment, frame } from '../../sse/frame.ts';
import { Heartbeat } from '../../sse/heartbeat.ts';
import { decodeUuid, encodeUuid } from '../../streams/id.ts';
import type { ResyncReason } from '../../streams/sink.ts';
import { EVENT_TYPES, type EventType } from './event.ts';

/** What a capability's job remembers of itself. */
export interface AboutCapability {
  readonly capability: string;
  readonly agentId: string;
  readonly correlationId: string;
}

export const aboutText = (about: AboutCapability): string => JSON.stringify(about);
export const aboutOf = ({ about }: Pick<JobFacts, 'about'>): AboutCapability => JSON.parse(about) as AboutCapability;

/** The codes of an error event. */
export type CapabilityErrorCode = 'CAPABILITY_ERROR' | 'PROCESSING_ERROR' | 'TIMEOUT' | 'INTERNAL_ERROR';

export interface CapabilityFailure {
  readonly code: CapabilityErrorCode;
  readonly message: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
}

/** How it is stored: type, id and JSON with spaces between them; only the last may hold spaces. */
const written = (
  facts: Pick<JobFacts, 'id' | 'about'>,
  seq: number,
  type: EventType,
  payload: unknown,
  final: boolean,
): string => {
  const { agentId, correlationId } = aboutOf(facts);
  const ms = Date.now();
  const id = `${EVENT_TYPES[type]}-${encodeUuid({ ms, seq, partition: 0, epoch: 0 })}`;
  const timestamp = new Date(ms).toISOString();
  const metadata = { agentId, streamId: facts.id, correlationId, sequence: seq, ...(final && { final }) };
  return `${type} ${id} ${JSON.stringify({ type, id, timestamp, payload, metadata })}`;
};

/** A step on the way. */
export const progressEvent =
  (facts: JobFacts, payload: Readonly<Record<string, unknown>>) =>
  (seq: number): string =>
    written(facts, seq, 'capability_response', { capability: aboutOf(facts).capability, ...payload }, false);

export const resultEvent =
  (facts: JobFacts, result: unknown) =>
  (seq: number): string =>
    written(facts, seq, 'capability_response', { capability: aboutOf(facts).capability, result }, true);

export const errorEvent =
  (facts: JobFacts, failure: CapabilityFailure) =>
  (seq: number): string =>
    written(facts, seq, 'error', failure, true);

const CODES: Readonly<Record<Cause, CapabilityErrorCode>> = {
  error: 'INTERNAL_ERROR',
  too_large: 'PROCESSING_ERROR',
  cancelled: 'PROCESSING_ERROR',
  shutdown: 'INTERNAL_ERROR',
  owner_lost: 'INTERNAL_ERROR',
  store_lost: 'INTERNAL_ERROR',
};

const KEEP_MS = 15 * 60_000;

/** An invocation of a capability. Its stream is whole for as long as it is kept: it has no snapshot. */
export const capabilityKind: JobKind = {
  name: 'capability',
  keepMs: KEEP_MS,
  logMs: KEEP_MS,
  maxEvents: 20_000,
  maxBytes: 32 * 1024 * 1024,
  ended: ({ last }, { cause, message }, facts) => {
    const code = CODES[cause];
    const retryable = cause !== 'too_large' && cause !== 'cancelled' && cause !== 'error';
    return [errorEvent(facts, { code, message, retryable })(last + 1)];
  },
};

const REASONS: Readonly<Record<ResetReason, ResyncReason>> = {
  collapsed: 'expired',
  ahead: 'ahead_of_head',
  unknown: 'unknown_id',
};

const eventFrame = (data: string): string => {
  const a = data.indexOf(' ');
  const b = data.indexOf(' ', a + 1);
  return `event: ${data.slice(0, a)}\nid: ${data.slice(a + 1, b)}\ndata: ${data.slice(b + 1)}\n\n`;
};

/** The number in an id of a capability's stream. */
export const positionOf = (id: string): number | undefined => {
  const dash = id.indexOf('-');
  const known = Object.values(EVENT_TYPES).includes(id.slice(0, dash) as (typeof EVENT_TYPES)[EventType]);
  const place = known ? decodeUuid(id.slice(dash + 1)) : undefined;
  return place?.epoch === 0 && place.partition === 0 ? place.seq : undefined;
};

/** The stream of a capability as the OSSA page describes it. */
export const capabilityDialect = (retryMs: number): JobDialect => ({
  encoders: jobEncoders(({ data }) => eventFrame(data)),
  heartbeat: new Heartbeat((time) => comment(`heartbeat - ${time.toISOString()}`)),
  opening: () => frame({ retry: retryMs }),
  reset: ({ reason }, facts, lastEventId) => {
    const { agentId, correlationId } = aboutOf(facts);
    const payload = { reason: REASONS[reason], channels: [], lastEventId };
    const metadata = { agentId, streamId: facts.id, correlationId };
    const timestamp = new Date().toISOString();
    return frame({ event: 'resync', data: JSON.stringify({ type: 'resync', timestamp, payload, metadata }) });
  },
  closing: (ms) => frame({ retry: ms }),
  positionOf,
});
