import { randomUUID } from 'node:crypto';
import { type RunningGateway, tokenFor } from '../support/gateway.ts';
import type { Row, Sent } from './openapi-requests.ts';

const token = { Authorization: `Bearer ${tokenFor({ sub: 'ann', scope: 'ors' })}` };
const BODY_BYTES = 16 * 1024 * 1024;
const large = (): string => ' '.repeat(BODY_BYTES + 1);
const inSession = (sid: string, more: Record<string, string> = {}): Record<string, string> => ({
  ...token,
  'X-Session-ID': sid,
  ...more,
});

/** What is only known once the gateway runs. */
const made = { taskId: '' };

const begin = async (on: RunningGateway, sid: string, body: object): Promise<void> => {
  const sent = { method: 'POST', headers: inSession(sid), body: JSON.stringify(body) };
  const answer = await fetch(`${on.url}/create`, sent);
  if (!answer.ok) throw new Error(await answer.text());
};

/** The sessions that the rows speak of. */
export const beginSessions = async (gateway: RunningGateway, tight: RunningGateway): Promise<void> => {
  for (const sid of ['here', 'over', 'mute', 'broken', 'deleted']) {
    const index = sid === 'mute' ? 1 : 0;
    await begin(gateway, sid, { split: sid === 'broken' || sid === 'mute' ? 'test' : 'train', index });
  }
  await fetch(`${gateway.url}/delete`, { method: 'POST', headers: inSession('over') });
  const call = (on: RunningGateway, name: string, key: string): Promise<Response> =>
    fetch(`${on.url}/call`, {
      method: 'POST',
      headers: inSession('here', { 'Idempotency-Key': key }),
      body: JSON.stringify({ name, input: { n: 0 } }),
    });
  const text = await (await call(gateway, 'submit', 'used')).text();
  made.taskId = /data: (.*)/.exec(text)?.[1] ?? '';
  await begin(tight, 'here', { split: 'train', index: 0 });
  await call(tight, 'wait', 'held'); // its answer is there with the first frame; the call goes on
};

/** Of one of the nine: the bare route and that of an environment, with the same answer. */
const both = (method: string, suffix: string, status: number, what: string, sent: () => Sent): readonly Row[] =>
  ['', '/{env}'].map((prefix): Row => {
    const target = `${prefix === '' ? '' : '/LAB'}/${suffix}`;
    return [`${method} ${prefix}/${suffix}`, status, what, () => ({ target, ...sent() })];
  });

/** Environments that are not there. */
const nobodys = (method: string, suffix: string, body?: object): readonly Row[] => {
  const sent: Sent = { headers: token, ...(body && { body }) };
  return [
    [`${method} /${suffix}`, 404, 'no environment at all', () => ({ ...sent, at: 'empty' })],
    [`${method} /{env}/${suffix}`, 404, 'an environment of nobody', () => ({ ...sent, target: `/none/${suffix}` })],
    [`${method} /{env}/${suffix}`, 400, 'a name that cannot be decoded', () => ({ ...sent, target: `/%zz/${suffix}` })],
  ];
};

const asked = (suffix: string): readonly Row[] =>
  // biome-ignore format: one row per line
  [
    ...both('GET', suffix, 200, 'a session', () => ({ headers: inSession('here') })),
    ...both('GET', suffix, 400, 'no session', () => ({ headers: token })),
    ...both('GET', suffix, 404, 'a session of nobody', () => ({ headers: inSession('none') })),
    ...both('GET', suffix, 410, 'a session that is over', () => ({ headers: inSession('over') })),
    ...both('GET', suffix, 500, 'a setup that has failed', () => ({ headers: inSession('broken') })),
  ];

const listed = (suffix: string, body: object, wrong: object): readonly Row[] =>
  // biome-ignore format: one row per line
  [
    ...both('POST', suffix, 200, 'a split', () => ({ headers: token, body })),
    ...both('POST', suffix, 400, 'a split of nobody', () => ({ headers: token, body: wrong })),
    ...both('POST', suffix, 413, 'a large body', () => ({ headers: token, body: large() })),
    ...nobodys('POST', suffix, body),
  ];

const called = (what: string, body: object, more: Record<string, string> = {}): readonly Row[] =>
  both('POST', 'call', 200, what, () => ({ headers: inSession('here', more), body }));

/** Requests that together get every answer that the document describes of ORS; those that concern only the token apart. */
// biome-ignore format: one row per line
export const ORS_ROWS: readonly Row[] = [
  ['GET /list_environments', 200, 'a token', () => ({ headers: token })],
  ['GET /version', 200, 'a token', () => ({ headers: token })],
  ['POST /create_session', 200, 'JSON', () => ({ headers: token, body: {} })],
  ['POST /create_session', 200, 'a stream, and no body', () => ({ headers: { ...token, Accept: 'text/event-stream' } })],
  ['POST /create', 200, 'a split and an index', () => ({ headers: inSession(randomUUID(), { 'X-Deployment': 'a/lab' }), body: { split: 'train', index: 0 } })],
  ['POST /create', 200, 'a task, secrets and nulls', () => ({ headers: inSession(randomUUID(), { 'X-Secrets': Buffer.from('{"A":{"value":"b"}}').toString('base64') }), body: { env_name: 'LAB', task_spec: {}, split: null, index: null, secrets: { A: 'c' }, toolset_name: null } })],
  ['POST /create', 400, 'neither a task nor a split', () => ({ headers: inSession('x'), body: {} })],
  ['POST /create', 404, 'an environment of nobody', () => ({ headers: inSession('x'), body: { env_name: 'none', split: 'train', index: 0 } })],
  ['POST /create', 413, 'a large body', () => ({ headers: inSession('x'), body: large() })],
  ['POST /create', 429, 'one session too many', () => ({ headers: inSession('x'), body: { split: 'train', index: 0 }, at: 'tight' })],
  ['POST /ping', 200, 'a session', () => ({ headers: inSession('here') })],
  ['POST /ping', 400, 'no session', () => ({ headers: token })],
  ['POST /ping', 404, 'a session of nobody', () => ({ headers: inSession('none') })],
  ['POST /ping', 410, 'a session that is over', () => ({ headers: inSession('over') })],
  ['POST /delete', 200, 'a session', () => ({ headers: inSession('deleted') })],
  ['POST /delete', 200, 'a session that is over', () => ({ headers: inSession('over') })],
  ['POST /delete', 400, 'no session', () => ({ headers: token })],
  ['POST /delete', 404, 'a session of nobody', () => ({ headers: inSession('none') })],
  ['POST /delete_session', 200, 'a session of nobody', () => ({ headers: inSession('none') })],
  ['POST /delete_session', 400, 'no session', () => ({ headers: token })],
  ...both('GET', 'tools', 200, 'a token', () => ({ headers: token })),
  ...nobodys('GET', 'tools'),
  ...both('GET', 'splits', 200, 'a token', () => ({ headers: token })),
  ...nobodys('GET', 'splits'),
  ...listed('tasks', { split: 'train' }, { split: 'none' }),
  ...listed('num_tasks', { split: 'test' }, {}),
  ...listed('task', { split: 'train', index: 2 }, { split: 'train', index: 3 }),
  ...listed('task_range', { split: 'train', start: -2, stop: null }, { split: 1 }),
  ...asked('task_tools'),
  ...asked('prompt'),
  ...both('GET', 'prompt', 500, 'a prompt that fails', () => ({ headers: inSession('mute') })),
  ...called('a reward', { name: 'submit', input: { n: 0 } }, { 'Idempotency-Key': 'k' }),
  ...called('a result in pieces', { name: 'repeat', input: { text: 'word ', times: 5_000 } }),
  ...called('a failure for the model', { name: 'refuse', input: {} }),
  ...called('a tool of nobody', { name: 'none', input: {}, task_id: null }),
  ...called('an input that does not fit', { name: 'submit', input: {} }),
  ...called('a fault', { name: 'throw', input: {} }),
  ...called('a call of nobody', { name: 'submit', input: {}, task_id: '' }),
  ...both('POST', 'call', 200, 'a call once more', () => ({ headers: inSession('here'), body: { name: 'submit', input: {}, task_id: made.taskId } })),
  ...both('POST', 'call', 400, 'a list for an input', () => ({ headers: inSession('here'), body: { name: 'submit', input: [] } })),
  ...both('POST', 'call', 404, 'a session of nobody', () => ({ headers: inSession('none'), body: { name: 'submit', input: {} } })),
  ...both('POST', 'call', 409, 'the key of another call', () => ({ headers: inSession('here', { 'Idempotency-Key': 'used' }), body: { name: 'submit', input: {} } })),
  ...both('POST', 'call', 410, 'a session that is over', () => ({ headers: inSession('over'), body: { name: 'submit', input: {} } })),
  ...both('POST', 'call', 413, 'a large body', () => ({ headers: inSession('here'), body: large() })),
  ...both('POST', 'call', 429, 'one call too many', () => ({ headers: inSession('here'), body: { name: 'submit', input: { n: 0 } }, at: 'tight' })),
  ...both('POST', 'call', 500, 'a setup that has failed', () => ({ headers: inSession('broken'), body: { name: 'submit', input: { n: 0 } } })),
];
