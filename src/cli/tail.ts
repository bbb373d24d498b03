import { EventSource } from 'eventsource';
import { ask } from './ask.ts';
import { type Remote, reasonOf, refusalOf } from './remote.ts';

export interface TailOptions {
  /** Go on after this id. */
  readonly after?: string;
  /** End after so many events. */
  readonly count?: number;
  readonly json?: boolean;
}

interface TailEvent {
  readonly type: string;
  readonly timestamp: string;
  readonly payload: unknown;
  readonly metadata: { readonly channel?: string };
}

/** Longer than heartbeats are apart: a connection that has died without a word is opened anew. */
const SILENCE_MS = 300_000;

const TYPES = ['message', 'status', 'capability_response', 'error', 'resync'];

/** What passes: too many streams, a gateway that is away, a proxy that finds none. An `EventSource` gives up on them. */
const PASSING = new Set([429, 502, 503, 504]);

const shown = ({ type, timestamp, payload, metadata }: TailEvent): string => {
  const time = timestamp.slice(11, 23);
  if (type === 'connected') {
    const { channels, resumed } = payload as { channels: string[]; resumed: boolean };
    return `${time} -- ${resumed ? 'resumed' : 'following'} ${channels.join(', ')}`;
  }
  if (type === 'resync') {
    const { reason, channels } = payload as { reason: string; channels: string[] };
    return `${time} !! resync (${reason}): events of ${channels.join(', ')} may be missing; what is kept follows`;
  }
  if (metadata.channel !== undefined) return `${time} ${metadata.channel} ${type} ${JSON.stringify(payload)}`;
  const { channel, data } = payload as { channel: string; data: unknown };
  return `${time} ${channel} ${type === 'message' ? '' : `${type} `}${JSON.stringify(data)}`;
};

/** Follows channels until it is stopped; reconnects by itself and goes on where it was. */
export const tail = (
  remote: Remote,
  channels: string,
  options: TailOptions,
  print: (line: string) => void,
  note: (line: string) => void,
): Promise<void> => {
  const url = new URL('events', remote.url);
  url.searchParams.set('channels', channels);
  if (options.after !== undefined) url.searchParams.set('lastEventId', options.after);
  let left = options.count ?? Number.POSITIVE_INFINITY;
  let refusal = 'The gateway does not answer with events.';
  return new Promise((resolve, reject) => {
    const source = new EventSource(url, {
      fetch: async (_, { headers, signal }) => {
        const question = { headers, silenceMs: SILENCE_MS, ...(signal && { signal: signal as AbortSignal }) };
        const answer = await ask(remote, url, question).catch((error: unknown) => {
          if (error instanceof Error && error.name === 'AbortError') throw error; // that is us
          throw new Error(`${remote.url} does not answer: ${reasonOf(error)}.`);
        });
        if (answer.status === 200) return answer;
        refusal = await refusalOf(answer);
        if (PASSING.has(answer.status)) throw new Error(refusal);
        return answer;
      },
    });
    const take = (text: string): void => {
      if (left <= 0) return; // closing it does not stop what has already been read
      const event = JSON.parse(text) as TailEvent;
      const isNote = event.type === 'connected' || event.type === 'resync';
      if (options.json) print(text);
      else if (isNote) note(shown(event));
      else print(shown(event));
      if (!isNote && --left <= 0) {
        source.close();
        resolve();
      }
    };
    for (const type of TYPES) {
      source.addEventListener(type, (event) => {
        // "error" is both a type of event and what the client calls its own troubles.
        if (event instanceof MessageEvent) take(String(event.data));
      });
    }
    source.onerror = ({ message }) => {
      if (source.readyState === source.CLOSED) reject(new Error(refusal));
      else note(`-- ${message?.endsWith('.') ? message : 'The connection was lost.'} Trying again.`);
    };
  });
};
