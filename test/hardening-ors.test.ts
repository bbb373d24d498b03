import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { eventually } from './streams/logs.ts';
import { makeDirectory } from './support/directory.ts';
import { lab, startHosting } from './support/environment.ts';
import { type RunningGateway, tokenFor } from './support/gateway.ts';
import { type RawAnswer, type RawRequest, rawRequest } from './support/raw-request.ts';

type Headers = Readonly<Record<string, string>>;
/** `bare` is node's own answer to what is not HTTP. */
type Row = readonly [what: string, sent: RawRequest | (() => RawRequest), status: number, says: string | 'bare'];

const bearerOf = (sub: string): Headers => ({ Authorization: `Bearer ${tokenFor({ sub, scope: 'ors' })}` });
const me = bearerOf('me');
const you = bearerOf('you');
const mine = { ...me, 'X-Session-ID': 'mine' };
const FIRST = { split: 'train', index: 0 };

const post = (path: string, body: unknown, headers: Headers = mine): RawRequest => ({
  method: 'POST',
  path,
  headers,
  body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
});
const ask = (path: string, headers: Headers): RawRequest => ({
  method: /prompt|tools/.test(path) ? 'GET' : 'POST',
  path,
  headers,
});
const create = (body: unknown, headers: Headers = {}): RawRequest =>
  post('/create', body, { ...me, 'X-Session-ID': 'new', ...headers });
const call = (body: unknown, headers: Headers = {}): RawRequest => post('/call', body, { ...mine, ...headers });
const base64 = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');
const nested = (times: number): string => `${'{"a":'.repeat(times)}1${'}'.repeat(times)}`;

const NEEDED = 'X-Session-ID header is required';
const VISIBLE = 'X-Session-ID has at most 255 visible characters.';
const UNKNOWN = 'Active environment not found';
const SECRETS = 'X-Secrets must be base64 of a JSON object whose values are texts.';
const KEY = 'An Idempotency-Key has 1 to 255 visible ASCII characters.';
const CHOICE = 'Give either task_spec, or both split and index.';
const IN_SESSION = ['/ping', '/delete', '/prompt', '/lab/task_tools', '/call'];

// biome-ignore format: one row per line
const sessions: readonly Row[] = [
  ...['/create', '/delete_session', ...IN_SESSION].flatMap((path): Row[] => [
    [`no session id at ${path}`, ask(path, me), 400, NEEDED],
    ...['', '   ', '\t', '\xa0'].map((sid): Row => [`the session id ${JSON.stringify(sid)} at ${path}`, ask(path, { ...me, 'X-Session-ID': sid }), 400, NEEDED]),
    ...['x'.repeat(256), 'x'.repeat(10_000), 'a\tb', 'é', Buffer.from('😀').toString('latin1')].map((sid): Row => [`the session id ${JSON.stringify(sid).slice(0, 20)} of ${sid.length} at ${path}`, ask(path, { ...me, 'X-Session-ID': sid }), 400, VISIBLE]),
    ...['\x01', 'a\0b', '\x7f'].map((sid): Row => [`the session id ${JSON.stringify(sid)} at ${path}`, ask(path, { ...me, 'X-Session-ID': sid }), 400, 'bare']),
  ]),
  ...IN_SESSION.flatMap((path): Row[] => [
    [`a session of nobody at ${path}`, ask(path, { ...me, 'X-Session-ID': 'none' }), 404, UNKNOWN],
    [`a session of somebody else at ${path}`, ask(path, { ...you, 'X-Session-ID': 'mine' }), 404, UNKNOWN],
    [`two session ids at ${path}`, ask(path, { ...mine, 'x-session-id': 'mine' }), 404, UNKNOWN],
  ]),
  ['a session id that is taken', create(FIRST, { 'X-Session-ID': 'mine' }), 400, 'Session already exists'],
];

// biome-ignore format: one row per line
const secrets: readonly Row[] = [
  ...['%%%', 'no secrets', base64('no secrets'), base64('{"A":'), base64([]), base64([{ value: 'x' }]), base64('null'), base64('1'), base64('"text"'), base64({ A: 1 }), base64({ A: null }), base64({ A: { value: 1 } }), base64({ A: {} }), base64({ A: ['x'] }), base64({ A: { value: { value: 'x' } } }), base64('{"__proto__":{"value":1}}')].map(
    (header): Row => [`X-Secrets: ${header}`, create(FIRST, { 'X-Secrets': header }), 400, SECRETS],
  ),
  ...[[], 'text', 1, true].map((given): Row => [`the secrets ${JSON.stringify(given)}`, create({ ...FIRST, secrets: given }), 400, 'secrets must be object']),
  ...[1, null, {}, ['x']].map((given): Row => [`the secret ${JSON.stringify(given)}`, create({ ...FIRST, secrets: { A: given } }), 400, 'secrets.A must be string']),
  ['a secret called __proto__ that is no text', create('{"split":"train","index":0,"secrets":{"__proto__":{"polluted":1}}}'), 400, 'must be string'],
];

/** What no route reads. */
const unreadable = (to: (body: unknown, headers?: Headers) => RawRequest, name: string): readonly Row[] =>
  // biome-ignore format: one row per line
  [
    [`JSON that breaks off, to ${name}`, to('{"name":'), 400, 'The body is not JSON'],
    [`no JSON, to ${name}`, to('split=train'), 400, 'The body is not JSON'],
    [`an empty body, to ${name}`, to(''), 400, 'it is empty'],
    [`no body, to ${name}`, { ...to(''), body: undefined as never }, 400, 'The body must be object.'],
    [`bytes that are not UTF-8, to ${name}`, to(Buffer.from('{"split":"\xff"}', 'latin1')), 400, 'it is not UTF-8'],
    ...['null', '1', '"text"', '[]', '[{}]'].map((body): Row => [`${body}, to ${name}`, to(body), 400, 'The body must be object.']),
    [`a key nobody knows, to ${name}`, to({ ...FIRST, name: 'submit', input: {}, more: 1 }), 400, ' is not known here.'],
    ...['__proto__', 'constructor', 'toString'].map((key): Row => [`a key ${key}, to ${name}`, to(`{"${key}":{"polluted":1}}`), 400, name === '/create' ? `${key} is not known here.` : '']),
    [`17 MB, to ${name}`, () => to(Buffer.alloc(17_000_000, ' ')), 413, 'The body is too large.'],
    [`17 MB once unpacked, to ${name}`, () => to(gzipSync(Buffer.alloc(17_000_000, ' ')), { 'Content-Encoding': 'gzip' }), 413, 'The body is too large.'],
    [`a charset nobody knows, to ${name}`, to('{}', { 'Content-Type': 'application/json; charset=latin1' }), 400, 'unsupported charset'],
  ];
const to =
  (path: string) =>
  (body: unknown, headers: Headers = {}) =>
    post(path, body, { ...me, ...headers });

// biome-ignore format: one row per line
const bodies: readonly Row[] = [
  ...unreadable(create, '/create'),
  ...unreadable(call, '/call'),
  ...['/tasks', '/lab/num_tasks', '/task', '/lab/task_range'].flatMap((path) => unreadable(to(path), path)),
  ...[{}, { split: 'train' }, { index: 0 }, { task_spec: {}, split: 'train', index: 0 }, { task_spec: {}, split: 'train' }, { task_spec: null }].map((body): Row => [`to create ${JSON.stringify(body)}`, create(body), 400, CHOICE]),
  ...[1, [], {}, true].map((name): Row => [`the env_name ${JSON.stringify(name)}`, create({ ...FIRST, env_name: name }), 400, 'env_name must be string']),
  ...[[], 'text', 1].map((task): Row => [`the task_spec ${JSON.stringify(task)}`, create({ task_spec: task }), 400, 'task_spec must be object']),
  ...['"0"', '1.5', '1e400', '9007199254740992', 'true', '[0]'].map((index): Row => [`the index ${index}`, create(`{"split":"train","index":${index}}`), 400, 'index must be']),
  ...['"0"', '1.5', '1e400', '9007199254740992', 'true', 'null'].map((index): Row => [`the index ${index} of a task`, to('/task')(`{"split":"train","index":${index}}`), 400, 'index must be']),
  ...[-1, 3, 2 ** 53 - 1].flatMap((index): Row[] => [
    [`to create with the index ${index}`, create({ split: 'train', index }), 400, 'Invalid index'],
    [`the task ${index}`, to('/task')({ split: 'train', index }), 400, 'Invalid index'],
  ]),
  ...['', 'none', 'Train', '__proto__', 'constructor', 'x'.repeat(1_024)].flatMap((split): Row[] => [
    [`to create with the split ${split.slice(0, 20)}`, create({ split, index: 0 }), 400, 'Invalid split'],
    ...['/tasks', '/num_tasks', '/task_range'].map((path): Row => [`the split ${split.slice(0, 20)} at ${path}`, to(path)({ split }), 400, 'Invalid split']),
  ]),
  ['a split of 1025 characters', to('/tasks')({ split: 'x'.repeat(1_025) }), 400, 'split must NOT have more than 1024 characters.'],
  ['an environment of nobody', create({ ...FIRST, env_name: 'none' }), 404, "unknown environment 'none'"],
  ['an environment with line ends', create({ ...FIRST, env_name: 'a\r\nb' }), 404, "unknown environment 'a\\r\\nb'"],
  ['a task nested 30,000 deep', create(`{"task_spec":${nested(30_000)}}`), 400, 'task_spec is nested too deeply.'],
  ['a task nested 1,000 deep', create(`{"task_spec":${nested(1_000)}}`), 400, 'task_spec is nested too deeply.'],
  ['an input nested 30,000 deep', call(`{"name":"repeat","input":${nested(30_000)}}`), 400, 'input is nested too deeply.'],
  ['lists nested 30,000 deep', call(`{"name":"repeat","input":{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`), 400, 'input is nested too deeply.'],
  ...[undefined, null, [], 'text', 1].map((input): Row => [`the input ${JSON.stringify(input)}`, call({ name: 'submit', input }), 400, input === undefined ? 'input is missing.' : 'input must be object.']),
  ...[undefined, null, '', 1, {}, 'x'.repeat(1_025)].map((name): Row => [`the tool ${JSON.stringify(name)?.slice(0, 20)}`, call({ name, input: {} }), 400, name === undefined ? 'name is missing.' : 'name must']),
  ...[1, true, {}, ['x']].map((id): Row => [`the task_id ${JSON.stringify(id)}`, call({ name: 'submit', input: {}, task_id: id }), 400, 'task_id must be string']),
  ['a task_id of 1025 characters', call({ name: 'submit', input: {}, task_id: 'x'.repeat(1_025) }), 400, 'task_id must'],
  ...['', 'x'.repeat(256), 'clé', 'a b', 'a\tb'].map((key): Row => [`the Idempotency-Key ${JSON.stringify(key).slice(0, 20)}`, call({ name: 'submit', input: { n: 0 } }, { 'Idempotency-Key': key }), 400, KEY]),
  ['an Idempotency-Key with a control character', call({ name: 'submit', input: { n: 0 } }, { 'Idempotency-Key': 'a\x01' }), 400, 'bare'],
  ['an Idempotency-Key that was used for another input', call({ name: 'submit', input: { n: 1 } }, { 'Idempotency-Key': 'used' }), 409, ''],
  ['an Idempotency-Key that was used for another tool', call({ name: 'hidden', input: { n: 0 } }, { 'Idempotency-Key': 'used' }), 409, ''],
];

// biome-ignore format: one row per line
const names: readonly Row[] = [
  ...([['%2e%2e', '..'], ['..', '..'], ['%00', '\\u0000'], ['%0d%0aX:y', '\\r\\nX:y'], ['%F0%9F%98%80', '😀'], ['lab%20', 'lab '], ['%20', ' '], ['lab%2ftools', 'lab/tools'], ['%22', '\\"'], ['__proto__', '__proto__'], ['constructor', 'constructor'], ['l%C3%A4b', 'läb'], ['docs', 'docs'], ['a'.repeat(8_000), `${'a'.repeat(80)}…`]] as const).flatMap(([path, shown]): Row[] => [
    [`GET /${path.slice(0, 20)}/tools`, ask(`/${path}/tools`, me), 404, `unknown environment '${shown}'`],
    [`POST /${path.slice(0, 20)}/tasks`, to(`/${path}/tasks`)({ split: 'train' }), 404, `unknown environment '${shown}'`],
    [`GET /${path.slice(0, 20)}/prompt of a session`, ask(`/${path}/prompt`, mine), 404, `unknown environment '${shown}'`],
  ]),
  ...['%zz', '%E0%A4%A', '%ff'].map((path): Row => [`GET /${path}/tools`, ask(`/${path}/tools`, me), 400, 'The path is not properly encoded.']),
];

const TABLE: readonly Row[] = [...sessions, ...secrets, ...bodies, ...names];

describe('a bad request to ORS', () => {
  let running: RunningGateway;
  const send = (sent: Row[1]): Promise<RawAnswer> =>
    rawRequest(running.port, typeof sent === 'function' ? sent() : sent);

  /** Everything that a request could have left behind. */
  const traces = async (): Promise<unknown> => {
    const { registry } = running.gateway.metrics;
    const counted = ['sluice_ors_sessions', 'sluice_ors_sessions_ended_total', 'sluice_jobs_started_total'];
    return Promise.all(counted.map((name) => registry.getSingleMetricAsString(name)));
  };

  beforeAll(async () => {
    running = await startHosting([lab()], { env: { SLUICE_ORS_PUBLIC: 'false' } });
    expect((await send(create(FIRST, { 'X-Session-ID': 'mine' }))).status).toBe(200);
    const used = { ...mine, 'Idempotency-Key': 'used' };
    const body = JSON.stringify({ name: 'submit', input: { n: 0 } });
    await (await fetch(`${running.url}/call`, { method: 'POST', headers: used, body })).text();
  });

  it.each(TABLE.map((row) => [row[0], row] as const))('is refused, and nothing begins: %s', async (_what, row) => {
    const [, sent, status, says] = row;
    const before = await traces();
    const answer = await send(sent);
    expect({ status: answer.status, json: answer.json }).toEqual({
      status,
      json: says === 'bare' ? undefined : { detail: expect.stringContaining(says) },
    });
    if (says !== 'bare') {
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
    }
    expect(await traces()).toEqual(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('is one of many kinds', () => {
    expect(TABLE.length).toBeGreaterThan(250);
    expect(new Set(TABLE.map(([what]) => what)).size).toBe(TABLE.length);
  });
});

const TWO_FRAMES = /^event: task_id\ndata: (\S+)\n\nevent: end\ndata: (.*)\n\n$/;

describe('a call by the id of another one', () => {
  let running: RunningGateway;
  const ran: string[] = [];
  const text = async (headers: Headers, body: object): Promise<string> =>
    (await fetch(`${running.url}/call`, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  const begin = async (headers: Headers): Promise<void> => {
    const sent = { method: 'POST', headers, body: JSON.stringify(FIRST) };
    expect((await fetch(`${running.url}/create`, sent)).status).toBe(200);
  };

  const note = {
    name: 'note',
    description: 'Keeps what it is told.',
    run: ({ said }: { said: string }) => `${ran.push(said)}`,
  };
  const known = { name: 'note', input: { said: 'once' } };

  beforeAll(async () => {
    running = await startHosting([lab('lab', { tools: [note] })], { env: { SLUICE_ORS_PUBLIC: 'false' } });
    await begin(mine);
    await begin({ ...me, 'X-Session-ID': 'other' });
    await begin({ ...you, 'X-Session-ID': 'mine' });
  });

  it('streams that call, and runs nothing, whatever else the body says', async () => {
    const first = await text(mine, known);
    const [, taskId] = TWO_FRAMES.exec(first) ?? [];
    expect(await text(mine, { name: 'other', input: { said: 'twice' }, task_id: taskId })).toBe(first);
    expect(ran).toEqual(['once']);
  });

  it.each([
    ['that is empty', mine, () => ''],
    ['of nobody', mine, () => '7c9e6679-7425-40de-944b-e07fc1f90ae7'],
    ['that is no id', mine, () => '../../x{y}\r\n*'],
    ['called __proto__', mine, () => '__proto__'],
    ['of another session', { ...me, 'X-Session-ID': 'other' }, (id: string) => id],
    ['of somebody else, who has a session of that name too', { ...you, 'X-Session-ID': 'mine' }, (id: string) => id],
  ])('is told that it is unknown, as if there were none: an id %s', async (_what, headers, idOf) => {
    const [, taskId = ''] = TWO_FRAMES.exec(await text(mine, known)) ?? [];
    expect(taskId).not.toBe('');
    const before = ran.length;
    expect(await text(headers, { ...known, task_id: idOf(taskId) })).toBe('event: error\ndata: unknown task_id\n\n');
    expect(ran.length).toBe(before);
  });
});

describe('a good request to ORS that looks like a bad one', () => {
  it.each([
    ['a session id of 255 characters', create(FIRST, { 'X-Session-ID': '~'.repeat(255) })],
    ['a session id with spaces around it', create(FIRST, { 'X-Session-ID': '  a b  ' })],
    ['a body that says it is text', create(FIRST, { 'Content-Type': 'text/plain' })],
    ['a body that says it is a form', create(FIRST, { 'Content-Type': 'application/x-www-form-urlencoded' })],
    ['a body in gzip', create(gzipSync(JSON.stringify(FIRST)), { 'Content-Encoding': 'gzip' })],
    ['a task nested 100 deep', create(`{"task_spec":${nested(100)}}`)],
    ['an empty X-Secrets', create(FIRST, { 'X-Secrets': '' })],
    ['an empty ping', { method: 'POST', path: '/delete_session', headers: { ...mine, 'Content-Length': '0' } }],
    ['a name in escapes', ask('/%6cAb/tools', me)],
  ])('is answered: %s', async (_what, sent) => {
    const running = await startHosting([lab()], { env: { SLUICE_ORS_PUBLIC: 'false' } });
    expect((await rawRequest(running.port, sent)).status).toBe(200);
    await running.stop();
  });

  it('gives an environment secrets of any name as they are, and nobody else', async () => {
    const seen: unknown[] = [];
    const setup = ({ secrets: given }: { secrets: object }): void => {
      seen.push(Object.entries(given).sort(), Object.getPrototypeOf(given) === Object.prototype);
    };
    const running = await startHosting([lab('lab', { setup })], { env: { SLUICE_ORS_PUBLIC: 'false' } });
    const header = base64('{"__proto__":{"value":"of the header"},"both":"header"}');
    const body = '{"split":"train","index":0,"secrets":{"constructor":"of the body","both":"body"}}';
    expect((await rawRequest(running.port, create(body, { 'X-Secrets': header }))).status).toBe(200);
    await eventually(() => seen.length > 0);
    const wanted = [
      ['__proto__', 'of the header'],
      ['both', 'header'],
      ['constructor', 'of the body'],
    ];
    expect(seen).toEqual([wanted, true]);
    expect(Object.prototype).not.toHaveProperty('value');
  });
});

describe('a secret', () => {
  const CANARIES = ['canary-of-the-header', 'canary-of-the-body'] as const;

  it('is in no log line, error, metric or episode log, though environments repeat it in all they throw', async () => {
    const directory = makeDirectory();
    const episodes = join(directory.path, 'episodes.jsonl');
    const lines: string[] = [];
    const running = await startHosting([lab()], {
      env: { SLUICE_ORS_EPISODE_LOG: episodes },
      destination: { write: (line: string) => void lines.push(line) },
    });
    const given: string[] = [];
    const sent = async (path: string, init: RequestInit): Promise<Response> => {
      const answer = await fetch(running.url + path, init);
      given.push(await answer.clone().text(), JSON.stringify([...answer.headers]));
      return answer;
    };
    const header = base64({ A: { value: CANARIES[0] } });
    const begin = async (sid: string, task: object): Promise<Response> =>
      sent('/create', {
        method: 'POST',
        headers: { 'X-Session-ID': sid, 'X-Secrets': header },
        body: JSON.stringify({ task_spec: task, secrets: { B: CANARIES[1] } }),
      });
    const of = (sid: string, name?: string): RequestInit => ({
      headers: { 'X-Session-ID': sid, 'X-Secrets': header },
      ...(name !== undefined && { method: 'POST', body: JSON.stringify({ name, input: {} }) }),
    });

    await begin('broken', { setup: 'throw' });
    await begin('mute', { prompt: 'throw' });
    for (const path of ['/prompt', '/task_tools', '/lab/prompt']) {
      expect((await sent(path, of('broken'))).status).toBe(500);
    }
    expect((await sent('/call', of('broken', 'submit'))).status).toBe(500);
    expect((await sent('/prompt', of('mute'))).status).toBe(500);
    for (const tool of ['throw', 'refuse', 'none']) expect((await sent('/call', of('mute', tool))).status).toBe(200);
    for (const body of [
      `{"secrets":{"B": ${CANARIES[1]}}}`,
      `{"secrets":"${CANARIES[1]}"}`,
      `{"secrets":["${CANARIES[1]}"`,
    ]) {
      expect((await sent('/create', { method: 'POST', headers: { 'X-Session-ID': 'x' }, body })).status).toBe(400);
    }
    for (const sid of ['broken', 'mute']) await sent('/delete', { ...of(sid), method: 'POST' });
    const metrics = await running.gateway.metrics.registry.metrics();
    await running.stop();

    const written = readFileSync(episodes, 'utf8');
    directory.remove();
    const log = lines.join('');
    // All of them were really repeated, and hidden.
    expect(log.match(/cannot begin with \[secret\] and \[secret\]/g)?.length).toBeGreaterThan(1);
    expect(log).toMatch(/cannot end with \[secret\] and \[secret\]/);
    expect(given.join('\n')).toMatch(/broken: \[secret\] and \[secret\]/);
    expect(given.join('\n')).toMatch(/nothing to say but \[secret\] and \[secret\]/);
    expect(written).toMatch(/no: \[secret\] and \[secret\]/);
    for (const canary of [...CANARIES, header, 'canary']) {
      expect(lines.filter((line) => line.includes(canary))).toEqual([]);
      expect(given.filter((text) => text.includes(canary))).toEqual([]);
      expect(written).not.toContain(canary);
      expect(metrics).not.toContain(canary);
    }
  });
});
