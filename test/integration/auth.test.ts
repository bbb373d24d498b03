import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseSetCookie } from 'cookie';
import { handmade, pemOf, signedBy } from '../auth/fixtures.ts';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RawAnswer, type RawRequest, rawRequest } from '../support/raw-request.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const LISTED = 'https://app.example';
const EVENTS = '/events?channels=a';

/** What all gateways of this file have logged, at the level that says most, and what must not be in it. */
const lines: string[] = [];
const secrets = new Set<string>();
const destination = { write: (line: string) => void lines.push(line) };
const secret = (text: string): string => {
  secrets.add(text);
  return text;
};
const token = (claims: Parameters<typeof tokenFor>[0] = {}): string => secret(tokenFor(claims));
const bearer = (text = token()): Record<string, string> => ({ Authorization: `Bearer ${text}` });

let redis: RunningRedis;
let one: RunningGateway;
let two: RunningGateway;
const streams: RawStream[] = [];

const open = (path: string, headers: Readonly<Record<string, string>> = {}, on: RunningGateway = one): RawStream => {
  const stream = new RawStream(on.port, path, headers);
  streams.push(stream);
  return stream;
};
const opened = async (path: string, headers: Readonly<Record<string, string>> = {}, on = one): Promise<RawStream> => {
  const stream = open(path, headers, on);
  await eventually(() => stream.head !== '');
  if (stream.status === 200) await eventually(() => stream.frames.length > 0);
  return stream;
};
const send = (request: RawRequest, on: RunningGateway = one): Promise<RawAnswer> => rawRequest(on.port, request);
const publish = async (data: unknown, headers = bearer(), on = one): Promise<RawAnswer> =>
  send({ method: 'POST', path: '/events', headers, body: JSON.stringify({ channel: 'a', data }) }, on);
const ticketFor = async (url: string, headers = bearer(), on = one): Promise<{ url: string; expiresAt: string }> => {
  const answer = await send({ method: 'POST', path: '/auth/ticket', headers, body: JSON.stringify({ url }) }, on);
  expect(answer.status).toBe(201);
  const issued = answer.json as { ticket: string; url: string; expiresAt: string };
  secret(issued.ticket);
  return issued;
};
const payloads = (stream: RawStream): unknown[] =>
  stream.events.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '').payload.data);

beforeAll(async () => {
  redis = await startRedis();
  const env = { REDIS_URL: redis.url, SLUICE_CORS_ORIGINS: LISTED, SLUICE_METRICS_PUBLIC: 'false' };
  [one, two] = await Promise.all([startGateway(env, destination), startGateway(env, destination)]);
  const isReady = async ({ url }: RunningGateway): Promise<boolean> => (await fetch(`${url}/readyz`)).ok;
  await eventually(async () => (await isReady(one)) && (await isReady(two)));
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});

describe('a token', () => {
  const sources: readonly (readonly [where: string, open: (text: string) => [string, Record<string, string>]])[] = [
    ['Authorization', (text) => [EVENTS, { Authorization: `Bearer ${text}` }]],
    ['Authorization, whatever the case of its scheme', (text) => [EVENTS, { Authorization: `bearer ${text}` }]],
    ['X-API-Key', (text) => [EVENTS, { 'X-API-Key': text }]],
    ['apikey', (text) => [EVENTS, { apikey: text }]],
    ['?token=', (text) => [`${EVENTS}&token=${text}`, {}]],
    ['the session cookie', (text) => [EVENTS, { Cookie: `theme=dark; session=${text}; x=y` }]],
  ];

  it.each(sources)('opens a stream from %s', async (_where, request) => {
    const stream = await opened(...request(token()));
    expect(stream.status).toBe(200);
    await publish('hello');
    await eventually(() => stream.events.length === 1);
    expect(payloads(stream)).toEqual(['hello']);
  });

  it('ends the streams that it opened, in order, when it ends itself', async () => {
    const short = token({ ttlSeconds: 2 });
    const endsAt = JSON.parse(Buffer.from(short.split('.')[1] ?? '', 'base64url').toString()).exp * 1_000;
    const { url, expiresAt } = await ticketFor(EVENTS, bearer(short));
    expect(Date.parse(expiresAt)).toBe(endsAt);
    const mortal = await Promise.all([
      opened(EVENTS, bearer(short)),
      opened(EVENTS, { Cookie: `session=${short}` }, two),
      opened(url),
    ]);
    const other = await opened(EVENTS, bearer());
    await eventually(() => mortal.every(({ ended }) => ended));
    expect(Date.now() - endsAt).toBeGreaterThanOrEqual(0);
    expect(Date.now() - endsAt).toBeLessThan(1_500);
    expect(mortal.map(({ socket }) => socket.destroyed)).toEqual([false, false, false]); // an end, not a cut
    expect(other.ended).toBe(false);
    const closed = await one.gateway.metrics.registry.getSingleMetricAsString('sluice_streams_closed_total');
    expect(closed).toContain('reason="token_expired"} 2');
  });

  it('that has ended is refused at once where clocks are not forgiven', async () => {
    const strict = await startGateway({ SLUICE_JWT_CLOCK_TOLERANCE_SECONDS: '0' }, destination);
    const short = token({ ttlSeconds: 2 });
    const stream = await opened(EVENTS, bearer(short), strict);
    await eventually(() => stream.ended);
    const again = await opened(EVENTS, { ...bearer(short), 'Last-Event-ID': stream.lastId ?? '' }, strict);
    expect(again.status).toBe(401);
    expect(again.body).toContain('The token has expired.');
    await strict.stop();
  });
});

describe('a ticket', () => {
  it('opens its URL, and again after a cut, where the last event was', async () => {
    const { url } = await ticketFor(EVENTS);
    const first = await opened(url);
    await publish(1);
    await eventually(() => first.events.length === 1);
    first.close();
    await publish(2);
    const second = await opened(url, { 'Last-Event-ID': first.lastId ?? '' });
    await eventually(() => second.events.length === 1);
    expect(payloads(second)).toEqual([2]);
    second.close();
    await publish(3);
    const third = await opened(`${url}&lastEventId=${second.lastId}`);
    await eventually(() => third.events.length === 1);
    expect(payloads(third)).toEqual([3]);
  });

  it('opens its URL on every replica', async () => {
    const { url } = await ticketFor(`${EVENTS}&x=%2C`);
    const first = await opened(url, {}, two);
    expect(first.status).toBe(200);
    await publish('before the cut');
    await eventually(() => first.events.length === 1);
    first.close();
    await publish('during the cut', bearer(), two);
    const second = await opened(url, { 'Last-Event-ID': first.lastId ?? '' }, one);
    await eventually(() => second.events.length === 1);
    expect(payloads(second)).toEqual(['during the cut']);
  });

  it('sees what its token may see and no more', async () => {
    const { url } = await ticketFor('/events?channels=a,b', bearer(token({ subscribe: ['a'] })));
    const stream = await opened(url);
    expect(stream.status).toBe(403);
    expect(stream.body).toContain('does not let you follow b.');
  });

  it('is given to a page that has only the cookie', async () => {
    const { url } = await ticketFor(EVENTS, { Cookie: `session=${token()}`, 'Sec-Fetch-Site': 'same-origin' });
    expect((await opened(url)).status).toBe(200);
  });
});

describe('the session cookie', () => {
  const signIn = async (): Promise<Record<string, string>> => {
    const answer = await send({ method: 'POST', path: '/auth/session', headers: bearer() });
    expect(answer.status).toBe(201);
    const cookie = parseSetCookie(answer.headers['set-cookie'] ?? '');
    expect(cookie).toMatchObject({ name: 'session', httpOnly: true, sameSite: 'lax', path: '/' });
    return { Cookie: `session=${secret(cookie.value ?? '')}` };
  };

  it('follows, from whatever page the browser sends it', async () => {
    const cookie = await signIn();
    expect((await opened(EVENTS, cookie)).status).toBe(200);
    expect((await opened(EVENTS, { ...cookie, Origin: 'https://evil.example' })).status).toBe(200);
  });

  it.each<[string, () => Record<string, string>, number]>([
    ['our own', () => ({ Origin: one.url }), 201],
    ['our own, as browsers say without Origin', () => ({ 'Sec-Fetch-Site': 'same-origin' }), 201],
    ['a listed', () => ({ Origin: LISTED, 'Sec-Fetch-Site': 'cross-site' }), 201],
    ['another', () => ({ Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }), 403],
    ["another port's", () => ({ Origin: 'http://127.0.0.1:1' }), 403],
    ['an unknown', () => ({}), 403],
  ])('publishes or not: %s page', async (_page, headers, status) => {
    const cookie = await signIn();
    expect((await publish('x', { ...cookie, ...headers() })).status).toBe(status);
  });

  it('goes away with DELETE', async () => {
    const cookie = await signIn();
    const answer = await send({ method: 'DELETE', path: '/auth/session', headers: { ...cookie, Origin: one.url } });
    expect(answer.status).toBe(204);
    expect(parseSetCookie(answer.headers['set-cookie'] ?? '')).toMatchObject({ name: 'session', maxAge: 0 });
  });
});

describe('keys of others', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const claims = { channels: { subscribe: ['#'], publish: ['#'] } };
  const by = (key: KeyObject, alg: string, kid?: string): string =>
    secret(signedBy(key, { alg, ...(kid !== undefined && { kid }) }, claims));
  const oneLine = (key: KeyObject): string => pemOf(key).trim().replaceAll('\n', '\\n');
  const statusOf = async (on: RunningGateway, text: string): Promise<number> =>
    (await opened(EVENTS, bearer(text), on)).status;

  it('open streams when they are configured: RS256 and ES256', async () => {
    const publicKeys = [rsa, curve].map(({ publicKey }) => oneLine(publicKey)).join();
    const gateway = await startGateway({ SLUICE_JWT_SECRET: '', SLUICE_JWT_PUBLIC_KEYS: publicKeys }, destination);
    const confused = handmade({ alg: 'HS256' }, { sub: 'x', exp: 4e9, ...claims }, (input) =>
      createHmac('sha256', pemOf(rsa.publicKey)).update(input).digest(),
    );
    const statuses = [
      await statusOf(gateway, by(rsa.privateKey, 'RS256')),
      await statusOf(gateway, by(curve.privateKey, 'ES256')),
      await statusOf(gateway, by(stranger.privateKey, 'RS256')),
      await statusOf(gateway, by(rsa.privateKey, 'ES256')),
      await statusOf(gateway, secret(confused)),
      await statusOf(gateway, token()),
    ];
    expect(statuses).toEqual([200, 200, 401, 401, 401, 401]);
    // Tickets need no key of the issuer.
    const { url } = await ticketFor(EVENTS, bearer(by(rsa.privateKey, 'RS256')), gateway);
    expect((await opened(url, {}, gateway)).status).toBe(200);
    await gateway.stop();
  });

  it('open streams when their issuer publishes them, and 503 while nobody can say', async () => {
    let up = false;
    const jwk = (key: KeyObject, kid: string): object => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' });
    const server: Server = createServer((_, res) => {
      const keys = [jwk(rsa.publicKey, 'r'), jwk(curve.publicKey, 'e')];
      res.writeHead(up ? 200 : 500).end(JSON.stringify({ keys }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const env = { SLUICE_JWT_SECRET: '', SLUICE_JWT_JWKS_URL: jwksUrl };
    const early = await startGateway(env, destination);
    expect(await statusOf(early, by(rsa.privateKey, 'RS256', 'r'))).toBe(503);
    up = true;
    const gateway = await startGateway(env, destination);
    const statuses = [
      await statusOf(gateway, by(rsa.privateKey, 'RS256', 'r')),
      await statusOf(gateway, by(curve.privateKey, 'ES256', 'e')),
      await statusOf(gateway, by(rsa.privateKey, 'RS256', 'e')),
      await statusOf(gateway, by(stranger.privateKey, 'RS256', 'r')),
      await statusOf(gateway, by(rsa.privateKey, 'RS256', 'unknown')),
      await statusOf(gateway, token()),
    ];
    expect(statuses).toEqual([200, 200, 401, 401, 401, 401]);
    await Promise.all([gateway.stop(), early.stop()]);
    server.close();
  });
});

describe('what only administrators see', () => {
  const admin = (): Record<string, string> => bearer(token({ scope: 'ors admin' }));

  it('is /metrics, unless it is public', async () => {
    const statuses = async (on: RunningGateway): Promise<number[]> =>
      Promise.all(
        [{}, bearer(), admin()].map(async (headers) => (await send({ path: '/metrics', headers }, on)).status),
      );
    expect(await statuses(one)).toEqual([401, 403, 200]);
    const open = await startGateway({ SLUICE_METRICS_PUBLIC: 'true' }, destination);
    expect(await statuses(open)).toEqual([200, 200, 200]);
    await open.stop();
  });

  it('is what stands behind /readyz; a probe does not fail because of its token', async () => {
    const body = async (headers: Record<string, string>): Promise<unknown> =>
      (await send({ path: '/readyz', headers })).json;
    expect(await body({})).toEqual({ status: 'ready' });
    expect(await body(bearer())).toEqual({ status: 'ready' });
    expect(await body({ Authorization: 'Bearer damaged' })).toEqual({ status: 'ready' });
    expect(await body(admin())).toEqual({
      status: 'ready',
      reasons: [],
      store: [{ up: true, markAgeMs: expect.any(Number), lastError: undefined }],
      mcpServers: [],
      models: [{ backend: 'demo', state: 'unknown' }],
    });
  });
});

describe('the log of all this', () => {
  it('holds every request and no secret', async () => {
    const marked = await opened(`${EVENTS}&%74oken=${token()}&x=1`, {
      'X-Request-Id': 'the-last-one',
      'Proxy-Authorization': secret('Basic c2VjcmV0OnNlY3JldA=='),
      'X-Secrets': secret('{"key":"a secret of somebody else"}'),
    });
    marked.close();
    await eventually(() => lines.some((line) => line.includes('the-last-one')));
    const log = lines.join('');
    expect(lines.length).toBeGreaterThan(40);
    expect(log).toContain('/auth/ticket');
    expect(log).toContain('&%74oken=***&x=1');
    expect(log).toContain('&ticket=***');
    expect(log).toContain('&token=***');
    const told = [...secrets].filter((text) => log.includes(text) || log.includes(text.split('.').at(-1) as string));
    expect(secrets.size).toBeGreaterThan(10);
    expect(told).toEqual([]);
  });
});
