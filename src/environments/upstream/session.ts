import { createParser } from 'eventsource-parser';
import { objectIn, parseJson, textIn } from '../../models/json.ts';
import { EnvironmentError, type TaskChoice } from '../environment.ts';
import { unusable } from './answers.ts';
import type { OrsClient, PlainAnswer } from './ors-client.ts';
import { detailIn } from './refusal.ts';

export type Secrets = Readonly<Record<string, string>>;

/** The id comes back in a header. */
const HEADER_TEXT = /^[\x21-\x7e]{1,256}$/;

const secretsHeader = (secrets: Secrets): Record<string, string> => {
  const entries = Object.entries(secrets);
  if (entries.length === 0) return {};
  const wrapped = Object.fromEntries(entries.map(([name, value]) => [name, { value }]));
  return { 'x-secrets': Buffer.from(JSON.stringify(wrapped)).toString('base64') };
};

/** The documents say JSON; the reference sends events, with the id in the first, and others also in the last one. */
const sidIn = ({ contentType, text }: PlainAnswer): string => {
  const inJson = (json: string): string | undefined => textIn(objectIn(parseJson(json))?.sid);
  let sid: string | undefined;
  if (/^text\/event-stream\b/i.test(contentType)) {
    const parser = createParser({
      onEvent: ({ event, data }) => {
        if (event === 'task_id') sid ??= textIn(data.trim());
        if (event === 'end') sid = inJson(data) ?? sid;
      },
    });
    parser.feed(text);
  } else {
    sid = inJson(text);
  }
  if (sid === undefined || !HEADER_TEXT.test(sid)) throw unusable('it has no id of a session');
  return sid;
};

export const createSession = async (client: OrsClient, secrets: Secrets, signal: AbortSignal): Promise<string> => {
  const headers = { accept: 'text/event-stream, application/json', ...secretsHeader(secrets) };
  return sidIn(await client.ask({ method: 'POST', path: '/create_session', headers, body: {}, signal }));
};

export interface Creation {
  readonly sid: string;
  /** What it is called upstream. */
  readonly environment: string;
  readonly choice: TaskChoice;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}

/**
 * Begins the setup. Secrets go both ways, since some servers read only the body and some only the header; of the latter
 * some refuse the body for it, and get it once more without.
 */
export const createEpisode = async (client: OrsClient, creation: Creation): Promise<void> => {
  const { secrets } = creation;
  const withSecrets = Object.keys(secrets).length > 0;
  const answer = await post(client, creation, withSecrets);
  if (answer === undefined) return;
  if (withSecrets && [400, 422].includes(answer.status) && detailIn(answer.text).includes('secrets')) {
    const second = await post(client, creation, false);
    if (second) throw refused(client, second, creation);
    return;
  }
  throw refused(client, answer, creation);
};

/** Undefined if it is done; otherwise the refusal. */
const post = async (client: OrsClient, creation: Creation, inBody: boolean): Promise<PlainAnswer | undefined> => {
  const { sid, environment, choice, secrets, signal } = creation;
  const task = 'task' in choice ? { task_spec: choice.task } : { split: choice.split, index: choice.index };
  const body = { env_name: environment, ...task, ...(inBody && { secrets }) };
  let repeated = false;
  const answer = await client.ask({
    ...{ method: 'POST', path: '/create', sid, headers: secretsHeader(secrets), body, signal },
    settles: ({ status }, attempt) => {
      repeated = attempt > 0;
      return status >= 400 && status < 500 && status !== 429;
    },
  });
  if (answer.status < 300) return undefined;
  // The answer to an earlier attempt was lost: what exists is ours.
  return repeated && /^session already exists/i.test(detailIn(answer.text)) ? undefined : answer;
};

const refused = (client: OrsClient, answer: PlainAnswer, { choice }: Creation): EnvironmentError => {
  const error = client.refusal(answer, false);
  if (error.code !== 'failed' || !('task' in choice) || ![400, 422].includes(answer.status)) return error;
  return new EnvironmentError('invalid_task', error.message);
};
