import { Ajv } from 'ajv';
import { mayPublish, type Principal, speaksFor } from '../../auth/principal.ts';
import { isChannelName } from '../../streams/channel-name.ts';
import { encodeUuid } from '../../streams/id.ts';
import type { NewEvent, StreamLog } from '../../streams/log.ts';
import { Problem, quoted } from '../problem.ts';
import { EVENT_TYPES, type EventType, storedForm } from './event.ts';
import { isReserved } from './reserved.ts';

/** One event as it is posted. */
interface PostedEvent {
  readonly channel: string;
  readonly data: unknown;
  readonly type?: EventType;
  readonly agentId?: string;
  readonly correlationId?: string;
}

const TEXT = { type: 'string', minLength: 1, maxLength: 512, pattern: '^[^\\u0000-\\u001f\\u007f]*$' } as const;

export const POSTED_SCHEMA = {
  type: 'object',
  required: ['channel', 'data'],
  additionalProperties: false,
  properties: {
    channel: { type: 'string', maxLength: 255 },
    data: {},
    type: { enum: Object.keys(EVENT_TYPES) },
    agentId: { ...TEXT, pattern: '^[a-z][a-z0-9+.-]*://[^\\s\\u0000-\\u001f]+$' },
    correlationId: TEXT,
  },
} as const;

/** What each part of an event must be, in words for the publisher. */
const WANTED: Readonly<Record<string, string>> = {
  '': 'must be an event: an object with channel and data',
  '/channel': 'must be a string of at most 255 characters',
  '/type': `must be one of ${Object.keys(EVENT_TYPES).join(', ')}`,
  '/agentId': 'must be a URI such as agent://team/writer, of at most 512 characters',
  '/correlationId': 'must be a string of 1 to 512 characters, none of them a control character',
};

const isPosted = new Ajv({ allErrors: false }).compile<PostedEvent>(POSTED_SCHEMA);

export interface PublishRules {
  readonly log: StreamLog;
  /** 0 = off. */
  readonly maxEventBytes: number;
  readonly maxEvents: number;
  /** Whether a channel may be used. */
  readonly isDeclared: (channel: string) => boolean;
  /** What is wrong with the data of a channel, in one sentence. `agent`: whom the publisher speaks for. */
  readonly dataFault: (channel: string, data: unknown, agent: string | undefined) => string | undefined;
  /** The agent that events of a channel come from when their publisher names none. */
  readonly agentOf: (channel: string) => string;
  /** Whether so many more events are within the rate of a principal. */
  readonly admit: (
    principal: string,
    events: number,
  ) => Promise<{ readonly allowed: true } | { readonly allowed: false; readonly retryAfterSeconds: number }>;
}

export interface PublishRequest {
  readonly principal: Principal;
  readonly body: unknown;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | undefined;
}

export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

/** Where in the body something is wrong, for one event and for a list of them. */
const at = (index: number | undefined, path = ''): string => (index === undefined ? path : `/${index}${path}`);

const parse = (value: unknown, index: number | undefined): PostedEvent => {
  if (isPosted(value)) return value;
  const error = isPosted.errors?.[0];
  const property = (error?.params.missingProperty ?? error?.params.additionalProperty) as string | undefined;
  const path = at(index, `${error?.instancePath ?? ''}${property === undefined ? '' : `/${property}`}`);
  const what =
    error?.keyword === 'required'
      ? 'is missing'
      : error?.keyword === 'additionalProperties'
        ? 'is not a field of an event'
        : (WANTED[error?.instancePath ?? ''] ?? 'is wrong');
  throw new Problem('PROTOCOL_ERROR', `${path || 'The body'} ${what}.`, { details: { path } });
};

/** Everything is checked before anything is stored. */
export const publish = async (rules: PublishRules, request: PublishRequest): Promise<string | string[]> => {
  const { principal, body, idempotencyKey, traceparent } = request;
  if (body === undefined) throw new Problem('PROTOCOL_ERROR', 'The request has no body.');
  const isList = Array.isArray(body);
  if (isList && body.length === 0) throw new Problem('PROTOCOL_ERROR', 'The list holds no event.');
  if (isList && rules.maxEvents > 0 && body.length > rules.maxEvents) {
    throw new Problem('PAYLOAD_TOO_LARGE', `A request may publish ${rules.maxEvents} events, not ${body.length}.`);
  }
  const posted = isList ? body.map((value, i) => parse(value, i)) : [parse(body, undefined)];
  if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new Problem('PROTOCOL_ERROR', 'An Idempotency-Key has 1 to 255 visible ASCII characters.');
  }
  checkChannels(rules, principal, posted);
  const events = posted.map((event, i) => toStore(rules, principal, event, isList ? i : undefined, traceparent));
  const admitted = await rules.admit(principal.sub, events.length);
  if (!admitted.allowed) {
    throw new Problem('RATE_LIMIT_EXCEEDED', 'You publish faster than you may.', {
      headers: { 'Retry-After': String(admitted.retryAfterSeconds) },
    });
  }
  const idempotency = idempotencyKey === undefined ? undefined : { principal: principal.sub, key: idempotencyKey };
  const places = await rules.log.append(events, idempotency && { idempotency });
  const ids = places.map((place, i) => `${EVENT_TYPES[posted[i]?.type ?? 'message']}-${encodeUuid(place)}`);
  return isList ? ids : (ids[0] as string);
};

const checkChannels = (rules: PublishRules, principal: Principal, posted: readonly PostedEvent[]): void => {
  const channels = [...new Set(posted.map(({ channel }) => channel))];
  const refuse = (code: 'PROTOCOL_ERROR' | 'FORBIDDEN', why: string, which: readonly string[]): void => {
    if (which.length === 0) return;
    const shown = code === 'FORBIDDEN' ? which : which.map(quoted);
    throw new Problem(code, `${why}: ${shown.join(', ')}.`, { details: { channels: which } });
  };
  refuse(
    'PROTOCOL_ERROR',
    'Not the name of a channel (segments of letters, digits, "_" and "-" joined by dots)',
    channels.filter((channel) => !isChannelName(channel)),
  );
  refuse('FORBIDDEN', 'Only the gateway itself publishes here', channels.filter(isReserved));
  refuse(
    'FORBIDDEN',
    'Your token does not let you publish here',
    channels.filter((channel) => !mayPublish(principal, channel)),
  );
  refuse(
    'FORBIDDEN',
    'No manifest declares this channel, and channels.allowUndeclared is off',
    channels.filter((channel) => !rules.isDeclared(channel)),
  );
};

const toStore = (
  rules: PublishRules,
  principal: Principal,
  event: PostedEvent,
  index: number | undefined,
  traceparent: string | undefined,
): NewEvent => {
  const { channel, data, type = 'message', agentId, correlationId } = event;
  if (agentId !== undefined && !speaksFor(principal, agentId)) {
    throw new Problem('FORBIDDEN', `Your token does not let you speak for ${agentId}.`, {
      details: { path: at(index, '/agentId') },
    });
  }
  const fault = type === 'message' ? rules.dataFault(channel, data, agentId) : undefined;
  if (fault !== undefined) {
    throw new Problem('PROTOCOL_ERROR', `${at(index, '/data')} does not fit the schema of ${channel}: ${fault}`, {
      details: { path: at(index, '/data') },
    });
  }
  const metadata = {
    agentId: agentId ?? rules.agentOf(channel),
    ...(correlationId !== undefined && { correlationId }),
    ...(traceparent !== undefined && { traceparent }),
  };
  const stored = written({ type, channel, data, metadata }, index);
  const bytes = Buffer.byteLength(stored);
  if (rules.maxEventBytes > 0 && bytes > rules.maxEventBytes) {
    throw new Problem('PAYLOAD_TOO_LARGE', `An event may have ${rules.maxEventBytes} bytes, not ${bytes}.`, {
      details: { path: at(index) },
    });
  }
  return { channel, data: stored };
};

const written = (event: Parameters<typeof storedForm>[0], index: number | undefined): string => {
  try {
    return storedForm(event);
  } catch (cause) {
    // What can be parsed can be written again, unless it is nested deeper than the stack.
    throw new Problem('PROTOCOL_ERROR', `${at(index, '/data')} is nested too deeply.`, { cause });
  }
};
