import { text as readAll } from 'node:stream/consumers';
import type { Remote } from './remote.ts';
import { UsageError } from './usage-error.ts';

export interface PublishOptions {
  readonly type?: string;
  readonly agentId?: string;
  readonly correlationId?: string;
  readonly idempotencyKey?: string;
}

/** JSON if it is, else the text itself: `sluice publish demo hello` should do what it looks like. */
const dataOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const messageOf = (body: string): string => {
  try {
    return (JSON.parse(body) as { message?: string }).message ?? body;
  } catch {
    return body;
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
  const data = dataOf(text === '-' ? await readAll(process.stdin) : text);
  const event = {
    channel,
    data,
    ...(type && { type }),
    ...(agentId && { agentId }),
    ...(correlationId && { correlationId }),
  };
  const answer = await fetch(new URL('events', remote.url), {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${remote.token}`,
      ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }),
    },
    body: JSON.stringify(event),
  }).catch((error: unknown) => {
    throw new UsageError(`${remote.url} does not answer: ${reasonOf(error)}.`);
  });
  const body = await answer.text();
  if (!answer.ok) throw new UsageError(`${answer.status}: ${messageOf(body)}`);
  return (JSON.parse(body) as { id: string }).id;
};

const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
};
