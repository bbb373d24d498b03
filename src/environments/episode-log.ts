import { appendFile } from 'node:fs/promises';
import type { RedisPartition } from '../streams/redis/partition.ts';
import type { EndedSession } from './directory.ts';
import type { EpisodeRequest } from './environment.ts';
import { pause } from './pause.ts';
import type { CallReport, Session } from './session.ts';

/** Takes whole lines, in order; those of a call that throws are given to it again. */
export type WriteLines = (lines: readonly string[]) => Promise<void>;

export interface EpisodeLogOptions {
  readonly write: WriteLines;
  /** A sentence for the log of the gateway. */
  readonly warn: (message: string) => void;
  readonly now?: () => number;
}

/** What waits while it cannot be written; beyond it the oldest go. */
const MAX_WAITING = 10_000;
const AT_ONCE = 1_000;
/** A task that a client gives itself may be as large as a request. */
const LONGEST_TASK = 16_384;
const RETRY_MS = 1_000;

/**
 * What happened in all episodes, for whoever trains: one line of JSON when one begins, one for each call and one for the
 * end. A reward of `null` is none; what a model was asked or has answered is not written, and secrets are not.
 */
export class EpisodeLog {
  private readonly options: EpisodeLogOptions;
  private readonly now: () => number;
  private readonly waiting: string[] = [];
  private writing: Promise<void> | undefined;
  private dropped = 0;
  private failing = false;
  private readonly closing = new AbortController();

  constructor(options: EpisodeLogOptions) {
    this.options = options;
    this.now = options.now ?? Date.now;
  }

  began(session: Session, { choice }: EpisodeRequest): void {
    if ('task' in choice) {
      const text = session.conceal(JSON.stringify(choice.task));
      this.put(
        'begin',
        session,
        text.length <= LONGEST_TASK ? { task: JSON.parse(text) } : { task_bytes: text.length },
      );
    } else {
      this.put('begin', session, choice);
    }
  }

  setUp(session: Session, ms: number, error: string | undefined): void {
    this.put('setup', session, { ms: Math.round(ms), ok: error === undefined, ...(error !== undefined && { error }) });
  }

  called(session: Session, report: CallReport): void {
    const { taskId, tool, end, ms, reward, finished, error } = report;
    this.put('call', session, {
      task_id: taskId,
      tool,
      outcome: end,
      ms: Math.round(ms),
      reward,
      finished,
      // Some go on behind the end, and whoever adds up rewards should know.
      after_finished: session.finished,
      ...(error !== undefined && { error }),
    });
  }

  ended(session: Session, stop: EndedSession): void {
    const { calls, rewarded, rewardSum, finished, createdAt, setupFailure } = session;
    this.put('end', session, {
      stop: setupFailure === undefined ? stop : 'setup_failed',
      finished,
      calls,
      rewarded,
      reward_sum: rewarded === 0 ? null : rewardSum,
      ms: this.now() - createdAt,
    });
  }

  /** Resolves when everything is written, or cannot be. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.writing;
  }

  private put(event: string, session: Session, facts: Readonly<Record<string, unknown>>): void {
    const { sid, environment, principal } = session;
    const head = { event, at: new Date(this.now()).toISOString(), sid, environment: environment.name, principal };
    this.waiting.push(JSON.stringify({ ...head, ...facts }));
    if (this.waiting.length > MAX_WAITING) {
      this.waiting.shift();
      this.dropped++;
    }
    this.writing ??= this.writeAll().finally(() => {
      this.writing = undefined;
    });
  }

  private async writeAll(): Promise<void> {
    const { write, warn } = this.options;
    await Promise.resolve(); // what happens in one go is written in one go
    while (this.waiting.length > 0) {
      const lines = this.waiting.splice(0, AT_ONCE);
      try {
        await write(lines);
        if (this.dropped > 0) warn(`${this.dropped} lines of the episode log were lost.`);
        this.dropped = 0;
        this.failing = false;
      } catch (error) {
        this.waiting.unshift(...lines);
        if (!this.failing) warn(`The episode log cannot be written: ${(error as Error).message}`);
        this.failing = true;
        const { signal } = this.closing;
        if (signal.aborted) {
          warn(`${this.waiting.splice(0).length + this.dropped} lines of the episode log were lost.`);
          return;
        }
        await pause(RETRY_MS, signal).catch(() => {}); // one more attempt before it closes
      }
    }
  }
}

export const linesToFile =
  (path: string): WriteLines =>
  (lines) =>
    appendFile(path, `${lines.join('\n')}\n`);

/** So many are kept, more or less. */
const STREAM_LENGTH = 1_000_000;

/** Entries of a stream, each with its line under `e`. */
export const linesToRedis =
  (part: Pick<RedisPartition, 'query'>, key: string): WriteLines =>
  async (lines) => {
    await part.query(async (redis) => {
      // All or none: a Redis that is full would take some of them, and get those again.
      const transaction = redis.multi();
      for (const line of lines) transaction.xadd(key, 'MAXLEN', '~', STREAM_LENGTH, '*', 'e', line);
      const [first] = (await transaction.exec()) ?? [];
      if (first?.[0]) throw first[0];
    });
  };
