import { text as readAll } from 'node:stream/consumers';
import { ask } from './ask.ts';
import { isHeaderText, type Remote, reasonOf, refusalOf } from './remote.ts';
import { UsageError } from './usage-error.ts';

export interface PublishOptions {
  readonly type?: string;
  readonly agentId?: string;
  readonly correlationId?: string;
  readonly idempotencyKey?: string;
}

const SILENCE_MS = 30_000;

/** JSON if it is, else the text itself: `sluice publish demo hello` should do what it looks like. */
const dataOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Publishes one event and returns its id. `-` reads the data from standard input. */
export const publishTo = async (
  remote: Remote,
  channel: string,
  text: string,
  options: PublishOptions,
): Promise<string> => {
  const { type, agentId, correlationId, idempotencyKey } = options;
  if (idempotencyKey !== undefined && !isHeaderText(idempotencyKey)) {
    throw new UsageError('The idempotency key must be of visible ASCII characters.');
  }
  const data = dataOf(text === '-' ? await readAll(process.stdin) : text);
  const answer = await ask(remote, new URL('events', remote.url), {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    },
    body: JSON.stringify({ channel, data, type, agentId, correlationId }), // leaves out what is undefined
    silenceMs: SILENCE_MS,
  }).catch((error: unknown) => {
    throw new Error(`${remote.url} does not answer: ${reasonOf(error)}.`);
  });
  if (answer.status !== 201) throw new Error(await refusalOf(answer));
  return ((await answer.json()) as { id: string }).id;
};
