import { EventSource } from 'eventsource';
import { decodeUuid } from '../../src/streams/id.ts';
import type { Wanted } from '../../src/streams/interest.ts';
import type { NewEvent } from '../../src/streams/log.ts';
import type { Place } from '../../src/streams/position.ts';
import { type RunningGateway, tokenFor } from '../support/gateway.ts';
import type { TcpProxy } from '../support/proxy.ts';
import type { Reader, Replica } from './replica.ts';

interface Wire {
  readonly type: string;
  readonly id?: string;
  readonly payload: { channel: string; data: string; reason: never; channels: string[] };
}

const behindPrefix = (id: string): string => id.slice(id.indexOf('-') + 1);

/** A whole gateway behind a proxy that may be cut, with real clients. */
export class HttpReplica implements Replica {
  private readonly running: RunningGateway;
  private readonly proxy: TcpProxy;
  private readonly headers = { Authorization: `Bearer ${tokenFor()}` };

  constructor(running: RunningGateway, proxy: TcpProxy) {
    this.running = running;
    this.proxy = proxy;
  }

  follow(wanted: Wanted, cursor: string | undefined, reader: Reader): { close(): void; resume(): void } {
    const url = new URL('/events', this.proxy.url);
    url.searchParams.set('channels', [...wanted.names, ...(wanted.patterns ?? [])].join());
    // The first connection of an EventSource has no header; the ones it makes by itself do, and the header wins.
    if (cursor !== undefined) url.searchParams.set('lastEventId', cursor);
    const source = new EventSource(url, {
      fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...this.headers } }),
    });
    const take = (event: MessageEvent): void => {
      const { type, id = '', payload } = JSON.parse(event.data as string) as Wire;
      if (type === 'connected') reader.connected(id === '' ? undefined : behindPrefix(event.lastEventId));
      else if (type === 'resync') reader.resync({ reason: payload.reason, channels: payload.channels });
      else {
        const line = behindPrefix(event.lastEventId);
        reader.event({ kind: 'event', line, uuid: behindPrefix(id), channel: payload.channel, payload: payload.data });
      }
    };
    source.addEventListener('message', take);
    source.addEventListener('resync', take);
    return { close: () => source.close(), resume: () => {} };
  }

  async publish(events: readonly NewEvent[], key: string | undefined): Promise<readonly Place[]> {
    const answer = await fetch(new URL('/events', this.proxy.url), {
      method: 'POST',
      headers: { ...this.headers, ...(key !== undefined && { 'Idempotency-Key': key }) },
      body: JSON.stringify(events),
    });
    const body = (await answer.json()) as { ids: string[] };
    if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(body)}`);
    return body.ids.map((id) => decodeUuid(behindPrefix(id)) as Place);
  }

  served(): Readonly<Record<string, number>> {
    const { delivered, gaps } = this.running.gateway.hub.stats();
    return { ...delivered, gaps };
  }

  cutAll(): void {
    this.proxy.cut();
  }

  async stop(): Promise<void> {
    await this.proxy.stop();
    await this.running.stop();
  }
}
