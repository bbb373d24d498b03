import express, { type Express, type Request } from 'express';
import { Authenticator, type AuthenticatorOptions } from '../../src/auth/authenticate.ts';
import { parseWantedUrl } from '../../src/auth/bound-url.ts';
import { MemoryFirstUse } from '../../src/auth/first-use.ts';
import { FixedKeys, secretKey } from '../../src/auth/keys.ts';
import { Tickets } from '../../src/auth/tickets.ts';
import { Verifier } from '../../src/auth/verifier.ts';
import { Clock, principalOf, refusal, SECRET, START, tokenFor } from './fixtures.ts';

interface Sent {
  readonly method?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly peer?: string;
  readonly encrypted?: boolean;
  readonly trustProxy?: string;
}

/** A request with Express's own getters, from a peer that no test machine has. */
const requestOf = ({ method = 'GET', url = '/events', headers = {}, peer = '127.0.0.1', ...more }: Sent): Request => {
  const app: Express = express();
  app.set('trust proxy', more.trustProxy ?? false);
  const socket = { remoteAddress: peer, encrypted: more.encrypted ?? false };
  return Object.assign(Object.create(app.request) as Request, {
    app,
    method,
    url,
    originalUrl: url,
    headers: { host: 'gate.example', ...headers },
    socket,
    connection: socket,
  });
};

describe('Authenticator', () => {
  const clock = new Clock();
  const tickets = new Tickets({ key: SECRET, firstUse: new MemoryFirstUse(clock), now: clock.now });
  const verifier = new Verifier({ keys: [new FixedKeys([secretKey(SECRET)])], now: clock.now });
  const make = (more: Partial<AuthenticatorOptions> = {}): Authenticator =>
    new Authenticator({ verifier, tickets, ...more });
  const authenticator = make();
  const token = tokenFor();
  const tampered = tokenFor().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  const bearer = { authorization: `Bearer ${token}` };

  it('answers with nobody when nothing was sent, and refuses where somebody is needed', async () => {
    expect(await authenticator.authenticate(requestOf({}))).toBeUndefined();
    expect(await refusal(authenticator.require(requestOf({})))).toMatchObject({ reason: 'missing', status: 401 });
  });

  it.each<[string, Sent]>([
    ['authorization', { headers: bearer }],
    ['x-api-key', { headers: { 'x-api-key': token } }],
    ['apikey', { headers: { apikey: token } }],
    ['query', { url: `/events?token=${token}` }],
    ['cookie', { headers: { cookie: `session=${token}` } }],
  ])('knows who sent a token at "%s"', async (source, sent) => {
    expect(await authenticator.identify(requestOf(sent))).toMatchObject({ source, principal: { sub: 'alice' } });
    expect(await authenticator.require(requestOf(sent))).toMatchObject({ sub: 'alice' });
  });

  it.each<[string, Sent]>([
    ['a bad token before a good one', { headers: { authorization: `Bearer ${tampered}`, 'x-api-key': token } }],
    ['a key that is no JWT before a good cookie', { headers: { apikey: 'key-1', cookie: `session=${token}` } }],
    ['an empty header before a good token', { headers: { 'x-api-key': '' }, url: `/events?token=${token}` }],
    ['a bad cookie', { headers: { cookie: 'session=nonsense' } }],
    ['a token as a ticket', { url: `/events?ticket=${token}` }],
  ])('refuses %s, as somebody and as nobody', async (_, sent) => {
    expect((await refusal(authenticator.authenticate(requestOf(sent)))).status).toBe(401);
  });

  it('does not take a ticket for a token', async () => {
    const { ticket } = await tickets.issue(principalOf(), parseWantedUrl('/events'));
    const request = requestOf({ headers: { authorization: `Bearer ${ticket}` } });
    expect((await refusal(authenticator.authenticate(request))).status).toBe(401);
  });

  it.each(['GET', 'HEAD'])('opens a ticketed URL with %s', async (method) => {
    const { url } = await tickets.issue(principalOf({ subscribe: ['a'] }), parseWantedUrl('/events?channels=a'));
    expect(await authenticator.authenticate(requestOf({ method, url }))).toEqual(principalOf({ subscribe: ['a'] }));
  });

  it.each(['POST', 'DELETE', 'PUT', 'OPTIONS'])('opens no ticketed URL with %s', async (method) => {
    const { url } = await tickets.issue(principalOf(), parseWantedUrl('/events'));
    const readOnly = `/events?ticket=${tickets.issueReadOnly('alice', '/events', START + 1_000)}`;
    for (const target of [url, readOnly]) {
      const request = requestOf({ method, url: target, headers: { origin: 'https://gate.example' } });
      expect((await refusal(authenticator.authenticate(request))).reason).toBe('ticket');
    }
  });

  it('prefers the ticket in the URL to the cookie, and a token to both', async () => {
    const { url } = await tickets.issue(principalOf({ sub: 'ticketed' }), parseWantedUrl('/events'));
    const cookie = `session=${tokenFor({ sub: 'cookied' })}`;
    expect((await authenticator.require(requestOf({ url, headers: { cookie } }))).sub).toBe('ticketed');
    expect((await authenticator.require(requestOf({ url, headers: { cookie, ...bearer } }))).sub).toBe('alice');
  });

  describe('with the cookie', () => {
    const cookie = `session=${token}`;
    const by = make({ allowedOrigins: ['https://app.example'] });

    it.each<[string, string, Record<string, string>, number]>([
      ['POST', 'our own page', { origin: 'https://gate.example' }, 200],
      ['DELETE', 'a listed page', { origin: 'https://app.example' }, 200],
      ['POST', 'fetch metadata', { 'sec-fetch-site': 'same-origin' }, 200],
      ['POST', 'another page', { origin: 'https://evil.example' }, 403],
      ['PUT', 'no page', {}, 403],
      ['PATCH', 'another site', { 'sec-fetch-site': 'cross-site' }, 403],
      ['GET', 'another page', { origin: 'https://evil.example' }, 200],
      ['GET', 'no page', {}, 200],
    ])('%s from %s', async (method, _, headers, status) => {
      const outcome = by.authenticate(requestOf({ method, headers: { cookie, ...headers } }));
      if (status === 200) await expect(outcome).resolves.toMatchObject({ sub: 'alice' });
      else expect(await refusal(outcome)).toMatchObject({ status, code: 'FORBIDDEN', reason: 'origin' });
    });

    it('asks for no origin when a header carries the token', async () => {
      const sent = { method: 'POST', headers: { cookie, ...bearer, origin: 'https://evil.example' } };
      await expect(by.authenticate(requestOf(sent))).resolves.toBeDefined();
    });
  });

  describe('that requires TLS', () => {
    const by = make({ requireTls: true });
    const far = '203.0.113.7';

    it.each<[string, Sent, boolean]>([
      ['plain HTTP from this machine', { peer: '127.0.0.1' }, true],
      ['plain HTTP from this machine by IPv6', { peer: '::1' }, true],
      ['plain HTTP from this machine by a mapped address', { peer: '::ffff:127.0.0.1' }, true],
      ['plain HTTP from elsewhere', { peer: far }, false],
      ['TLS from elsewhere', { peer: far, encrypted: true }, true],
      ['a stranger that says https', { peer: far, headers: { 'x-forwarded-proto': 'https' } }, false],
      [
        'a trusted proxy that says https',
        { peer: '10.0.0.1', trustProxy: '10.0.0.1', headers: { 'x-forwarded-proto': 'https' } },
        true,
      ],
      [
        'a trusted proxy that says http',
        { peer: '10.0.0.1', trustProxy: '10.0.0.1', headers: { 'x-forwarded-proto': 'http' } },
        false,
      ],
      [
        'a trusted proxy on this machine that says http for somebody elsewhere',
        {
          trustProxy: 'loopback',
          headers: { 'x-forwarded-for': far, 'x-forwarded-proto': 'http' },
        },
        false,
      ],
      [
        'somebody elsewhere who claims to be on this machine',
        { peer: '10.0.0.1', trustProxy: '10.0.0.1', headers: { 'x-forwarded-for': '127.0.0.1' } },
        false,
      ],
    ])('judges credentials by %s', async (_, sent, accepted) => {
      const outcome = by.authenticate(requestOf({ ...sent, headers: { ...bearer, ...sent.headers } }));
      if (accepted) await expect(outcome).resolves.toBeDefined();
      else expect(await refusal(outcome)).toMatchObject({ status: 403, reason: 'plain_http' });
    });

    it.each<[string, Sent]>([
      ['cookie', { headers: { cookie: `session=${token}` } }],
      ['query', { url: `/events?token=${token}` }],
      ['ticket', { url: `/events?ticket=${tickets.issueReadOnly('alice', '/events', START + 1_000)}` }],
    ])('refuses a %s like a header', async (_, sent) => {
      expect((await refusal(by.authenticate(requestOf({ ...sent, peer: far })))).reason).toBe('plain_http');
      await expect(make().authenticate(requestOf({ ...sent, peer: far }))).resolves.toBeDefined();
    });

    it('lets those pass who send nothing', async () => {
      expect(await by.authenticate(requestOf({ peer: far }))).toBeUndefined();
    });
  });

  describe('on a route where other keys are ignored', () => {
    const ask = (sent: Sent) => authenticator.authenticate(requestOf(sent), { ignoreOpaque: true });

    it('takes the key of another service for nothing', async () => {
      expect(await ask({ headers: { authorization: 'Bearer or-key-123' } })).toBeUndefined();
      expect(await ask({ headers: { 'x-api-key': 'or-key-123' } })).toBeUndefined();
    });

    it('knows a good JWT and refuses a bad one', async () => {
      expect(await ask({ headers: bearer })).toMatchObject({ sub: 'alice' });
      expect((await refusal(ask({ headers: { authorization: `Bearer ${tampered}` } }))).status).toBe(401);
    });

    it('refuses an expired JWT', async () => {
      const old = new Authenticator({
        verifier: new Verifier({ keys: [new FixedKeys([secretKey(SECRET)])], now: () => START + 3_700_000 }),
        tickets,
      });
      expect((await refusal(old.authenticate(requestOf({ headers: bearer }), { ignoreOpaque: true }))).reason).toBe(
        'expired',
      );
    });
  });
});
