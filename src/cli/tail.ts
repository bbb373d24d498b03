import { EventSource } from 'eventsource';
import type { Remote } from './remote.ts';

export interface TailOptions {
  /** Go on after this id. */
  readonly after?: string;
  /** End after so many events. */
  readonly count?: number;
  readonly json?: boolean;
}

interface TailEvent {
  readonly type: string;
  readonly id?: string;
  readonly timestamp: string;
  readonly payload: unknown;
}

const TYPES = ['message', 'status', 'capability_response', 'error', 'resync'];

const shown = (event: TailEvent): string => {
  const { type, timestamp, payload } = event;
  const time = timestamp.slice(11, 23);
  if (type === 'connected') {
    const { channels, resumed } = payload as { channels: string[]; resumed: boolean };
    return `${time} -- ${resumed ? 'resumed' : 'following'} ${channels.join(', ')}`;
  }
  if (type === 'resync') {
    const { reason, channels } = payload as { reason: string; channels: string[] };
    return `${time} !! resync (${reason}): events of ${channels.join(', ')} may be missing; what is kept follows`;
  }
  if (type === 'message') {
    const { channel, data } = payload as { channel: string; data: unknown };
    return `${time} ${channel} ${JSON.stringify(data)}`;
  }
  return `${time} ${type} ${JSON.stringify(payload)}`;
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
  return new Promise((resolve, reject) => {
    const source = new EventSource(url, {
      fetch: (input, init) =>
        fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${remote.token}` } }),
    });
    const take = (text: string): void => {
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
        if (event instanceof MessageEvent || 'data' in event) take(String((event as MessageEvent).data));
      });
    }
    source.onerror = (error) => {
      if ('data' in error) return;
      if (source.readyState !== source.CLOSED) {
        note(`-- ${error.message ?? 'the connection was lost'}; trying again`);
        return;
      }
      reject(new Error(error.code === undefined ? (error.message ?? 'closed') : `The gateway answered ${error.code}.`));
    };
  });
};
