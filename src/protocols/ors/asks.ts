import type { Session } from '../../environments/session.ts';
import { sessionGone } from '../../environments/session-error.ts';
import type { Sessions } from '../../environments/sessions.ts';
import type { Jobs } from '../../jobs/jobs.ts';
import type { JobKind } from '../../jobs/kind.ts';
import type { JobReader } from '../../jobs/reader.ts';
import type { Job } from '../../jobs/writer.ts';
import { PROBLEMS, Problem, type ProblemCode } from '../problem.ts';
import { orsProblem } from './problems.ts';

/** What can be asked of a session, wherever it lives. */
export type Question = 'prompt' | 'tools' | 'delete';

interface Asked {
  readonly principal: string;
  readonly sid: string;
  readonly question: Question;
}

/** What the owner of the session has to say: a body, or what went wrong. */
type Answer =
  | { readonly body: unknown }
  | { readonly code: ProblemCode; readonly detail: string; readonly retryAfter?: string };

const answerText = (answer: Answer): string => JSON.stringify(answer);

/** Something that is asked of a session on another replica. Whoever asked reads the answer at once. */
const askKind: JobKind = {
  name: 'ors.ask',
  keepMs: 10_000,
  logMs: 10_000,
  maxEvents: 10,
  maxBytes: 32 * 1024 * 1024,
  ended: (_log, { cause, message }) => [
    answerText(
      cause === 'owner_lost' || cause === 'store_lost'
        ? { code: 'GONE', detail: sessionGone('lost').message }
        : { code: 'UNAVAILABLE', detail: message, retryAfter: '1' },
    ),
  ],
};

export interface AsksOptions {
  readonly jobs: Jobs;
  readonly sessions: Sessions;
  readonly setupWaitMs: number;
}

/** Questions about sessions. Those of other replicas are jobs that are sent there. */
export class Asks {
  private readonly options: AsksOptions;

  constructor(options: AsksOptions) {
    this.options = options;
    options.jobs.declare(askKind, (job, input) => this.answer(job, JSON.parse(input) as Asked));
  }

  /** The answer of a session of this replica. */
  async here(session: Session, question: Question): Promise<unknown> {
    const { sessions, setupWaitMs } = this.options;
    switch (question) {
      case 'prompt':
        return session.prompt(setupWaitMs);
      case 'tools':
        return { tools: await session.tools(setupWaitMs) };
      case 'delete':
        await sessions.end(session, 'deleted');
        return { sid: session.sid };
    }
  }

  /** The answer of a session of another replica. Throws a `Problem`. */
  async elsewhere(owner: string, asked: Asked, signal: AbortSignal): Promise<unknown> {
    const { jobs } = this.options;
    const { principal } = asked;
    const { id } = await jobs.dispatch({ kind: askKind, principal }, owner, JSON.stringify(asked));
    const reader = await jobs.attach(id, { principal, after: 0 });
    if (!reader)
      throw new Problem('UNAVAILABLE', 'The answer is not there any more.', { headers: { 'Retry-After': '1' } });
    const answer = JSON.parse(await lastEvent(reader, signal)) as Answer;
    if ('body' in answer) return answer.body;
    const { code, detail, retryAfter } = answer;
    const known = Object.hasOwn(PROBLEMS, code) ? code : 'INTERNAL_ERROR';
    throw new Problem(known, detail, retryAfter === undefined ? {} : { headers: { 'Retry-After': retryAfter } });
  }

  private async answer(job: Job, { principal, sid, question }: Asked): Promise<void> {
    const session = this.options.sessions.local(principal, sid);
    let answer: Answer;
    try {
      if (!session) throw sessionGone('lost');
      answer = { body: await this.here(session, question) };
    } catch (error) {
      const { code, message, headers } = orsProblem(error);
      const retryAfter = headers['Retry-After'];
      answer = { code, detail: message, ...(retryAfter !== undefined && { retryAfter }) };
    }
    await job.end('completed', answerText(answer));
  }
}

/** The terminal event of a job; the reader is closed then. */
const lastEvent = (reader: JobReader, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    let last = '';
    const leave = (): void => {
      reader.close();
      signal.removeEventListener('abort', gone);
    };
    const gone = (): void => {
      leave();
      reject(signal.reason as Error);
    };
    const look = (): void => {
      for (let taken = reader.take(); taken; taken = reader.take()) {
        if (taken.what === 'events') last = taken.events.at(-1)?.data ?? last;
        if (taken.what !== 'end') continue;
        leave();
        resolve(last);
        return;
      }
    };
    signal.addEventListener('abort', gone, { once: true });
    reader.onWake(look);
    look();
  });
