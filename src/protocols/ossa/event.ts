import type { IdPrefix } from '../../streams/cursor.ts';

/** The four types of an event, and what their ids begin with. */
export const EVENT_TYPES = {
  message: 'msg',
  status: 'status',
  capability_response: 'resp',
  error: 'err',
} as const satisfies Record<string, IdPrefix>;
export type EventType = keyof typeof EVENT_TYPES;

export interface EventMetadata {
  readonly agentId: string;
  readonly correlationId?: string;
  /** Where the payload does not name it. */
  readonly channel?: string;
  /** W3C trace context of the publisher. */
  readonly traceparent?: string;
}

/** What is published on a channel. */
export interface ChannelEvent {
  readonly type: EventType;
  readonly channel: string;
  readonly data: unknown;
  readonly metadata: Omit<EventMetadata, 'channel'>;
}

/** `message` wraps its data, so that a client of many channels knows where it came from; `status` and `error` are their data. */
const isWrapped = (type: EventType): boolean => type === 'message' || type === 'capability_response';

/**
 * As the log stores it: type, payload and metadata, one line each (JSON has no line ends of its own). A frame is put
 * together from them without parsing anything.
 */
export const storedForm = ({ type, channel, data, metadata }: ChannelEvent): string => {
  const payload = isWrapped(type) ? { channel, data } : data;
  const meta: EventMetadata = isWrapped(type) ? metadata : { ...metadata, channel };
  return `${type}\n${JSON.stringify(payload)}\n${JSON.stringify(meta)}`;
};

export const readStoredForm = (stored: string): { type: EventType; payload: string; metadata: string } => {
  const a = stored.indexOf('\n');
  const b = stored.indexOf('\n', a + 1);
  return { type: stored.slice(0, a) as EventType, payload: stored.slice(a + 1, b), metadata: stored.slice(b + 1) };
};
