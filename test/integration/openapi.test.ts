import { generateKeyPairSync } from 'node:crypto';
import { connect } from 'node:net';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { ApiDocument, MediaType } from '../../src/ops/openapi.ts';
import { textResult } from '../../src/tools/tool.ts';
import { signedBy } from '../auth/fixtures.ts';
import { eventually } from '../streams/logs.ts';
import { ApiCheck, type Exchange } from '../support/api-check.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { lab, startHosting } from '../support/environment.ts';
import { type RunningGateway, startGateway } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';
import { routeTable } from '../support/route-table.ts';
import { makeTool, TestProvider } from '../tools/tools.ts';
import { beginSessions, ORS_ROWS } from './openapi-ors-requests.ts';
import { ann, bearer, known, MANIFESTS, ROWS, type Sent, stream, trace } from './openapi-requests.ts';

/** Where routers are mounted, "/" apart. */
const MOUNTS = ['/auth', '/api'];
/** Routes for whatever endpoints the manifests have at the moment: no path can be listed for them. */
const UNLISTED = ['POST /.*/'];
/** Nobody can be asked to make a fault of the gateway. */
const UNSEEN = ['500'];

const ALL_ROWS = [...ROWS, ...ORS_ROWS];

const read = async (answer: Response, until: string | undefined): Promise<string> => {
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer.text();
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (until === undefined || !text.includes(until) || !text.endsWith('\n\n')) {
    const { value, done } = await reader.read();
    if (done && until === undefined) return text;
    if (done) throw new Error(`The stream ended before ${until} came: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
};

describe('the OpenAPI document', () => {
  let directory: TestDirectory;
  let check: ApiCheck;
  let held: RawStream | undefined;
  const gateways: Record<string, RunningGateway> = {};

  const ask = async (on: RunningGateway, route: string, sent: Sent): Promise<Exchange> => {
    const [method = '', path = ''] = route.split(' ');
    const { target = path, headers = {}, body, until } = sent;
    const answer = await fetch(on.url + target, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await read(answer, until);
    const { status } = answer;
    return {
      method,
      route: path,
      target,
      requestHeaders: headers,
      requestBody: body,
      status,
      headers: answer.headers,
      text,
    };
  };
  const start = (env: Readonly<Record<string, string>> = {}, settings = {}): Promise<RunningGateway> =>
    startHosting([lab()], {
      env: {
        SLUICE_MANIFESTS: directory.path,
        SLUICE_METRICS_PUBLIC: 'false',
        SLUICE_ORS_PUBLIC: 'false',
        SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '1000',
        ...env,
      },
      settings,
    });
  const documentOf = async ({ url }: RunningGateway): Promise<ApiDocument> =>
    (await (await fetch(`${url}/openapi.json`)).json()) as ApiDocument;

  beforeAll(async () => {
    directory = makeDirectory();
    directory.write('agents.ossa.yaml', MANIFESTS);
    const gateway = await start();
    const tight = await start(
      {
        SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '1',
        SLUICE_MAX_PUBLISH_PER_SECOND: '1',
        SLUICE_ORS_MAX_CALLS_PER_SESSION: '1',
      },
      { maxSessions: 1, maxQueued: 0 },
    );
    const empty = await startGateway({ SLUICE_ORS_PUBLIC: 'false' });
    const stopping = await start({ SLUICE_SHUTDOWN_DELAY_SECONDS: '1' });
    Object.assign(gateways, { gateway, tight, stopping, empty });
    await eventually(() => Object.values(gateways).every((one) => one.gateway.hub.loaded));
    check = new ApiCheck(await documentOf(gateway));
    await beginSessions(gateway, tight);

    const call = async (input: unknown, { progress }: { progress: (step: object) => void }) => {
      progress({ progress: 1 });
      progress({ progress: 2, total: 4, message: 'Half of it.' });
      return textResult(JSON.stringify(input));
    };
    gateway.gateway.toolbox.registry.add(new TestProvider('test', [makeTool('count', { call: call as never })]));

    const post = async (path: string, body: unknown, headers = {}): Promise<Record<string, string>> => {
      const sent = { target: path, headers: { ...ann, ...headers }, body };
      return JSON.parse((await ask(gateway, `POST ${path}`, sent)).text) as Record<string, string>;
    };
    await post('/events', { channel: 'a', data: 1 }, { 'Idempotency-Key': 'used' });
    const types = ['message', 'status', 'capability_response', 'error'];
    await post(
      '/events',
      types.map((type) => ({ channel: 'content.published', type, data: { n: 1 }, correlationId: 'c' })),
      { traceparent: trace },
    );
    await post('/events', { channel: 'other', data: 'last' });
    await post('/capabilities/often', {});
    known.ticketUrl = (await post('/auth/ticket', { url: '/events?channels=content.*' })).url as string;
    const { streamId, streamUrl } = await post('/capabilities/write_text', { prompt: 'say exactly: one two' });
    const { pathname, search } = new URL(streamUrl as string);
    Object.assign(known, { result: streamId, streamUrl: pathname + search });
    known.counted = (await post('/capabilities/writer.count', {})).streamId as string;
    known.failed = (await post('/capabilities/missing_tool', {})).streamId as string;
    const { text } = await ask(gateway, 'GET /events/stream/{id}', stream(known.result));
    known.last = /id: (.*)\n.*"final":true/.exec(text)?.[1] ?? '';

    const stays = new RawStream(tight.port, '/events?channels=a', ann);
    held = stays;
    await eventually(() => stays.frames.length > 0);
    await ask(tight, 'POST /events', {
      headers: ann,
      body: Array.from({ length: 100 }, () => ({ channel: 'a', data: 1 })),
    });
  });
  afterAll(() => {
    held?.close();
    directory.remove();
  });

  it('is valid OpenAPI 3.1, and every reference leads somewhere', async () => {
    const { openapi, servers } = check.document;
    expect(openapi).toMatch(/^3\.1\./);
    expect(servers).toEqual([{ url: gateways.gateway?.url }]);
    const validator = new Validator();
    expect(await validator.validate({ ...structuredClone(check.document) })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
    const refs = [...JSON.stringify(check.document).matchAll(/"\$ref":"([^"]*)"/g)].map(([, ref = '']) => ref);
    for (const $ref of refs) expect(check.resolved({ $ref })).toBeDefined();
    const ids = check.operations.map((route) => check.operation(...(route.split(' ') as [string, string])).operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('names the public address where there is one', async () => {
    const behind = await start({ SLUICE_PUBLIC_URL: 'https://gateway.example/sluice/' });
    const { servers } = await documentOf(behind);
    expect(servers).toEqual([{ url: 'https://gateway.example/sluice' }]);
    await behind.stop();
  });

  it('is there for HEAD, for pages of listed origins, and for clients that name no host', async () => {
    const listed = await start({ SLUICE_CORS_ORIGINS: 'https://app.example' });
    const url = `${listed.url}/openapi.json`;
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const asked = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' };
    const preflight = await fetch(url, { method: 'OPTIONS', headers: asked });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, asked.Origin]);
    const old = await new Promise<string>((resolve, reject) => {
      const socket = connect(listed.port, '127.0.0.1', () => socket.write('GET /openapi.json HTTP/1.0\r\n\r\n'));
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString();
      });
      socket.on('error', reject).on('close', () => resolve(text));
    });
    expect(JSON.parse(old.slice(old.indexOf('\r\n\r\n')))).toMatchObject({ servers: [{ url: '/' }] });
    await listed.stop();
  });

  it('lists every route of the gateway and no other', () => {
    const routes = routeTable((gateways.gateway as RunningGateway).gateway.app, MOUNTS);
    expect(routes).toEqual(expect.arrayContaining(UNLISTED));
    expect(check.operations).toEqual(routes.filter((route) => !UNLISTED.includes(route)));
  });

  it('finds the routes of ORS under their prefix, and tells whether they need a token', async () => {
    const moved = await start({ SLUICE_ORS_PREFIX: '/a/ors', SLUICE_ORS_PUBLIC: 'true' });
    const there = new ApiCheck(await documentOf(moved));
    expect(there.operations).toEqual(
      routeTable(moved.gateway.app, [...MOUNTS, '/a/ors']).filter((route) => !UNLISTED.includes(route)),
    );
    const { security } = there.operation('GET', '/a/ors/{env}/tools');
    expect(security?.[0]).toEqual({});
    expect(check.operation('GET', '/{env}/tools').security).not.toContainEqual({});
    const made = await ask(moved, 'GET /a/ors/{env}/tools', { target: '/a/ors/lab/tools' });
    expect([made.status, there.exchange(made)]).toEqual([200, []]);
    await moved.stop();
  });

  it.each(ALL_ROWS)('describes what is answered: %s %i (%s)', async (route, status, _what, sent) => {
    const { at = 'gateway', ...request } = sent();
    const on = gateways[at] as RunningGateway;
    const stopped = at === 'stopping' && on.stop(); // it goes on serving for a second
    const made = await ask(on, route, request);
    await stopped;
    expect({ status: made.status, text: made.status === status ? '' : made.text }).toEqual({ status, text: '' });
    expect(check.exchange(made)).toEqual([]);
  });

  const parts = (route: string): [method: string, path: string] => route.split(' ') as [string, string];
  /** The operations that a status is described for, and a path of each. */
  const having = (status: string): readonly (readonly [route: string, target: string])[] =>
    check.operations
      .filter((route) => status in check.operation(...parts(route)).responses)
      .map((route) => [route, parts(route)[1].replace(/\{\w+\}/, 'x')]);
  const refused = async (on: RunningGateway, status: number, headers: Record<string, string>, but: string[] = []) => {
    const routes = having(String(status)).filter(([route]) => !but.includes(route));
    expect(routes.length).toBeGreaterThan(10);
    for (const [route, target] of routes) {
      const made = await ask(on, route, { target, headers, ...(route.startsWith('POST') && { body: {} }) });
      expect([route, made.status, check.exchange(made)]).toEqual([route, status, []]);
    }
  };

  it('tells who needs a token, and what is said without one', async () => {
    await refused(gateways.gateway as RunningGateway, 401, {});
    const needed = having('401').map(([route]) => route);
    const open = check.operations.filter((route) => {
      const { security = check.document.security } = check.operation(...parts(route));
      return security.length === 0 || security.some((one) => Object.keys(one).length === 0);
    });
    expect([...needed, ...open].sort()).toEqual(check.operations);
  });

  it('tells what is said to a token that came over plain HTTP', async () => {
    const before = process.env.NODE_ENV;
    process.env.NODE_ENV = 'production';
    const behind = await start({ SLUICE_TRUST_PROXY: 'loopback' }).finally(() => {
      process.env.NODE_ENV = before;
    });
    // Signing out needs no token; it looks at the cookie, and is in the table.
    await refused(behind, 403, { ...ann, 'X-Forwarded-For': '203.0.113.9' }, ['DELETE /auth/session']);
    await behind.stop();
  });

  it('tells what is said while nobody can check a token', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const keyless = await start({ SLUICE_JWT_SECRET: '', SLUICE_JWT_JWKS_URL: 'http://127.0.0.1:1/keys' });
    await refused(keyless, 503, bearer(signedBy(privateKey, { alg: 'RS256', kid: 'k' })), ['GET /readyz']);
    await keyless.stop();
  });

  it('describes no answer that was not seen here', () => {
    const seen = new Set(ALL_ROWS.map(([route, status]) => `${route} ${status}`));
    const described = check.operations.flatMap((route) => {
      const { responses, security = check.document.security } = check.operation(...parts(route));
      const elsewhere = security.length > 0 && route !== 'GET /readyz' ? [...UNSEEN, '401', '403', '503'] : UNSEEN;
      return Object.keys(responses).flatMap((status) => (elsewhere.includes(status) ? [] : `${route} ${status}`));
    });
    expect(described.filter((one) => !seen.has(one))).toEqual([]);
  });

  it('has examples that fit what they are examples of', () => {
    const faults: string[] = [];
    let examples = 0;
    const fits = (where: string, found: readonly string[]): void => {
      examples += 1;
      faults.push(...found.map((fault) => `${where}: ${fault}`));
    };
    const walk = (value: unknown, where: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const { schema, example, examples: more, type } = value as Partial<MediaType> & { type?: unknown };
      const media = where.slice(where.lastIndexOf(' ') + 1);
      if (schema !== undefined) {
        const given = [
          ...(example === undefined ? [] : [example]),
          ...Object.values(more ?? {}).map((one) => one.value),
        ];
        for (const one of given) {
          const text = media === 'application/json' ? JSON.stringify(one) : one;
          const isBody = media.includes('/') && typeof text === 'string';
          fits(where, isBody ? check.bodyFaults(media, value as MediaType, text) : check.faults(schema, one));
        }
      } else if (typeof type === 'string' && Array.isArray(more)) {
        for (const one of more) fits(where, check.faults(value, one));
      }
      for (const [key, inner] of Object.entries(value)) if (key !== 'example') walk(inner, `${where} ${key}`);
    };
    walk(check.document, '');
    expect(faults).toEqual([]);
    expect(examples).toBeGreaterThan(40);
  });

  it('has schemas that are schemas, each used', () => {
    const text = JSON.stringify(check.document);
    for (const name of Object.keys(check.document.components.schemas)) {
      expect(check.faults({ anyOf: [{ $ref: `#/components/schemas/${name}` }, {}] }, null)).toEqual([]);
      expect(text).toContain(`"#/components/schemas/${name}"`);
    }
  });
});
