import type { Outcome } from '../../environments/environment.ts';
import { NO_WORDS } from '../../environments/outcome.ts';
import { type JobDialect, jobEncoders } from '../../jobs/dialect.ts';
import type { JobFacts } from '../../jobs/job.ts';
import type { JobKind } from '../../jobs/kind.ts';
import { comment, frame } from '../../sse/frame.ts';
import { Heartbeat } from '../../sse/heartbeat.ts';
import type { ProblemCode } from '../problem.ts';
import { piecesOf, wireJson } from './pieces.ts';

/** What the job of a call remembers of itself. */
export interface AboutCall {
  readonly session: string;
  readonly environment: string;
  readonly tool: string;
}

/** One string for the session, so that it can be compared without reading the rest. */
export const aboutText = ({ session, environment, tool }: AboutCall): string => `${session} ${environment} ${tool}`;
export const isOfSession = ({ about }: Pick<JobFacts, 'about'>, session: string): boolean =>
  about.startsWith(`${session} `);

/** An error is one frame, and clients give up on lines that are much longer. */
const ERROR_LINE = 4_096;
const ERROR_TOTAL = 16_384;

/** As much of a message as every client takes. */
export const errorText = (message: string): string =>
  message
    .slice(0, ERROR_TOTAL)
    .split(/\r\n|\r|\n/)
    .map((line) => (line.length > ERROR_LINE ? `${line.slice(0, ERROR_LINE - 1)}…` : line))
    .join('\n') || NO_WORDS;

/** How events are stored: the name of the frame, a space, its data. */
export const errorEvent = (message: string): string => `error ${errorText(message)}`;
/** The owner of the session has taken the call, and it may begin; only in calls that came from another replica. */
export const ACCEPTED = 'accepted';
/** It has not: nothing has run. */
export const refusedEvent = (code: ProblemCode, detail: string): string => `refused ${code} ${errorText(detail)}`;

export interface Refusal {
  readonly code: ProblemCode;
  readonly detail: string;
}

export const refusalOf = (data: string): Refusal | undefined => {
  const found = /^refused (\w+) ([\s\S]*)$/.exec(data);
  return found ? { code: found[1] as ProblemCode, detail: found[2] as string } : undefined;
};

/** The events of a result; the last one is terminal. Undefined: it is larger than it may be. */
export const resultEvents = (outcome: Outcome, maxBytes: number): string[] | undefined => {
  const json = wireJson(outcome);
  if (json.length > maxBytes / 3 && Buffer.byteLength(json) > maxBytes) return undefined;
  const pieces = piecesOf(json);
  return pieces.map((piece, i) => `${i === pieces.length - 1 ? 'end' : 'chunk'} ${piece}`);
};

/** A call of a tool. Its stream is whole for as long as its result is kept. */
export const callKind = (lingerMs: number): JobKind => ({
  name: 'ors.call',
  keepMs: lingerMs,
  logMs: lingerMs,
  maxEvents: 20_000,
  maxBytes: 48 * 1024 * 1024,
  ended: (_log, { message }) => [errorEvent(message)],
});

const eventFrame = (data: string): string => {
  if (data === ACCEPTED) return comment(ACCEPTED);
  const space = data.indexOf(' ');
  const name = data.slice(0, space);
  if (name === 'refused') return frame({ event: 'error', data: refusalOf(data)?.detail ?? '' });
  if (name === 'error') return frame({ event: name, data: data.slice(space + 1) });
  return `event: ${name}\ndata: ${data.slice(space + 1)}\n\n`;
};

/** What clients are told of a task that is not known, any more or at all. */
export const UNKNOWN_TASK = 'unknown task_id';

export const taskFrame = (id: string): string => `event: task_id\ndata: ${id}\n\n`;

export const callDialect: JobDialect = {
  encoders: jobEncoders(({ data }) => eventFrame(data)),
  heartbeat: new Heartbeat(() => comment('ping')),
  opening: ({ id }) => taskFrame(id),
  // A client that got a part of something else would put the two together: it must stop here.
  reset: () => frame({ event: 'error', data: UNKNOWN_TASK }),
  positionOf: () => undefined,
};
