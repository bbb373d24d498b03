import { pollEncoder } from '../../sse/channel-poll.ts';
import type { ChannelDialect } from '../../sse/dialect.ts';
import { comment, frame } from '../../sse/frame.ts';
import { type Framing, framed } from '../../sse/framing.ts';
import { Heartbeat } from '../../sse/heartbeat.ts';
import type { Encoder } from '../../streams/entry.ts';
import type { StoredEvent } from '../../streams/log.ts';
import { EVENT_TYPES, type EventType, readStoredForm } from './event.ts';

const uuidOf = (position: string): string => position.slice(0, 36);

/** The JSON of an event; put together from what is stored, nothing of which is parsed. */
const eventJson = ({ ms, seq, prev, data }: StoredEvent, uuid: string): { type: EventType; json: string } => {
  const { type, payload, metadata } = readStoredForm(data);
  const timestamp = new Date(ms).toISOString();
  const numbered = `${metadata.slice(0, -1)},"sequence":${seq},"previous":${prev}}`; // metadata is never empty
  const id = `${EVENT_TYPES[type]}-${uuid}`;
  const json = `{"type":"${type}","id":"${id}","timestamp":"${timestamp}","payload":${payload},"metadata":${numbered}}`;
  return { type, json };
};

const eventFrame = (event: StoredEvent, uuid: string, line: string): string => {
  const { type, json } = eventJson(event, uuid);
  return `event: ${type}\nid: ${EVENT_TYPES[type]}-${line}\ndata: ${json}\n\n`;
};

/** For long-polling. */
export const ossaPollEncoder = pollEncoder((event, uuid) => eventJson(event, uuid).json);

const encoderFor = (framing: Framing): Encoder => ({
  encode: (event, uuid, line) => framed(framing, eventFrame(event, uuid, line)),
});

/** Channel streams as the OSSA page describes them. `agentId` is the gateway's own, for what it says itself. */
export const ossaDialect = (agentId: string, now: () => number = Date.now): ChannelDialect => {
  const timestamp = (): string => new Date(now()).toISOString();
  return {
    encoders: { chunked: encoderFor('chunked'), plain: encoderFor('plain') },
    heartbeat: new Heartbeat((time) => comment(`heartbeat - ${time.toISOString()}`)),
    connected: ({ position, resumed, channels, retryMs }) =>
      frame({
        retry: retryMs,
        // Without an id the client repeats the one it has, and so the notice that follows.
        ...(position !== undefined && { id: `pos-${position}` }),
        data: JSON.stringify({
          type: 'connected',
          ...(position !== undefined && { id: `pos-${uuidOf(position)}` }),
          timestamp: timestamp(),
          payload: { channels, resumed },
          metadata: { agentId },
        }),
      }),
    resync: ({ reason, channels, lastEventId }) =>
      frame({
        event: 'resync',
        data: JSON.stringify({
          type: 'resync',
          timestamp: timestamp(),
          payload: { reason, channels, lastEventId },
          metadata: { agentId },
        }),
      }),
    closing: (retryMs) => frame({ retry: retryMs }),
  };
};
