import type { IncomingHttpHeaders } from 'node:http';
import { parseRetryAfter, type RetryRules, retryDelay } from '../../models/retry.ts';
import { EnvironmentError, type EpisodeCall, type Outcome } from '../environment.ts';
import { NO_WORDS } from '../outcome.ts';
import { pause } from '../pause.ts';
import { CallStream } from './call-stream.ts';
import { Lost } from './exchange.ts';
import type { UpstreamTimes } from './options.ts';
import { type OrsClient, unreachable } from './ors-client.ts';
import { outcomeIn } from './outcome.ts';
import { capped, detailIn, refusalOf } from './refusal.ts';

export interface RelayedCallOptions {
  readonly client: OrsClient;
  /** Of its environment, with a slash. */
  readonly path: string;
  readonly sid: string;
  readonly times: UpstreamTimes;
  readonly retries: RetryRules;
  readonly maxResultBytes: number;
  readonly now: () => number;
  readonly random?: () => number;
}

/** Why an attempt brought no result. */
interface Setback {
  readonly error: EnvironmentError;
  /** The upstream may have begun the call with this attempt, or has before. */
  readonly begun: boolean;
  /** There was a connection that was good for something. */
  readonly contact: boolean;
  readonly retryAfterMs?: number;
}

const UNKNOWN = 'it is not known whether the tool ran';
const MAX_REFUSAL_BYTES = 65_536;

const failed = (message: string, cause?: unknown) => new EnvironmentError('failed', message, cause);

/**
 * One call on an upstream, over as many connections as it takes. Once the upstream has given it an id it is only ever
 * asked for by this id; before that it is sent again only if it cannot have arrived, or if the upstream keeps to the
 * `Idempotency-Key`. So it never runs twice.
 */
export class RelayedCall {
  private readonly options: RelayedCallOptions;
  private readonly call: EpisodeCall;
  private taskId: string | undefined;
  private begun = false;

  constructor(call: EpisodeCall, options: RelayedCallOptions) {
    this.call = call;
    this.options = options;
  }

  async run(): Promise<Outcome> {
    const { times, retries, now, random } = this.options;
    const { signal } = this.call;
    let contact = now();
    for (let attempt = 0; ; attempt++) {
      const started = now();
      const result = await this.attempt();
      if ('ok' in result) return result;
      this.begun ||= result.begun;
      if (this.begun && this.taskId === undefined && !this.options.client.honoursKeys) {
        throw failed(`The connection to the upstream was lost: ${UNKNOWN}.`, result.error);
      }
      if (result.contact) {
        contact = now();
        if (contact - started > (retries.longestDelayMs ?? 0)) attempt = 0; // it went well for a while
      }
      const rules = { ...retries, retries: Number.POSITIVE_INFINITY, longestRetryAfterMs: times.giveUpMs };
      const delay = retryDelay(attempt, result.retryAfterMs, rules, random);
      if (delay === undefined || now() - contact + delay > times.giveUpMs) throw this.givenUp(result.error);
      await pause(delay, signal);
    }
  }

  private givenUp(error: EnvironmentError): EnvironmentError {
    if (!this.begun) return error;
    const seconds = Math.round(this.options.times.giveUpMs / 1_000);
    return failed(`The upstream was away for ${seconds} s during the call: ${UNKNOWN} to its end.`, error);
  }

  private async attempt(): Promise<Outcome | Setback> {
    const { client, path, sid, times, maxResultBytes } = this.options;
    const { name, input, taskId: key, signal } = this.call;
    const asked = this.taskId;
    const stream = new CallStream(maxResultBytes);
    let status = 0;
    let answered: IncomingHttpHeaders = {};
    let refusal = '';
    try {
      await client.exchange({
        method: 'POST',
        path: `${path}/call`,
        headers: {
          accept: 'text/event-stream',
          'content-type': 'application/json',
          'x-session-id': sid,
          'idempotency-key': key,
        },
        body: JSON.stringify({ name, input, ...(asked !== undefined && { task_id: asked }) }),
        headMs: asked === undefined && !client.honoursKeys ? times.headMs : times.silentMs,
        silentMs: times.silentMs,
        signal,
        head: (given, headers) => {
          status = given;
          answered = headers;
          this.learn(status, headers);
          if (status === 200 && !/^text\/event-stream\b/i.test(String(headers['content-type'] ?? ''))) {
            throw failed(`The upstream did not answer with a stream of events: ${UNKNOWN}.`);
          }
        },
        data: (bytes) => {
          if (status !== 200) {
            refusal += bytes.toString('latin1');
            return refusal.length > MAX_REFUSAL_BYTES;
          }
          const over = stream.feed(bytes);
          this.taskId = stream.taskId ?? this.taskId;
          return over;
        },
      });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      // The head of a refusal is a whole refusal.
      if (status === 0 || status === 200) return this.lost(error, status === 200);
    }
    if (stream.ended?.kind === 'end') return outcomeIn(stream.ended.json);
    if (stream.ended) throw this.toldError(stream.ended.message, asked !== undefined && stream.taskId === undefined);
    if (status === 200) return this.lost(new Lost(true, false), true);
    return this.refused(status, Buffer.from(refusal, 'latin1').toString(), answered);
  }

  /** That it keeps to keys is learnt wherever it says so; here that another server stands there now. */
  private learn(status: number, headers: IncomingHttpHeaders): void {
    if (status === 200 && headers['x-sluice-idempotency'] !== 'honoured') this.options.client.honoursKeys = false;
  }

  private lost(error: Lost, answered: boolean): Setback {
    const begun = error.sent || this.taskId !== undefined;
    // A server that is held up by a tool accepts, and says nothing for long.
    return { error: unreachable(error), begun, contact: answered || (error.sent && error.silent) };
  }

  private refused(status: number, text: string, headers: IncomingHttpHeaders): Setback {
    const error = refusalOf({ status, detail: this.options.client.conceal(detailIn(text)), episode: true });
    const retryAfterMs = parseRetryAfter(headers['retry-after'], Date.now());
    const setback = { error, contact: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    // Too busy, or not there: said before anything was begun.
    if (status === 429 || status === 503) return { ...setback, begun: false };
    // Said by something on the way, which may have passed the request on.
    if (status === 502 || status === 504) return { ...setback, begun: true };
    throw error;
  }

  /** `alone`: it was asked for by its id, and this was the first event. */
  private toldError(message: string, alone: boolean): EnvironmentError {
    if (alone && message.trim() === 'unknown task_id') {
      return failed(`The upstream no longer knows the call: ${UNKNOWN} to its end.`);
    }
    return failed(capped(this.options.client.conceal(message)) || NO_WORDS);
  }
}
