import { mintToken } from '../../src/auth/token.ts';
import { lab, startHosting } from '../support/environment.ts';
import { type RunningGateway, SECRET, tokenFor } from '../support/gateway.ts';
import { bodyFor, ENVIRONMENT_ROUTES, ROOT_ROUTES } from '../support/ors-routes.ts';
import { Trainer } from '../support/trainer.ts';

type Headers = Readonly<Record<string, string>>;
const LISTED = 'https://app.example';
const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
const ann = bearer(tokenFor({ sub: 'ann', scope: 'ors' }));
const bob = bearer(tokenFor({ sub: 'bob', scope: 'ors admin' }));

const ROUTES = [
  ...ROOT_ROUTES.map(([method, path]) => [method, `/${path}`] as const),
  ...ENVIRONMENT_ROUTES.flatMap(([method, path]) => [[method, `/${path}`] as const, [method, `/lab/${path}`] as const]),
];

const send = ({ url }: RunningGateway, method: string, path: string, headers: Headers = {}): Promise<Response> => {
  const body = bodyFor(path.split('?', 1)[0]?.split('/').at(-1) ?? '');
  return fetch(url + path, { method, headers, body: body && method === 'POST' ? JSON.stringify(body) : null });
};
const told = async (answer: Response): Promise<unknown> => [answer.status, await answer.json()];

describe('ORS that needs a token', () => {
  let running: RunningGateway;

  beforeAll(async () => {
    running = await startHosting([lab()], { env: { SLUICE_ORS_PUBLIC: 'false', SLUICE_CORS_ORIGINS: LISTED } });
  });

  it.each(ROUTES)('says so in its own words: %s %s', async (method, path) => {
    const none = await send(running, method, path);
    expect(none.headers.get('www-authenticate')).toBe('Bearer realm="sluice"');
    expect(await told(none)).toEqual([401, { detail: 'The request carries no token.' }]);
    const opaque = await send(running, method, path, { 'X-API-Key': 'key-of-another-service' });
    expect(await told(opaque)).toEqual([401, { detail: 'The token is not a JWT.' }]);
    for (const scope of ['', 'admin capabilities agents responses', 'ORS', 'ors.read']) {
      const refused = await send(running, method, path, bearer(tokenFor({ scope })));
      expect(await told(refused)).toEqual([403, { detail: 'This needs the scope ors.' }]);
    }
  });

  it('looks at the token before anything else', async () => {
    const answer = await fetch(`${running.url}/nobody/call`, { method: 'POST', body: '{' });
    expect(await told(answer)).toEqual([401, { detail: 'The request carries no token.' }]);
  });

  it('keeps the sessions of one name apart, whoever they belong to', async () => {
    const of = (who: Headers): Headers => ({ ...who, 'X-Session-ID': 'same' });
    expect((await send(running, 'POST', '/create', of(ann))).status).toBe(200);
    for (const [method, path] of [
      ['POST', '/ping'],
      ['GET', '/prompt'],
      ['GET', '/lab/task_tools'],
      ['POST', '/call'],
      ['POST', '/delete'],
    ] as const) {
      const refused = await send(running, method, path, of(bob));
      expect(await told(refused)).toEqual([404, { detail: 'Active environment not found' }]);
    }
    expect((await send(running, 'POST', '/create', of(bob))).status).toBe(200);
    expect((await send(running, 'POST', '/delete', of(bob))).status).toBe(200);
    expect(await told(await send(running, 'POST', '/ping', of(bob)))).toEqual([410, { detail: 'Session deleted' }]);
    expect((await send(running, 'POST', '/ping', of(ann))).status).toBe(200);
  });

  it('ends the stream of a call with the token that asked for it; the call goes on for the next', async () => {
    const short = { Authorization: `Bearer ${tokenFor({ sub: 'ann', scope: 'ors', ttlSeconds: 1 })}` };
    const long = new Trainer(running.url, ann);
    const sid = await long.session();
    const first = new Trainer(running.url, short).open(sid, 'wait');
    const { taskId = '', error, result } = await first.done;
    expect([taskId === '', error, result]).toEqual([false, undefined, undefined]);
    const second = long.open(sid, 'wait', {}, { taskId });
    expect((await second.begun()).taskId).toBe(taskId);
    second.leave();
    await long.ask('POST', '/delete', { sid });
    long.close();
  });

  it('takes the cookie from pages of trusted origins only', async () => {
    const cookie = { Cookie: `session=${tokenFor({ sub: 'ann', scope: 'ors' })}`, 'X-Session-ID': 'cookie' };
    const evil = await send(running, 'POST', '/create', { ...cookie, Origin: 'https://evil.example' });
    expect(await told(evil)).toEqual([403, { detail: expect.stringContaining('a page of a trusted origin') }]);
    expect((await send(running, 'POST', '/create', { ...cookie, Origin: LISTED })).status).toBe(200);
  });

  it('lets pages of listed origins send its headers, and read when to come back', async () => {
    const wanted = ['authorization', 'x-api-key', 'x-session-id', 'x-secrets', 'idempotency-key', 'content-type'];
    const preflight = await fetch(`${running.url}/lab/call`, {
      method: 'OPTIONS',
      headers: {
        Origin: LISTED,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': [...wanted, 'x-evil'].join(','),
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe(LISTED);
    expect(preflight.headers.get('access-control-allow-headers')?.split(',')).toEqual(wanted);
    const refused = await send(running, 'GET', '/tools', { Origin: LISTED });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, LISTED]);
    expect(refused.headers.get('access-control-expose-headers')).toContain('Retry-After');
    const stranger = await send(running, 'GET', '/tools', { Origin: 'https://evil.example' });
    expect(stranger.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('ORS that needs no token', () => {
  let running: RunningGateway;
  const mine = { 'X-Session-ID': 'of-anybody' };

  beforeAll(async () => {
    running = await startHosting([lab()], { env: { SLUICE_ORS_PUBLIC: 'true' } });
    expect((await send(running, 'POST', '/create', mine)).status).toBe(200);
  });

  it.each(ROUTES)('asks for none, and ignores a key of another service: %s %s', async (method, path) => {
    const keys: Headers[] = [{}, { 'X-API-Key': 'sk-of-another-service' }, bearer('or_0123456789'), { apikey: '' }];
    for (const key of keys) {
      const headers = { 'X-Session-ID': path === '/delete' ? 'nobody' : 'of-anybody', ...key };
      const { status } = await send(running, method, path, headers);
      const wanted = path === '/delete' ? 404 : path === '/create' ? 400 : 200; // there already is one
      expect([key, status]).toEqual([key, wanted]);
    }
  });

  it.each([
    [
      'an expired token',
      mintToken(SECRET, { sub: 'ann', scope: 'ors' }, 60, () => Date.now() - 120_000),
      'has expired',
    ],
    ['a token with another key', mintToken('another secret that is long enough too', { sub: 'ann' }, 60), 'signature'],
    ['half a token', tokenFor().split('.', 1)[0] as string, 'not a JWT'],
  ])('never takes %s for none', async (_what, token, says) => {
    for (const headers of [bearer(token), { 'X-API-Key': token }, { apikey: token }] as const) {
      const answer = await send(running, 'GET', '/tools', headers);
      expect(await told(answer)).toEqual([401, { detail: expect.stringContaining(says) }]);
    }
    expect((await send(running, 'GET', `/tools?token=${token}`)).status).toBe(401);
  });

  it('keeps the sessions of those who show one from all others, whatever its scopes', async () => {
    const shown = { ...bearer(tokenFor({ sub: 'ann', scope: '' })), 'X-Session-ID': 'of-ann' };
    expect((await send(running, 'POST', '/create', shown)).status).toBe(200);
    expect((await send(running, 'GET', '/prompt', shown)).status).toBe(200);
    expect((await send(running, 'GET', '/prompt', { 'X-Session-ID': 'of-ann' })).status).toBe(404);
    expect((await send(running, 'GET', '/prompt', { ...shown, ...mine })).status).toBe(404);
  });
});

describe('ORS of which nobody has said whether it needs a token', () => {
  it.each([
    ['needs none on this machine', '127.0.0.1', SECRET, 200],
    ['needs none without a key', '127.0.0.1', '', 200],
    ['needs one where others can come in', '0.0.0.0', SECRET, 401],
  ])('%s', async (_what, host, secret, status) => {
    const running = await startHosting([lab()], { env: { HOST: host, SLUICE_JWT_SECRET: secret } });
    expect((await fetch(`http://127.0.0.1:${running.port}/tools`)).status).toBe(status);
    await running.stop();
  });
});
