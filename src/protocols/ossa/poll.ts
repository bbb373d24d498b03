import type { Request, Response } from 'express';
import { ChannelPoll } from '../../sse/channel-poll.ts';
import type { Drainable } from '../../sse/drainable.ts';
import type { Hub } from '../../streams/hub.ts';
import { Problem } from '../problem.ts';
import { ossaPollEncoder } from './dialect.ts';
import type { WantedChannels } from './wanted.ts';

/** The longest wait; short enough for proxies that give up after 30 s. */
const MAX_WAIT_SECONDS = 25;

/** Long-polling is for those who say that they want JSON and not a stream. */
export const wantsPolling = (req: Request): boolean => {
  const accept = req.get('Accept')?.toLowerCase() ?? '';
  return accept.includes('application/json') && !accept.includes('text/event-stream');
};

/** `?wait=` in seconds; without it as long as there is. */
export const parseWait = (text: string | undefined): number => {
  if (text === undefined) return MAX_WAIT_SECONDS * 1_000;
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(text)) throw new Problem('PROTOCOL_ERROR', 'wait must be a number of seconds.');
  return Math.min(Number(text), MAX_WAIT_SECONDS) * 1_000;
};

export interface PollOptions {
  readonly hub: Hub;
  readonly wanted: WantedChannels;
  readonly granted: readonly string[];
  readonly hidden: readonly string[];
  readonly cursor: string | undefined;
  readonly waitMs: number;
  readonly opened: (poll: Drainable) => void;
  readonly closed: (poll: Drainable, reason: undefined) => void;
}

/** Answers `{events, cursor, resync?}`, as soon as there is something to say, or when the time is over. */
export const poll = async (res: Response, options: PollOptions): Promise<void> => {
  const { hub, wanted, granted, hidden, cursor, waitMs } = options;
  const { names, patterns } = wanted;
  const asked = new ChannelPoll(res, ossaPollEncoder, { hub, names, patterns, granted, hidden, cursor, waitMs });
  options.opened(asked);
  const polled = await asked.answered;
  options.closed(asked, undefined);
  if (!polled) return;
  const { events, resyncs, position } = polled;
  const next = position === undefined ? cursor : `pos-${position}`;
  if (next === undefined) {
    throw new Problem('UNAVAILABLE', 'The event store is away.', { headers: { 'Retry-After': '1' } });
  }
  const lost = resyncs.map(({ reason, channels }) => ({ reason, channels, lastEventId: cursor ?? null }));
  const rest = `"cursor":${JSON.stringify(next)}${lost.length > 0 ? `,"resync":${JSON.stringify(lost)}` : ''}`;
  res
    .status(200)
    .set({ 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' })
    .send(`{"events":[${events.join(',')}],${rest}}`);
};
