import { parseSetCookie } from 'cookie';
import express, { type ErrorRequestHandler, type Express } from 'express';
import request from 'supertest';
import { Authenticator } from '../../src/auth/authenticate.ts';
import { MemoryFirstUse } from '../../src/auth/first-use.ts';
import { FixedKeys, secretKey } from '../../src/auth/keys.ts';
import { authRoutes } from '../../src/auth/routes.ts';
import { SessionCookie } from '../../src/auth/session.ts';
import { Tickets } from '../../src/auth/tickets.ts';
import { Verifier } from '../../src/auth/verifier.ts';
import { Clock, SECRET, START, tokenFor } from './fixtures.ts';

/** What a composition root does, with one route of a protocol behind it. */
const appOf = (clock: Clock): Express => {
  const tickets = new Tickets({ key: SECRET, firstUse: new MemoryFirstUse({ now: clock.now }), now: clock.now });
  const verifier = new Verifier({ keys: [new FixedKeys([secretKey(SECRET)])], now: clock.now });
  const authenticator = new Authenticator({ verifier, tickets, allowedOrigins: ['https://app.example'] });
  const app = express();
  app.set('trust proxy', 'loopback');
  app.use(
    '/auth',
    authRoutes({ authenticator, tickets, cookie: new SessionCookie({ now: clock.now }), now: clock.now }),
  );
  app.get('/events', async (req, res) => {
    res.json({ sub: (await authenticator.require(req)).sub });
  });
  const status: ErrorRequestHandler = (error: { status?: number }, _req, res, _next) => {
    res.sendStatus(error.status ?? 500);
  };
  app.use(status);
  return app;
};

describe('the routes of /auth', () => {
  let clock: Clock;
  let app: Express;
  const token = tokenFor();
  const bearer = `Bearer ${token}`;

  beforeEach(() => {
    clock = new Clock();
    app = appOf(clock);
  });

  describe('POST /auth/ticket', () => {
    const ask = (url: unknown) => request(app).post('/auth/ticket').set('Authorization', bearer).send({ url });

    it('answers with a URL that opens, again and again, without any header', async () => {
      const issued = await ask('/events?channels=a');
      expect(issued.status).toBe(201);
      expect(issued.headers['cache-control']).toBe('no-store');
      expect(issued.body).toEqual({
        ticket: expect.any(String),
        url: `/events?channels=a&ticket=${issued.body.ticket}`,
        expiresAt: new Date(START + 3_600_000).toISOString(),
      });
      expect((await request(app).get(issued.body.url)).body).toEqual({ sub: 'alice' });
      clock.advance(3_000_000);
      expect((await request(app).get(`${issued.body.url}&lastEventId=msg-1`)).status).toBe(200);
      expect((await request(app).get(`${issued.body.url}&channels=b`)).status).toBe(401);
      clock.advance(600_000);
      expect((await request(app).get(issued.body.url)).status).toBe(401);
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream'])(
      'reads a body that says it is %s',
      async (type) => {
        const answer = await request(app)
          .post('/auth/ticket')
          .set('Authorization', bearer)
          .set('Content-Type', type)
          .send('{"url":"/events"}');
        expect(answer.status).toBe(201);
      },
    );

    it.each<[string, string, RegExp]>([
      ['a body that is not JSON', '{"url":', /^The body is not JSON/],
      ['a number', '7', /^The body is not JSON/],
      ['a list', '[]', /^"url"/],
      ['no url', '{}', /^"url"/],
      ['no body', '', /^"url"/],
      ['another host without a scheme', '{"url":"//evil.example/"}', /^"url"/],
      ['a fragment', '{"url":"/events?channels=a.#"}', /%23/],
    ])('refuses %s', async (_, body, message) => {
      const answer = await request(app).post('/auth/ticket').set('Authorization', bearer).type('json').send(body);
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual({ code: 'PROTOCOL_ERROR', message: expect.stringMatching(message) });
    });

    it('never repeats a body that it could not read', async () => {
      const answer = await request(app)
        .post('/auth/ticket')
        .set('Authorization', bearer)
        .type('json')
        .send('SECRET-VALUE');
      expect(answer.text).not.toContain('SECRET');
    });

    it('refuses a body of more than 64 kB', async () => {
      const answer = await ask('x'.repeat(65_536));
      expect(answer.status).toBe(413);
      expect(answer.body).toEqual({ code: 'PAYLOAD_TOO_LARGE', message: expect.any(String) });
    });

    it('refuses a stranger before it reads the body', async () => {
      const answer = await request(app).post('/auth/ticket').type('json').send('{"url":');
      expect(answer.status).toBe(401);
      expect(answer.body).toEqual({ code: 'AUTH_FAILED', message: 'The request carries no token.' });
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="sluice"');
    });

    it('refuses a bad token and says so in the header', async () => {
      const answer = await request(app).post('/auth/ticket').set('Authorization', 'Bearer x').send({ url: '/events' });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
    });

    it('makes no ticket of a ticket', async () => {
      const { body } = await ask('/auth/ticket');
      expect((await request(app).post(body.url).send({ url: '/events' })).status).toBe(401);
    });

    it('makes no ticket of a token that lives on the tolerance of clocks', async () => {
      clock.advance(3_602_000);
      expect((await request(app).get('/events').set('Authorization', bearer)).status).toBe(200);
      expect((await ask('/events')).status).toBe(401);
    });

    it('wants a page of ours when the cookie shows who it is', async () => {
      const cookied = () =>
        request(app).post('/auth/ticket').set('Cookie', `session=${token}`).send({ url: '/events' });
      expect((await cookied()).status).toBe(403);
      expect((await cookied().set('Origin', 'https://evil.example')).body.code).toBe('FORBIDDEN');
      expect((await cookied().set('Origin', 'https://app.example')).status).toBe(201);
      expect((await cookied().set('Host', 'gate.example').set('Origin', 'http://gate.example')).status).toBe(201);
    });
  });

  describe('POST /auth/session', () => {
    it('turns a token into a cookie that works', async () => {
      const answer = await request(app).post('/auth/session').set('Authorization', bearer);
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual({ sub: 'alice', expiresAt: new Date(START + 3_600_000).toISOString() });
      const cookie = parseSetCookie(answer.headers['set-cookie']?.[0] ?? '');
      expect(cookie).toEqual({
        name: 'session',
        value: token,
        httpOnly: true,
        maxAge: 3_600,
        path: '/',
        sameSite: 'lax',
      });
      const events = await request(app).get('/events').set('Cookie', `session=${cookie.value}`);
      expect(events.body).toEqual({ sub: 'alice' });
    });

    it('marks the cookie Secure when a trusted proxy says https', async () => {
      const answer = await request(app).post('/auth/session').set('X-API-Key', token).set('X-Forwarded-Proto', 'https');
      expect(parseSetCookie(answer.headers['set-cookie']?.[0] ?? '').secure).toBe(true);
    });

    it.each<[string, string, Record<string, string>]>([
      ['a token in the URL, which any page can post to', `/auth/session?token=${token}`, {}],
      ['a cookie', '/auth/session', { Cookie: `session=${token}`, 'Sec-Fetch-Site': 'same-origin' }],
      ['nothing', '/auth/session', {}],
      ['a bad token', '/auth/session', { Authorization: 'Bearer a.b.c' }],
    ])('opens no session for %s', async (_, path, headers) => {
      const answer = await request(app).post(path).set(headers);
      expect(answer.status).toBe(401);
      expect(answer.headers['set-cookie']).toBeUndefined();
    });

    it('refuses a token that no cookie can hold', async () => {
      const long = tokenFor({ agents: Array.from({ length: 200 }, (_, i) => `agent://acme/writer-${i}`) });
      const answer = await request(app).post('/auth/session').set('Authorization', `Bearer ${long}`);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('PROTOCOL_ERROR');
    });
  });

  describe('DELETE /auth/session', () => {
    it.each([token, 'damaged', ''])('clears the cookie "%s"', async (value) => {
      const answer = await request(app)
        .delete('/auth/session')
        .set('Cookie', `session=${value}`)
        .set('Sec-Fetch-Site', 'same-origin');
      expect(answer.status).toBe(204);
      expect(parseSetCookie(answer.headers['set-cookie']?.[0] ?? '')).toMatchObject({ value: '', maxAge: 0 });
    });

    it('lets no other page sign somebody out', async () => {
      const answer = await request(app)
        .delete('/auth/session')
        .set('Cookie', `session=${token}`)
        .set('Origin', 'https://evil.example');
      expect(answer.status).toBe(403);
      expect(answer.headers['set-cookie']).toBeUndefined();
    });

    it('has nothing against a client without a cookie', async () => {
      expect((await request(app).delete('/auth/session')).status).toBe(204);
    });
  });

  it.each<['get' | 'post' | 'put' | 'patch', string]>([
    ['get', '/auth/ticket'],
    ['get', '/auth/session'],
    ['put', '/auth/session'],
    ['patch', '/auth/ticket'],
    ['get', '/auth'],
    ['post', '/auth/tools'],
    ['get', '/auth/a/b/c'],
  ])('answers %s %s with a 404 of its own', async (method, path) => {
    const answer = await request(app)[method](path);
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual({ code: 'NOT_FOUND', message: expect.stringContaining(path) });
  });
});
