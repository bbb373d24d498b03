import { hash } from 'node:crypto';
import type { Response } from 'express';
import type { SessionDirectory } from '../../environments/directory.ts';
import type { Session } from '../../environments/session.ts';
import { sessionGone } from '../../environments/session-error.ts';
import { type Sessions, sessionKey, type Whereabouts } from '../../environments/sessions.ts';
import { JobOver } from '../../jobs/errors.ts';
import { JobStream } from '../../jobs/job-stream.ts';
import type { Jobs, NewWork, Started } from '../../jobs/jobs.ts';
import type { JobKind } from '../../jobs/kind.ts';
import type { JobReader, Taken } from '../../jobs/reader.ts';
import type { Job } from '../../jobs/writer.ts';
import type { CloseReason } from '../../sse/closing.ts';
import { STREAM_HEADERS } from '../../sse/connection.ts';
import type { Drainable } from '../../sse/drainable.ts';
import { frame } from '../../sse/frame.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import { messageOf } from '../../tools/message-of.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { Problem } from '../problem.ts';
import {
  ACCEPTED,
  aboutText,
  callDialect,
  callKind,
  errorEvent,
  isOfSession,
  type Refusal,
  refusalOf,
  refusedEvent,
  resultEvents,
  UNKNOWN_TASK,
} from './call-event.ts';
import { orsProblem } from './problems.ts';

export interface CallsOptions {
  readonly jobs: Jobs;
  readonly sessions: Sessions;
  readonly directory: SessionDirectory;
  readonly setupWaitMs: number;
  readonly lingerMs: number;
  readonly wheel: TimerWheel;
  readonly slowMs: number;
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason) => void;
  readonly failed: (message: string, error: unknown) => void;
}

export interface WantedCall {
  readonly principal: string;
  /** When its token ends, in ms since the epoch. */
  readonly expiresAt: number;
  readonly sid: string;
  readonly name: string;
  readonly input: JsonObject;
  readonly idempotencyKey?: string;
}

/** What the owner of a session is sent. */
type SentCall = Pick<WantedCall, 'principal' | 'sid' | 'name' | 'input'>;

/** Clients give up on a stream after 30 s without a byte. */
const PING_SECONDS = 10;
/** How long the owner of a session on another replica has to take a call before the client gets its task_id anyway. */
const ACCEPT_MS = 2_000;
const GONE = 'The result of this call is no longer kept.';
/** Says to another gateway that a call may be sent again with the same key. */
export const CALL_HEADERS = { 'X-Sluice-Idempotency': 'honoured' };

const fingerprintOf = ({ name, input }: Pick<WantedCall, 'name' | 'input'>): string =>
  hash('sha256', `${name}\n${JSON.stringify(input)}`, 'base64url');

/** What calls are kept under: those of an earlier session with the same id are not this one's. */
const episodeKey = ({ principal, sid }: WantedCall, whereabouts: Whereabouts): string => {
  if (whereabouts.where === 'here') return `${whereabouts.session.key}.${whereabouts.session.episodeId}`;
  return `${sessionKey(principal, sid)}.${whereabouts.episodeId}`;
};

/** Calls of tools, as jobs of the replica on which their session lives. */
export class Calls {
  private readonly options: CallsOptions;
  private readonly kind: JobKind;

  constructor(options: CallsOptions) {
    this.options = options;
    this.kind = callKind(options.lingerMs);
    options.jobs.declare(this.kind, (job, input) => this.takeOver(job, JSON.parse(input) as SentCall));
  }

  /** Calls a tool, or finds the call that this is a repetition of, and streams it. Throws what becomes a status. */
  async start(wanted: WantedCall, whereabouts: Whereabouts, res: Response): Promise<void> {
    const { directory } = this.options;
    const key = episodeKey(wanted, whereabouts);
    const call = fingerprintOf(wanted);
    if (wanted.idempotencyKey === undefined) {
      const left = await directory.rejoin(key, call);
      const reader = left === undefined ? undefined : await this.options.jobs.attach(left, { after: 0 });
      if (reader) {
        this.stream(res, reader, wanted, key, call);
        return;
      }
    }
    if (res.destroyed) return; // nobody waits for it, and nobody was told of it
    if (whereabouts.where === 'here') await this.startHere(wanted, whereabouts.session, key, call, res);
    else await this.startElsewhere(wanted, whereabouts.owner, whereabouts.environment, key, call, res);
  }

  /** Streams a call from its beginning, by the id that its client was given. */
  async again(wanted: WantedCall, whereabouts: Whereabouts, taskId: string, res: Response): Promise<void> {
    const { principal } = wanted;
    const key = episodeKey(wanted, whereabouts);
    const reader = await this.options.jobs.attach(taskId, { principal, after: 0 });
    if (reader?.track.facts?.kind === this.kind.name && isOfSession(reader.track.facts, key)) {
      this.stream(res, reader, wanted, key, fingerprintOf(wanted));
      return;
    }
    reader?.close();
    this.tell(res, UNKNOWN_TASK);
  }

  private async startHere(
    wanted: WantedCall,
    session: Session,
    key: string,
    call: string,
    res: Response,
  ): Promise<void> {
    const { jobs } = this.options;
    session.checkSetup();
    const leave = session.admit();
    // The tool begins behind the first bytes of the answer: a client that is gone by then would ask for it again.
    let begin: (wantedStill: boolean) => void = () => {};
    const begun = new Promise<boolean>((resolve) => {
      begin = resolve;
    });
    let started: Started;
    try {
      const work = this.wanted(wanted, session.environment.name, key, call);
      started = await jobs.start(work, (job) => this.work(job, session, wanted, leave, begun));
    } catch (error) {
      leave();
      throw error;
    }
    if (!started.created) leave();
    const reader = await jobs.attach(started.id, { principal: wanted.principal, after: 0 });
    // With a key it can be asked for again without harm.
    if (res.destroyed && wanted.idempotencyKey === undefined) {
      reader?.close(); // not as one that was left: who asks again should not be led to a call that never began
      begin(false);
      return;
    }
    if (reader) this.stream(res, reader, wanted, key, call);
    else this.tell(res, GONE);
    begin(true);
  }

  private async startElsewhere(
    wanted: WantedCall,
    owner: string,
    environment: string,
    key: string,
    call: string,
    res: Response,
  ): Promise<void> {
    const { jobs } = this.options;
    const { principal, sid, name, input } = wanted;
    const sent: SentCall = { principal, sid, name, input };
    const work = this.wanted(wanted, environment, key, call);
    const { id } = await jobs.dispatch(work, owner, JSON.stringify(sent));
    const first = await jobs.attach(id, { principal, after: 0 });
    const refusal = first && refusalIn(await firstEvent(first, ACCEPT_MS));
    first?.close();
    if (refusal) throw refused(refusal);
    const reader = await jobs.attach(id, { principal, after: 0 });
    if (!reader) {
      this.tell(res, GONE);
      return;
    }
    const stream = this.stream(res, reader, wanted, key, call);
    // The call goes on elsewhere: the client may follow it through another replica.
    if (stream) this.options.opened(stream);
  }

  private wanted(
    { principal, name, idempotencyKey }: WantedCall,
    environment: string,
    key: string,
    call: string,
  ): NewWork {
    return {
      kind: this.kind,
      principal,
      about: aboutText({ session: key, environment, tool: name.slice(0, 200) }),
      ...(idempotencyKey !== undefined && { idempotency: { key: `ors ${key} ${idempotencyKey}`, fingerprint: call } }),
    };
  }

  private async work(
    job: Job,
    session: Session,
    { name, input }: SentCall,
    leave: () => void,
    begun: Promise<boolean>,
  ): Promise<void> {
    try {
      if (!(await begun)) {
        await job.end('cancelled', errorEvent('The client had gone before the call began.'));
        return;
      }
      const outcome = await session.call(name, input, job.id, this.options.setupWaitMs);
      const events = resultEvents(outcome, session.maxOutputBytes);
      if (!events) throw new Error(`The result of ${name} is larger than ${session.maxOutputBytes} bytes.`);
      const last = events.pop() as string;
      for (const event of events) await job.emit(event);
      await job.end('completed', last);
    } catch (error) {
      if (error instanceof JobOver) throw error;
      await job.end('failed', errorEvent(messageOf(error)));
    } finally {
      leave();
    }
  }

  /** A call that was sent here because its session is here. */
  private async takeOver(job: Job, sent: SentCall): Promise<void> {
    const session = this.options.sessions.local(sent.principal, sent.sid);
    let leave: () => void;
    try {
      if (!session) throw sessionGone('lost');
      session.checkSetup();
      leave = session.admit();
    } catch (error) {
      const { code, message } = orsProblem(error);
      await job.end('failed', refusedEvent(code, message));
      return;
    }
    await job.emit(ACCEPTED);
    await this.work(job, session, sent, leave, Promise.resolve(true));
  }

  private stream(
    res: Response,
    reader: JobReader,
    { expiresAt }: WantedCall,
    key: string,
    call: string,
  ): JobStream | undefined {
    const { wheel, slowMs, directory, failed } = this.options;
    const { id } = reader.track;
    let over = false;
    const stream: JobStream = new JobStream(res, reader, {
      ...{ wheel, slowMs, expiresAt, headers: CALL_HEADERS },
      dialect: callDialect,
      heartbeatSeconds: PING_SECONDS,
      frameByFrame: true,
      closed: (reason) => {
        over = true;
        // Whoever comes back with the same call means this one.
        if (reason !== 'finished') {
          directory.leave(key, call, id).catch((error: unknown) => failed('A call that was left is not known.', error));
        }
        queueMicrotask(() => this.options.closed(stream, reason));
      },
    });
    return over ? undefined : stream;
  }

  /** An answer that is nothing but an error. */
  private tell(res: Response, message: string): void {
    res.writeHead(200, { ...STREAM_HEADERS, ...CALL_HEADERS });
    res.end(frame({ event: 'error', data: message }));
  }
}

const refusalIn = (taken: Taken | undefined): Refusal | undefined =>
  taken?.what === 'events' ? refusalOf(taken.events[0]?.data ?? '') : undefined;

const refused = ({ code, detail }: Refusal): Problem => {
  const soon = code === 'RATE_LIMIT_EXCEEDED' || code === 'UNAVAILABLE';
  return new Problem(code, detail, soon ? { headers: { 'Retry-After': '1' } } : {});
};

/** The first event of a job; undefined if it is not there in time. */
const firstEvent = (reader: JobReader, ms: number): Promise<Taken | undefined> =>
  new Promise((resolve) => {
    const done = (taken: Taken | undefined): void => {
      clearTimeout(timer);
      resolve(taken);
    };
    const look = (): void => {
      const taken = reader.take(1);
      if (taken) done(taken);
    };
    const timer = setTimeout(() => done(undefined), ms);
    reader.onWake(look);
    look();
  });
