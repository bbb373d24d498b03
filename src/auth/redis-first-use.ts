import { within } from '../streams/redis/link.ts';
import { ANSWER_MS } from '../streams/redis/settings.ts';
import type { FirstUse } from './first-use.ts';

export interface RedisFirstUseOptions {
  /** Sends one command; with ioredis `(command, ...args) => redis.call(command, ...args)`. */
  readonly run: (command: string, ...args: string[]) => Promise<unknown>;
  /** In front of every key. Default `sluice:`. */
  readonly keyPrefix?: string;
  readonly now?: () => number;
}

/** For any number of replicas. */
export class RedisFirstUse implements FirstUse {
  private readonly run: RedisFirstUseOptions['run'];
  private readonly keyPrefix: string;
  private readonly now: () => number;

  constructor({ run, keyPrefix = 'sluice:', now = Date.now }: RedisFirstUseOptions) {
    this.run = run;
    this.keyPrefix = keyPrefix;
    this.now = now;
  }

  async mark(id: string, untilMs: number): Promise<void> {
    const ms = Math.ceil(untilMs - this.now());
    if (ms > 0) await this.ask('SET', this.keyOf(id), '1', 'PX', String(ms));
  }

  async seen(id: string): Promise<boolean> {
    return Number(await this.ask('EXISTS', this.keyOf(id))) === 1;
  }

  private keyOf(id: string): string {
    return `${this.keyPrefix}ticket:${id}`;
  }

  /** A stream that is being opened waits for this, so a server that hangs counts as away. */
  private ask(command: string, ...args: string[]): Promise<unknown> {
    return within(ANSWER_MS, this.run(command, ...args), 'Asking Redis about a ticket');
  }
}
