import { json, OrsServer, type OrsServerOptions } from '../../support/ors-server.ts';
import { gate, never, open, until, upstream, wish } from './support.ts';

const start = async (options: OrsServerOptions = {}, given: Parameters<typeof upstream>[1] = {}) => {
  const server = await OrsServer.start(options);
  return { server, environment: upstream(server, given) };
};

/** The next answers to one path are these; then the server's own. */
const replies = (server: OrsServer, path: string, ...answers: readonly (readonly [number, unknown] | 'cut')[]) => {
  const left = [...answers];
  server.answer = (request) => {
    const answer = request.path === path ? left.shift() : undefined;
    if (answer === undefined) return false;
    if (answer === 'cut') request.response.socket?.destroy();
    else json(request.response, ...answer);
    return true;
  };
};

describe('what an upstream has', () => {
  it('is asked for under the base URL and the name there', async () => {
    const server = await OrsServer.start({ prefix: '/deep/ors' });
    const environment = upstream({ url: `${server.url}/` }, {}, { name: 'Mine', environment: 'LAB' });
    expect(environment.name).toBe('mine');
    expect(await environment.splits()).toEqual([{ name: 'train', type: 'train' }]);
    expect(await environment.tools()).toEqual([{ name: 'echo', description: 'Says it.', input_schema: null }]);
    expect(await environment.tasks('train')).toHaveLength(3);
    expect(await environment.count('train')).toBe(3);
    expect(await environment.task('train', 1)).toEqual({ question: 'two' });
    expect(await environment.range('train', 1, 3)).toEqual([{ question: 'two' }, { question: 'three' }]);
    expect(server.paths()).toEqual(
      ['GET splits', 'GET tools', 'POST tasks', 'POST num_tasks', 'POST task', 'POST task_range'].map((line) =>
        line.replace(' ', ' /lab/'),
      ),
    );
    expect(server.requests.map(({ body }) => body).slice(2)).toEqual([
      { split: 'train' },
      { split: 'train' },
      { split: 'train', index: 1 },
      { split: 'train', start: 1, stop: 3 },
    ]);
  });

  it('is asked for with the headers of the settings, and its answer does not show what is secret in them', async () => {
    const server = await OrsServer.start();
    const headers = { 'X-API-Key': '${ORS_KEY}', 'X-Team': '${TEAM:-red}' };
    const environment = upstream(server, { env: { ORS_KEY: 'very-secret' } }, { headers });
    await environment.splits();
    expect(server.requests[0]?.headers).toMatchObject({ 'x-api-key': 'very-secret', 'x-team': 'red' });
    replies(server, '/lab/splits', [500, { detail: 'bad key very-secret' }]);
    await expect(environment.splits()).rejects.toThrow('The upstream answered 500: bad key [secret]');
    expect(() => upstream(server, {}, { headers })).toThrow('ORS_KEY is not set');
    expect(() => upstream(server, {}, { headers: { 'content-length': '3' } })).toThrow('cannot be set');
    expect(() => upstream(server, {}, { headers: { 'x-a': 'b\nc' } })).toThrow('x-a');
  });

  it.each([
    [400, 'Invalid split', 'invalid_split'],
    [400, 'Invalid index', 'invalid_index'],
    [400, 'list_tasks is not supported for this environment. Use another.', 'unsupported'],
    [501, 'no', 'unsupported'],
    [404, 'Not Found', 'failed'],
    [401, 'no', 'failed'],
    [308, '', 'failed'],
    [429, 'full', 'busy'],
    [500, 'oh', 'failed'],
  ])('is refused with %i "%s": %s, and not asked for again', async (status, detail, code) => {
    const { server, environment } = await start();
    replies(server, '/lab/task', [status, { detail }]);
    await expect(environment.task('train', 0)).rejects.toMatchObject({ code });
    expect(server.requests).toHaveLength(1);
  });

  it.each([502, 503, 504, 'cut'] as const)('is asked for again a few times after %s', async (trouble) => {
    const { server, environment } = await start();
    const answer = trouble === 'cut' ? trouble : ([trouble, {}] as const);
    replies(server, '/lab/num_tasks', answer, answer, answer);
    expect(await environment.count('train')).toBe(3);
    replies(server, '/lab/num_tasks', answer, answer, answer, answer, answer);
    await expect(environment.count('train')).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.requests).toHaveLength(8);
  });

  it('is unavailable when nobody is there, or nobody answers', async () => {
    const { server, environment } = await start({}, { times: { requestMs: 20 } });
    server.answer = () => true;
    await expect(environment.splits()).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.requests).toHaveLength(1);
    const absent = upstream({ url: 'http://127.0.0.1:9' });
    await expect(absent.splits()).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The upstream cannot be reached (ECONNREFUSED).',
    });
  });

  it('is not waited for when the gateway stops', async () => {
    const { server, environment } = await start();
    server.answer = () => true;
    const asked = expect(environment.splits()).rejects.toMatchObject({ code: 'unavailable' });
    await until(() => server.requests.length > 0);
    await environment.close();
    await asked;
    expect(server.requests).toHaveLength(1);
  });

  it('is checked before an episode is opened', async () => {
    const { environment } = await start();
    await environment.check({ task: { anything: 1 } });
    await environment.check({ split: 'train', index: 2 });
    await expect(environment.check({ split: 'train', index: 3 })).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(environment.check({ split: 'none', index: 0 })).rejects.toMatchObject({ code: 'invalid_split' });
  });
});

describe('an episode of an upstream', () => {
  it('is created, asked, and taken down in the order that servers expect', async () => {
    const { server, environment } = await start();
    const episode = await open(environment);
    expect(await episode.prompt(never())).toEqual([{ text: 'Do it.', detail: null, type: 'text' }]);
    expect(await episode.tools(never())).toEqual([{ name: 'echo', description: 'Says it.', input_schema: null }]);
    expect(await episode.prompt(never())).toHaveLength(1);
    await episode.close();
    expect(server.paths()).toEqual([
      'POST /create_session',
      'POST /create',
      'GET /lab/prompt',
      'GET /lab/task_tools',
      'GET /lab/prompt',
      'POST /delete',
      'POST /delete_session',
    ]);
    expect(server.requests[0]?.headers.accept).toContain('text/event-stream');
    expect(server.requests[1]?.body).toEqual({ env_name: 'Lab', split: 'train', index: 0 });
    const sids = server.requests.slice(1).map(({ headers }) => headers['x-session-id']);
    expect(new Set(sids).size).toBe(1);
    expect(server.sessions.size).toBe(0);
  });

  it('takes a task of its own', async () => {
    const { server, environment } = await start();
    await environment.open(wish({ choice: { task: { a: 1 } } }), never());
    expect(server.requests[1]?.body).toEqual({ env_name: 'Lab', task_spec: { a: 1 } });
    replies(server, '/create', [422, { detail: [{ loc: ['body', 'task_spec'], msg: 'has no b', input: 'hush' }] }]);
    const refused = environment.open(wish({ choice: { task: { a: 1 } } }), never());
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_task',
      message: 'The upstream answered 422: body.task_spec: has no b',
    });
  });

  it.each([
    ['JSON', { 'content-type': 'application/json' }, '{"sid":"given"}'],
    ['events', { 'content-type': 'text/event-stream' }, 'event: task_id\ndata: given\n\nevent: end\ndata:\n\n'],
    ['both', { 'content-type': 'text/event-stream' }, 'event:task_id\ndata:x\n\nevent:end\ndata:{"sid":"given"}\n\n'],
  ])('has the id that the upstream gives as %s', async (_, headers, body) => {
    const { server, environment } = await start();
    server.answer = ({ path, response }) => {
      if (path === '/create_session') response.writeHead(200, headers).end(body);
      return path === '/create_session';
    };
    await open(environment);
    expect([...server.sessions.keys()]).toEqual(['given']);
  });

  it('is not opened under an id that cannot be sent back', async () => {
    const { server, environment } = await start();
    replies(server, '/create_session', [200, { sid: 'a\nb' }]);
    await expect(open(environment)).rejects.toThrow('no id of a session');
  });

  it('gets its secrets in the body and in the header', async () => {
    const { server, environment } = await start();
    await environment.open(wish({ secrets: { KEY: 'a', OTHER: 'b' } }), never());
    const [, created] = server.requests;
    expect(created?.body.secrets).toEqual({ KEY: 'a', OTHER: 'b' });
    const header = JSON.parse(Buffer.from(String(created?.headers['x-secrets']), 'base64').toString()) as unknown;
    expect(header).toEqual({ KEY: { value: 'a' }, OTHER: { value: 'b' } });
  });

  it('gets its secrets in the header alone where the body may not have them', async () => {
    const { server, environment } = await start();
    const extra = { detail: [{ type: 'extra_forbidden', loc: ['body', 'secrets'], msg: 'Extra inputs', input: 'a' }] };
    replies(server, '/create', [422, extra]);
    await environment.open(wish({ secrets: { KEY: 'a' } }), never());
    const creations = server.requests.filter(({ path }) => path === '/create');
    expect(creations.map(({ body }) => body.secrets)).toEqual([{ KEY: 'a' }, undefined]);
    expect(creations[1]?.headers['x-secrets']).toBe(creations[0]?.headers['x-secrets']);
    replies(server, '/create', [422, extra], [422, extra]);
    await expect(environment.open(wish({ secrets: { KEY: 'a' } }), never())).rejects.toMatchObject({ code: 'failed' });
    replies(server, '/create', [400, { detail: 'Invalid index' }]);
    await expect(environment.open(wish({ secrets: { KEY: 'a' } }), never())).rejects.toMatchObject({
      code: 'invalid_index',
    });
    expect(server.requests.filter(({ path }) => path === '/create')).toHaveLength(5);
  });

  it('is opened when the setup is over, however long a proxy cuts the wait for it', async () => {
    const setup = gate();
    let time = 0;
    const { server, environment } = await start({ setup: () => setup.opened }, { now: () => (time += 6_000) });
    replies(server, '/lab/prompt', ...Array.from({ length: 10 }, () => [504, {}] as const));
    let opened = false;
    const opening = open(environment).then((episode) => {
      opened = true;
      return episode;
    });
    await until(() => server.paths().filter((path) => path === 'GET /lab/prompt').length === 11);
    expect(opened).toBe(false);
    setup.open();
    expect(await (await opening).prompt(never())).toHaveLength(1);
  });

  it('fails in the words of its setup, and nothing is left', async () => {
    const { server, environment } = await start({ setup: () => Promise.reject(new Error('no disk')) });
    await expect(open(environment)).rejects.toMatchObject({
      code: 'failed',
      message: 'The upstream answered 500: RuntimeError: no disk',
    });
    expect(server.sessions.size).toBe(0);
    expect(server.paths().slice(-2)).toEqual(['POST /delete', 'POST /delete_session']);
  });

  it.each([
    ['/create', [404, { detail: "unknown environment 'lab'" }], 'failed'],
    ['/create', [429, { detail: 'full' }], 'busy'],
    ['/create_session', [429, { detail: 'full' }], 'busy'],
    ['/create', [400, { detail: 'Session already exists' }], 'failed'],
  ] as const)('is not opened when %s is refused with %j: %s', async (path, answer, code) => {
    const { server, environment } = await start();
    replies(server, path, answer);
    await expect(open(environment)).rejects.toMatchObject({ code });
    expect(server.sessions.size).toBe(0);
  });

  it('is created once though the answer was lost', async () => {
    const { server, environment } = await start();
    let cut = true;
    server.answer = ({ path, response, headers }) => {
      if (path !== '/create' || !cut) return false;
      cut = false;
      server.sessions.set(String(headers['x-session-id']), Promise.resolve(undefined));
      response.socket?.destroy();
      return true;
    };
    const episode = await open(environment);
    expect(server.sessions.size).toBe(1);
    await episode.close();
    expect(server.sessions.size).toBe(0);
  });

  it('leaves nothing when it is not wanted any more', async () => {
    const stopped = new Error('not wanted');
    const { server, environment } = await start({ setup: () => new Promise(() => {}) });
    const controller = new AbortController();
    server.answer = ({ path }) => {
      if (path === '/lab/prompt') controller.abort(stopped);
      return false;
    };
    await expect(environment.open(wish(), controller.signal)).rejects.toBe(stopped);
    expect(server.sessions.size).toBe(0);
    expect(server.paths()).toContain('POST /delete');
  });

  it('leaves nothing when it is not wanted any more while it is being created', async () => {
    const stopped = new Error('not wanted');
    const { server, environment } = await start();
    const controller = new AbortController();
    server.answer = ({ path, response, headers }) => {
      if (path !== '/create') return false;
      controller.abort(stopped);
      setTimeout(() => {
        server.sessions.set(String(headers['x-session-id']), Promise.resolve(undefined));
        json(response, 200, {});
      }, 30);
      return true;
    };
    await expect(environment.open(wish(), controller.signal)).rejects.toBe(stopped);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.sessions.size).toBe(0);
    expect(server.paths().slice(-3)).toEqual(['POST /create', 'POST /delete', 'POST /delete_session']);
  });

  it('is kept alive from its creation to its end, though a ping fails now and then', async () => {
    const setup = gate();
    const { server, environment } = await start({ setup: () => setup.opened }, { times: { pingMs: 2 } });
    const pings = () => server.paths().filter((path) => path === 'POST /ping').length;
    replies(server, '/ping', [500, {}], 'cut', [503, {}]);
    const opening = open(environment);
    await until(() => pings() > 5);
    setup.open();
    const episode = await opening;
    const before = pings();
    await until(() => pings() > before + 2);
    await episode.close();
    const after = pings();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(pings()).toBe(after);
  });

  it.each([404, 410])('is gone when a ping is answered with %i', async (status) => {
    const { server, environment } = await start({}, { times: { pingMs: 2 } });
    const episode = await open(environment);
    replies(server, '/ping', [status, {}]);
    const told = () =>
      episode.tools(never()).then(
        () => undefined,
        (error: unknown) => error,
      );
    let answer: unknown;
    while (answer === undefined) answer = await told();
    expect(answer).toMatchObject({ code: 'gone' });
    const asked = server.requests.length;
    await expect(episode.tools(never())).rejects.toMatchObject({ code: 'gone' });
    expect(server.requests).toHaveLength(asked);
  });

  it('ends within its time whatever the upstream does, and says what did not work', async () => {
    const warnings: string[] = [];
    const { server, environment } = await start({}, { warn: (text) => warnings.push(text), times: { closeMs: 500 } });
    const episode = await open(environment);
    server.answer = ({ path }) => path === '/delete';
    await episode.close();
    expect(warnings).toEqual(['/delete of an upstream did not work. It took longer than 500 ms.']);
    const second = await open(environment);
    server.answer = ({ path, response }) => {
      if (path === '/delete') json(response, 404, {});
      if (path === '/delete_session') json(response, 500, { detail: 'oh' });
      return path.startsWith('/delete');
    };
    await second.close();
    expect(warnings.slice(1)).toEqual(['/delete_session of an upstream did not work. The upstream answered 500: oh']);
  });
});
