import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { lab, startHosting } from '../support/environment.ts';
import { type RunningGateway, tokenFor } from '../support/gateway.ts';
import { bodyFor, ENVIRONMENT_ROUTES, ROOT_ROUTES } from '../support/ors-routes.ts';

type Shape = 'ossa' | 'api' | 'openai' | 'ors';
const KEYS: Readonly<Record<Shape, readonly string[]>> = {
  ossa: ['code', 'message'],
  api: ['code', 'error'],
  openai: ['error'],
  ors: ['detail'],
};

const headers = { Authorization: `Bearer ${tokenFor({ scope: 'ors' })}`, 'X-Session-ID': 'here' };

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly location: string | null;
}

const send = async ({ url }: RunningGateway, method: string, path: string, more = {}): Promise<Answer> => {
  const suffix = path.replace(/\/$/, '').split('/').at(-1) ?? '';
  const body = method === 'POST' ? JSON.stringify(bodyFor(suffix) ?? {}) : null;
  const answer = await fetch(url + path, { method, headers: { ...headers, ...more }, body, redirect: 'manual' });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json');
  return { status: answer.status, body: isJson ? JSON.parse(text) : text, location: answer.headers.get('location') };
};
const keysOf = ({ body }: Answer): string[] => Object.keys(body as object).sort();

describe('the paths of ORS', () => {
  let running: RunningGateway;

  beforeAll(async () => {
    running = await startHosting([lab('Lab'), lab('Second')]);
    for (const sid of ['here', 'elsewhere']) {
      expect((await send(running, 'POST', '/create', { 'X-Session-ID': sid })).status).toBe(200);
    }
  });

  /** Everything that is mounted before ORS. */
  const GROUPS: Readonly<Record<string, Shape>> = {
    livez: 'ossa',
    readyz: 'ossa',
    metrics: 'ossa',
    health: 'ossa',
    'openapi.json': 'ossa',
    console: 'ossa',
    auth: 'ossa',
    'auth/session': 'ossa',
    api: 'api',
    'api/agents': 'api',
    responses: 'openai',
    v1: 'openai',
    'v1/models': 'openai',
    models: 'openai',
    events: 'ossa',
    'events/stream': 'ossa',
    capabilities: 'ossa',
    'capabilities/x': 'ossa',
    'agent-status': 'ossa',
    agents: 'ossa',
    'agents/x': 'ossa',
    channels: 'ossa',
  };
  const paths = [...ENVIRONMENT_ROUTES, ...ROOT_ROUTES].flatMap(([method, suffix]) => [
    [method, suffix] as const,
    [method, `${suffix}/`] as const,
    [method === 'GET' ? 'POST' : 'GET', suffix] as const,
    [method, `lab/${suffix}`] as const,
  ]);

  it.each(Object.entries(GROUPS))('never answer for another group: /%s', async (prefix, shape) => {
    for (const [method, suffix] of paths) {
      for (const first of [prefix, prefix.toUpperCase()]) {
        const path = `/${first}/${suffix}`;
        const answer = await send(running, method, path);
        // That one is there, and needs another scope.
        const status = method === 'GET' && /^\/api\/tools\/?$/i.test(path) ? 403 : 404;
        expect([method, path, answer.status, keysOf(answer)]).toEqual([method, path, status, KEYS[shape]]);
      }
    }
  });

  it.each(ENVIRONMENT_ROUTES)(
    'stand alone and behind a name, with or without a slash: %s %s',
    async (method, suffix) => {
      const variants = ['', '/lab', '/LAB', '/%6Cab'].flatMap((name) => [`${name}/${suffix}`, `${name}/${suffix}/`]);
      for (const path of variants) {
        const { status, location } = await send(running, method, path);
        expect([path, status, location]).toEqual([path, 200, null]);
      }
    },
  );

  it.each(ROOT_ROUTES)('need no name: %s %s', async (method, suffix) => {
    for (const path of [`/${suffix}`, `/${suffix}/`]) {
      const { status, location } = await send(running, method, path, { 'X-Session-ID': `${path} of its own` });
      const wanted = suffix === 'ping' || suffix === 'delete' ? 404 : 200; // nobody has such a session
      expect([path, status, location]).toEqual([path, wanted, null]);
    }
  });

  it('say whose tasks they are in the words of the request, and by the right name where it has none', async () => {
    expect((await send(running, 'POST', '/LaB/task')).body).toEqual({ task: { n: 0 }, env_name: 'LaB' });
    expect((await send(running, 'POST', '/task')).body).toEqual({ task: { n: 0 }, env_name: 'lab' });
  });

  it.each([
    ['owner/second', 'second'],
    ['Second', 'second'],
    ['owner/lab', 'lab'],
    ['owner/unknown', 'lab'],
    ['', 'lab'],
  ])('mean the environment of X-Deployment: %j', async (deployment, name) => {
    const { body } = await send(running, 'POST', '/task', { 'X-Deployment': deployment });
    expect(body).toMatchObject({ env_name: name });
  });

  it.each(ENVIRONMENT_ROUTES)('tell that there is no such environment: %s %s', async (method, suffix) => {
    for (const name of ['x', 'X', 'docs', 'redoc', 'labs', 'version', 'tools']) {
      const { status, body } = await send(running, method, `/${name}/${suffix}`);
      expect([status, body]).toEqual([404, { detail: `unknown environment '${name}'` }]);
    }
  });

  it('leave what is under no environment to the last 404, and keep what is under one', async () => {
    expect(keysOf(await send(running, 'GET', '/x/y'))).toEqual(KEYS.ossa);
    expect(keysOf(await send(running, 'GET', '/x'))).toEqual(KEYS.ossa);
    expect(keysOf(await send(running, 'POST', '/x/tools'))).toEqual(KEYS.ossa);
    for (const path of ['/lab', '/LAB/', '/lab/y', '/Second/tools/y', '/tools/y', '/create/y']) {
      const answer = await send(running, 'GET', path);
      expect([path, answer.status, keysOf(answer)]).toEqual([path, 404, KEYS.ors]);
    }
  });

  it('do not care which environment a session is called through, unless they are told to', async () => {
    expect((await send(running, 'GET', '/second/prompt')).status).toBe(200);
    const strict = await startHosting([lab('Lab'), lab('Second')], { env: { SLUICE_ORS_CHECK_ENV: 'true' } });
    await send(strict, 'POST', '/create');
    const { status, body } = await send(strict, 'GET', '/second/prompt');
    expect([status, body]).toEqual([404, { detail: "This session is one of the environment 'lab'." }]);
    for (const path of ['/LAB/prompt', '/prompt']) expect((await send(strict, 'GET', path)).status).toBe(200);
    await strict.stop();
  });
});

describe('the paths of ORS under a prefix', () => {
  let running: RunningGateway;

  beforeAll(async () => {
    running = await startHosting([lab()], { env: { SLUICE_ORS_PREFIX: '/train/ors' } });
    expect((await send(running, 'POST', '/train/ors/create')).status).toBe(200);
  });

  it.each(ENVIRONMENT_ROUTES)('are there and nowhere else: %s %s', async (method, suffix) => {
    for (const path of [`/train/ors/${suffix}`, `/train/ors/Lab/${suffix}/`]) {
      expect([path, (await send(running, method, path)).status]).toEqual([path, 200]);
    }
    for (const path of [`/${suffix}`, `/lab/${suffix}`, `/train/${suffix}`, `/train/lab/${suffix}`]) {
      const answer = await send(running, method, path);
      expect([path, answer.status, keysOf(answer)]).toEqual([path, 404, KEYS.ossa]);
    }
  });

  it('end in a 404 of their own', async () => {
    for (const path of ['', '/', '/x', '/x/y', '/health', '/events', '/lab', '/%zz']) {
      const answer = await send(running, 'GET', `/train/ors${path}`);
      expect([path, answer.status, keysOf(answer)]).toEqual([path, 404, KEYS.ors]);
    }
  });

  it('leave the probe at the root', async () => {
    expect(await send(running, 'GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
  });
});

describe('a manifest whose endpoint is that of an environment', () => {
  let directory: TestDirectory;
  const agent = (endpoint: string): string => `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: writer, version: 1.0.0 }
spec:
  role: Test.
  transport: { sse: { endpoint: ${endpoint}, channels: [content.published] } }
`;
  const errors = ({ gateway }: RunningGateway): string[] =>
    gateway.manifests.findings.filter(({ severity }) => severity === 'error').map(({ message }) => message);

  beforeEach(() => {
    directory = makeDirectory();
  });
  afterEach(() => directory.remove());

  it.each(['/lab', '/LAB'])('keeps the gateway from starting: %s', async (endpoint) => {
    directory.write('writer.ossa.yaml', agent(endpoint));
    await expect(startHosting([lab()], { env: { SLUICE_MANIFESTS: directory.path } })).rejects.toThrow(
      "ors.environments: no environment can be called lab, which is a manifest's endpoint.",
    );
  });

  it.each(['/lab/stream', '/LAB/stream'])(
    'only in part is told, and the environment is served: %s',
    async (endpoint) => {
      directory.write('writer.ossa.yaml', agent(endpoint));
      const running = await startHosting([lab()], { env: { SLUICE_MANIFESTS: directory.path } });
      expect(errors(running)).toEqual([
        expect.stringContaining('must not lie under /lab, which the gateway serves itself'),
      ]);
      expect(keysOf(await send(running, 'GET', endpoint))).toEqual(KEYS.ors);
      expect((await send(running, 'GET', '/lab/tools')).status).toBe(200);
      await running.stop();
    },
  );

  it('is told after a reload too, and served as it was before', async () => {
    directory.write('writer.ossa.yaml', agent('/labs'));
    const running = await startHosting([lab()], { env: { SLUICE_MANIFESTS: directory.path } });
    expect(errors(running)).toEqual([]);
    directory.write('writer.ossa.yaml', agent('/lab/stream'));
    await running.gateway.reload();
    expect(errors(running)).toEqual([expect.stringContaining('must not lie under /lab,')]);
    expect(keysOf(await send(running, 'GET', '/lab/stream'))).toEqual(KEYS.ors);
    const before = await fetch(`${running.url}/labs`, { headers: { Authorization: `Bearer ${tokenFor()}` } });
    expect([before.status, before.headers.get('content-type')]).toEqual([200, expect.stringContaining('event-stream')]);
    await before.body?.cancel();
    await running.stop();
  });

  it('is one under the prefix of ORS, and then the names are free', async () => {
    directory.write('writer.ossa.yaml', agent('/Train/stream'));
    const env = { SLUICE_MANIFESTS: directory.path, SLUICE_ORS_PREFIX: '/train/ors' };
    const running = await startHosting([lab()], { env });
    expect(errors(running)).toEqual([expect.stringContaining('must not lie under /train,')]);
    directory.write('writer.ossa.yaml', agent('/lab/stream'));
    await running.gateway.reload();
    expect(errors(running)).toEqual([]);
    await running.stop();
  });
});
