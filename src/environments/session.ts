import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { messageOf } from '../tools/message-of.ts';
import type { JsonObject } from '../tools/tool.ts';
import { concealedError } from './concealed-error.ts';
import type { EndedSession } from './directory.ts';
import {
  type Block,
  type Environment,
  EnvironmentError,
  type Episode,
  type EpisodeRequest,
  type Outcome,
  type ToolSpec,
} from './environment.ts';
import { checkedOutcome } from './outcome.ts';
import { within } from './pause.ts';
import { SessionError, sessionGone } from './session-error.ts';
import { CallTimeout, timedCall } from './timed-call.ts';
import { untilAborted } from './until-aborted.ts';

export interface SessionLimits {
  /** Calls at the same time; 0: any number. */
  readonly maxCalls: number;
  /** Where the tool itself says nothing else; 0: none. */
  readonly callTimeoutMs: number;
  readonly maxOutputBytes: number;
}

/** How a call ended, for metrics and the episode log. */
export type CallEnd = 'ok' | 'refused' | 'error' | 'timeout';

export interface CallReport {
  readonly taskId: string;
  readonly tool: string;
  readonly end: CallEnd;
  readonly ms: number;
  readonly reward: number | null;
  readonly finished: boolean;
  readonly error?: string;
}

export interface SessionObserver {
  setUp(session: Session, ms: number, error?: unknown): void;
  called(session: Session, report: CallReport): void;
  tornDown(session: Session, ms: number, error?: unknown): void;
}

export interface SessionOptions extends EpisodeRequest {
  readonly key: string;
  readonly environment: Environment;
  readonly limits: SessionLimits;
  readonly observe: SessionObserver;
  readonly now: () => number;
  /** Hides the secrets of the session in a text. */
  readonly conceal: (text: string) => string;
}

/** How long calls that were told to stop, or a setup, hold up the teardown. */
const STOP_MS = 5_000;

/**
 * One episode on this replica, from its setup to its teardown. Requests wait for the setup; the teardown happens exactly
 * once, whatever ends the session. While a request is under way it is not idle.
 */
export class Session {
  readonly key: string;
  readonly sid: string;
  /** Its own, where the session id may be used again. */
  readonly episodeId: string = randomUUID();
  readonly principal: string;
  readonly environment: Environment;
  readonly createdAt: number;
  /** What its calls have brought so far; those without a reward do not count. */
  rewarded = 0;
  rewardSum = 0;
  finished = false;
  calls = 0;
  private readonly options: SessionOptions;
  private readonly ending = new AbortController();
  /** Of the setup alone: what has listened to it should not hear of the end. */
  private readonly settingUp = new AbortController();
  private episode: Episode | undefined;
  private setupError: SessionError | undefined;
  private readonly setupDone: Promise<void>;
  private settleSetup: () => void = () => {};
  private readonly working = new Set<Promise<unknown>>();
  private requests = 0;
  private running = 0;
  private activeAt: number;
  private end: EndedSession | undefined;
  private closed: Promise<void> | undefined;
  private opening: Promise<void> | undefined;

  constructor(options: SessionOptions) {
    this.options = options;
    this.key = options.key;
    this.sid = options.sid;
    this.principal = options.principal;
    this.environment = options.environment;
    this.createdAt = options.now();
    this.activeAt = this.createdAt;
    setMaxListeners(0, this.ending.signal); // every call that runs listens to it
    this.setupDone = new Promise((resolve) => {
      this.settleSetup = resolve;
    });
  }

  get state(): 'waiting' | 'setup' | 'ready' | 'failed' | 'ended' {
    if (this.end) return 'ended';
    if (this.setupError) return 'failed';
    if (this.episode) return 'ready';
    return this.opening === undefined ? 'waiting' : 'setup';
  }

  /** Why its setup has failed, without its secrets. */
  get setupFailure(): string | undefined {
    return this.setupError?.message;
  }

  /** A text without its secrets. */
  conceal(text: string): string {
    return this.options.conceal(text);
  }

  get maxOutputBytes(): number {
    return this.options.limits.maxOutputBytes;
  }

  /** How it ended; undefined while it lives. */
  get ended(): EndedSession | undefined {
    return this.end;
  }

  /** How long nobody has asked for it; 0 while somebody does. */
  idleMs(now: number): number {
    return this.requests > 0 || this.running > 0 ? 0 : now - this.activeAt;
  }

  /** Somebody asked for it, here or elsewhere. */
  touch(at: number = this.options.now()): void {
    this.activeAt = Math.max(this.activeAt, at);
  }

  /** Something is being done for it: until its end it is not idle. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.requests++;
    try {
      return await work();
    } finally {
      this.requests--;
      this.touch();
    }
  }

  /** Runs the setup, which whoever has a place for it begins. */
  begin(): void {
    this.opening ??= this.setUp();
  }

  /** Throws what a setup that has failed already has to say. */
  checkSetup(): void {
    if (this.setupError) throw this.setupError;
  }

  /** The episode, once it is set up. Throws a `SessionError`. */
  async ready(waitMs: number): Promise<Episode> {
    if (this.episode && !this.end) return this.episode;
    if (!this.end && !this.setupError) {
      if ((await within(waitMs, this.setupDone)) === 'late') {
        throw new SessionError('slow', 'The setup of this session takes too long; try again later.');
      }
    }
    if (this.end) throw sessionGone(this.end);
    if (this.setupError) throw this.setupError;
    return this.episode as Episode;
  }

  /** A place for one more call; throws a `SessionError` if there is none. To be given back by calling it. */
  admit(): () => void {
    if (this.end) throw sessionGone(this.end);
    const { maxCalls } = this.options.limits;
    if (maxCalls > 0 && this.running >= maxCalls) {
      throw new SessionError('busy', `This session has ${maxCalls} calls at the same time already; try again later.`);
    }
    this.running++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.running--;
      this.touch();
    };
  }

  /** Waits for the setup and calls a tool. What it throws is fit to be shown. */
  async call(name: string, input: JsonObject, taskId: string, setupWaitMs: number): Promise<Outcome> {
    const episode = await this.ready(setupWaitMs);
    const begin = performance.now();
    this.calls++;
    const report = (end: CallEnd, more: Partial<CallReport> = {}): void => {
      const ms = performance.now() - begin;
      this.options.observe.called(this, { taskId, tool: name, end, ms, reward: null, finished: false, ...more });
    };
    try {
      const outcome = checkedOutcome(await this.run(episode, name, input, taskId), name);
      if (outcome.ok) {
        const { reward, finished } = outcome.output;
        if (reward !== null) {
          this.rewarded++;
          this.rewardSum += reward;
        }
        report('ok', { reward, finished });
        this.finished ||= finished;
        return outcome;
      }
      const error = this.conceal(outcome.error);
      report('refused', { error });
      return { ...outcome, error };
    } catch (error) {
      const shown = this.shown(error);
      report(error instanceof CallTimeout ? 'timeout' : 'error', { error: shown.message });
      throw shown;
    }
  }

  /** What the episode begins with; waits for the setup. */
  prompt(setupWaitMs: number): Promise<readonly Block[]> {
    return this.ask(setupWaitMs, (episode, signal) => episode.prompt(signal));
  }

  /** The tools of this episode; waits for the setup. */
  tools(setupWaitMs: number): Promise<readonly ToolSpec[]> {
    return this.ask(setupWaitMs, (episode, signal) => episode.tools(signal));
  }

  /** Ends it. The first reason holds; resolves when the teardown is over. */
  close(end: EndedSession): Promise<void> {
    this.closed ??= this.tearDown(end);
    return this.closed;
  }

  private ask<T>(setupWaitMs: number, ask: (episode: Episode, signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.during(async () => {
      const episode = await this.ready(setupWaitMs);
      const { signal } = this.ending;
      try {
        return await untilAborted(signal, () => ask(episode, signal));
      } catch (error) {
        throw this.shown(error);
      }
    });
  }

  /** What may be told of an error. */
  private shown(error: unknown): Error {
    if (error instanceof SessionError) return error;
    const code = error instanceof EnvironmentError ? error.code : 'failed';
    return new EnvironmentError(code, this.conceal(messageOf(error)), concealedError(error, this.options.conceal));
  }

  private async setUp(): Promise<void> {
    const { environment, observe, conceal, sid, principal, choice, secrets } = this.options;
    const begin = performance.now();
    try {
      this.ending.signal.throwIfAborted();
      const request: EpisodeRequest = { sid, principal, choice, secrets };
      const episode = await environment.open(request, this.settingUp.signal);
      if (this.end) await this.tearEpisodeDown(episode);
      else this.episode = episode;
      observe.setUp(this, performance.now() - begin);
    } catch (error) {
      const message = conceal(messageOf(error)) || 'no reason was given';
      this.setupError ??= new SessionError('setup', `Setup failed: ${message}`, concealedError(error, conceal));
      observe.setUp(this, performance.now() - begin, error);
    }
    this.settleSetup();
  }

  private async run(episode: Episode, name: string, input: JsonObject, taskId: string): Promise<Outcome> {
    const limitMs = episode.timeLimitMs?.(name) ?? this.options.limits.callTimeoutMs;
    const { outcome, over } = timedCall(episode, { name, input, taskId }, limitMs, this.ending.signal);
    this.working.add(over);
    void over.then(() => this.working.delete(over));
    return outcome;
  }

  private async tearDown(end: EndedSession): Promise<void> {
    this.end = end;
    this.ending.abort(sessionGone(end));
    if (!this.episode && !this.setupError) this.settingUp.abort(sessionGone(end));
    this.settleSetup(); // who waits for the setup is told at once
    await within(STOP_MS, Promise.all([...this.working, this.opening]));
    const { episode } = this;
    this.episode = undefined;
    if (episode) await this.tearEpisodeDown(episode);
  }

  private async tearEpisodeDown(episode: Episode): Promise<void> {
    const { observe } = this.options;
    const begin = performance.now();
    try {
      await episode.close();
      observe.tornDown(this, performance.now() - begin);
    } catch (error) {
      observe.tornDown(this, performance.now() - begin, error);
    }
  }
}
