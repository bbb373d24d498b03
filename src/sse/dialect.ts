import type { Encoder } from '../streams/entry.ts';
import type { Resync } from '../streams/sink.ts';
import type { Framing } from './framing.ts';
import type { Heartbeat } from './heartbeat.ts';

/** How a protocol writes a stream of channels. Stateless: all connections share one. */
export interface ChannelDialect {
  /** One object per framing: followers that share it share what it has written. */
  readonly encoders: Readonly<Record<Framing, Encoder>>;
  readonly heartbeat: Heartbeat;
  /** The first frame. `position` is absent when a cursor was given and could not be honoured. */
  connected(start: {
    readonly position?: string;
    readonly resumed: boolean;
    readonly channels: readonly string[];
    readonly retryMs: number;
  }): string;
  resync(notice: Resync & { readonly lastEventId: string | null }): string;
  /** The last frame before the gateway closes a stream that should be opened again after a while. */
  closing(retryMs: number): string;
}
