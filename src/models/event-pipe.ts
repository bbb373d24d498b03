import type { ModelEvent } from './model.ts';
import { asModelError, cancelled, type ModelError } from './model-error.ts';

export interface PipeSource {
  /** Asked for the first time: begins to push, and ends or fails the pipe some day. */
  start(): void;
  /** Nobody wants more: whatever is open is to be closed at once. Called once, and not after an end or a failure. */
  stop(): void;
  /** More is waiting than should, or there is room again. */
  pause?(): void;
  resume?(): void;
}

interface Waiter {
  resolve(result: IteratorResult<ModelEvent>): void;
  reject(error: ModelError): void;
}

/** So many events wait for a slow reader; the rest waits where it comes from. */
const ROOM = 256;

const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * Events from one who pushes to one who pulls. An abort overtakes whatever waits; an end and a failure do not.
 * Not an async generator: those can be left only between two events, and add a few turns to each of them.
 */
export class EventPipe implements AsyncIterableIterator<ModelEvent> {
  private readonly source: PipeSource;
  private readonly signal: AbortSignal | undefined;
  private queue: ModelEvent[] = [];
  private taken = 0;
  private waiters: Waiter[] = [];
  private state: 'new' | 'open' | 'ended' | 'failed' = 'new';
  private error: ModelError | undefined;
  private paused = false;

  constructor(source: PipeSource, signal?: AbortSignal) {
    this.source = source;
    this.signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ModelEvent>> {
    if (this.state === 'new') this.begin();
    const event = this.queue[this.taken];
    if (event) {
      if (++this.taken === this.queue.length) this.drained();
      else if (this.taken === ROOM) this.forget(); // a reader that is never quite level would keep all it has read
      return Promise.resolve({ done: false, value: event });
    }
    if (this.state === 'ended') return Promise.resolve(OVER);
    if (this.state === 'failed') {
      const error = this.error ?? cancelled();
      this.state = 'ended'; // thrown once, like by a generator
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.waiters.push({ resolve, reject });
    });
  }

  return(): Promise<IteratorResult<ModelEvent>> {
    this.leave();
    return Promise.resolve(OVER);
  }

  throw(error?: unknown): Promise<IteratorResult<ModelEvent>> {
    this.leave();
    return Promise.reject(error);
  }

  push(event: ModelEvent): void {
    if (this.state !== 'open') return;
    const waiter = this.waiters.shift();
    if (waiter) {
      waiter.resolve({ done: false, value: event });
      return;
    }
    this.queue.push(event);
    if (!this.paused && this.queue.length - this.taken > ROOM) {
      this.paused = true;
      this.source.pause?.();
    }
  }

  end(): void {
    this.close('ended');
    for (const { resolve } of this.waiters.splice(0)) resolve(OVER);
  }

  fail(cause: unknown): void {
    if (this.state === 'ended' || this.state === 'failed') return;
    const error = asModelError(cause);
    this.close('failed');
    const [first, ...rest] = this.waiters.splice(0);
    if (!first) {
      this.error = error;
      return;
    }
    this.state = 'ended';
    first.reject(error);
    for (const { resolve } of rest) resolve(OVER);
  }

  private begin(): void {
    if (this.signal?.aborted) {
      this.state = 'failed';
      return;
    }
    this.state = 'open';
    this.signal?.addEventListener('abort', this.abort, { once: true });
    this.source.start();
  }

  private readonly abort = (): void => {
    this.queue = [];
    this.taken = 0;
    this.fail(cancelled());
    this.source.stop();
  };

  /** The reader goes: what waits is nobody's. */
  private leave(): void {
    const open = this.state === 'open';
    this.queue = [];
    this.taken = 0;
    this.end();
    if (open) this.source.stop();
  }

  private close(state: 'ended' | 'failed'): void {
    if (this.state === 'ended' || this.state === 'failed') return;
    this.state = state;
    this.signal?.removeEventListener('abort', this.abort);
  }

  private forget(): void {
    this.queue = this.queue.slice(this.taken);
    this.taken = 0;
  }

  private drained(): void {
    this.forget();
    if (!this.paused) return;
    this.paused = false;
    if (this.state === 'open') this.source.resume?.();
  }
}
