import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { JwksKeys } from '../../src/auth/jwks.ts';
import { Verifier } from '../../src/auth/verifier.ts';
import { Clock, refusal, signedBy, tokenFor } from './fixtures.ts';

type Answer = { readonly status?: number; readonly body?: string; readonly hang?: boolean };

const rsaKey = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync('rsa', { modulusLength: 2_048 });
const first = rsaKey();
const second = rsaKey();
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const jwk = (key: KeyObject, kid: string, more: JsonWebKey = {}): JsonWebKey => ({
  ...key.export({ format: 'jwk' }),
  kid,
  use: 'sig',
  ...more,
});

describe('JwksKeys', () => {
  let server: Server;
  let url: string;
  let answer: Answer;
  let fetches: number;
  let clock: Clock;
  let verifier: Verifier;

  const publish = (...keys: JsonWebKey[]): void => {
    answer = { body: JSON.stringify({ keys }) };
  };
  const both = [jwk(first.publicKey, 'one'), jwk(second.publicKey, 'two')];
  const answers = (next: Answer) => async (): Promise<void> => {
    answer = next;
  };
  const by = (pair: { privateKey: KeyObject }, kid?: string, alg = 'RS256'): string =>
    signedBy(pair.privateKey, { alg, ...(kid !== undefined && { kid }) });
  const make = (timeoutMs = 5_000): Verifier =>
    new Verifier({ keys: [new JwksKeys({ url, now: clock.now, timeoutMs })], now: clock.now });

  beforeEach(async () => {
    fetches = 0;
    clock = new Clock();
    server = createServer((_request, response) => {
      fetches++;
      if (!answer.hang) response.writeHead(answer.status ?? 200).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
    verifier = make();
    publish(jwk(first.publicKey, 'one'));
  });

  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  afterEach(stop);

  it('fetches once for any number of tokens', async () => {
    await Promise.all(Array.from({ length: 20 }, () => verifier.verify(by(first, 'one'))));
    await verifier.verify(by(first, 'one'));
    expect(fetches).toBe(1);
  });

  it('fetches nothing for a token that no key of the set can have signed', async () => {
    await refusal(verifier.verify(tokenFor()));
    expect(fetches).toBe(0);
  });

  it('takes P-256 keys, and tokens without a key id', async () => {
    publish(jwk(first.publicKey, 'one'), jwk(curve.publicKey, 'two'));
    await expect(verifier.verify(by(curve, 'two', 'ES256'))).resolves.toBeDefined();
    await expect(verifier.verify(by(first))).resolves.toBeDefined();
    expect((await refusal(verifier.verify(by(second)))).message).toBe('The signature is wrong.');
  });

  it('finds a key that was added later', async () => {
    await verifier.verify(by(first, 'one'));
    publish(jwk(first.publicKey, 'one'), jwk(second.publicKey, 'two'));
    clock.advance(10_000);
    await expect(verifier.verify(by(second, 'two'))).resolves.toBeDefined();
    expect(fetches).toBe(2);
  });

  it('lets made-up key ids cause one fetch in ten seconds', async () => {
    await verifier.verify(by(first, 'one'));
    for (let i = 0; i < 50; i++) {
      expect((await refusal(verifier.verify(by(second, `made-up-${i}`)))).status).toBe(401);
    }
    expect(fetches).toBe(1);
    clock.advance(10_000);
    for (let i = 0; i < 50; i++) await refusal(verifier.verify(by(second, `made-up-${i}`)));
    expect(fetches).toBe(2);
  });

  it('stops accepting a withdrawn key when the set is ten minutes old', async () => {
    await verifier.verify(by(first, 'one'));
    publish(jwk(second.publicKey, 'two'));
    clock.advance(600_000);
    await expect(verifier.verify(by(first, 'one'))).resolves.toBeDefined();
    clock.advance(1);
    expect((await refusal(verifier.verify(by(first, 'one')))).message).toBe(
      'The token was signed with an unknown key.',
    );
  });

  it('does not take a key id for the key', async () => {
    expect((await refusal(verifier.verify(by(second, 'one')))).message).toBe('The signature is wrong.');
  });

  it.each<[string, () => JsonWebKey]>([
    ['for encryption', () => jwk(second.publicKey, 'two', { use: 'enc' })],
    ['for another algorithm', () => jwk(second.publicKey, 'two', { alg: 'RS512' })],
    ['that are secrets', () => ({ kty: 'oct', k: Buffer.from('x'.repeat(32)).toString('base64url'), kid: 'two' })],
    ['that are damaged', () => ({ kty: 'RSA', n: '!', e: 'AQAB', kid: 'two' })],
  ])('passes over keys %s', async (_, other) => {
    publish(other(), jwk(first.publicKey, 'one'));
    await expect(verifier.verify(by(first, 'one'))).resolves.toBeDefined();
    expect((await refusal(verifier.verify(by(second, 'two')))).status).toBe(401);
  });

  describe.each<[string, () => Promise<void>]>([
    ['refuses connections', stop],
    ['answers 500', answers({ status: 500 })],
    ['answers with a page', answers({ body: '<html>' })],
    ['answers null', answers({ body: 'null' })],
    ['answers with no keys', answers({ body: '{"keys":[]}' })],
    ['answers with far too much', answers({ body: `${JSON.stringify({ keys: both })}${' '.repeat(1_100_000)}` })],
  ])('while the server %s', (_, outage) => {
    it('goes on with the keys it knows, for as long as it takes', async () => {
      await verifier.verify(by(first, 'one'));
      await outage();
      for (let i = 0; i < 5; i++) {
        clock.advance(3_600_000 / 6);
        await expect(verifier.verify(by(first, 'one'))).resolves.toBeDefined();
      }
    });

    it('cannot judge a key it does not know: 503, not 401', async () => {
      await verifier.verify(by(first, 'one'));
      await outage();
      clock.advance(10_000);
      const error = await refusal(verifier.verify(by(second, 'two')));
      expect(error).toMatchObject({ status: 503, code: 'UNAVAILABLE', reason: 'unavailable' });
      expect((await refusal(verifier.verify(by(second, 'two')))).status).toBe(503); // during the cooldown as well
    });

    it('cannot judge anything if it never saw a key', async () => {
      await outage();
      expect((await refusal(verifier.verify(by(first, 'one')))).status).toBe(503);
    });
  });

  it('recovers when the server is back', async () => {
    answer = { status: 500 };
    expect((await refusal(verifier.verify(by(first, 'one')))).status).toBe(503);
    publish(jwk(first.publicKey, 'one'));
    clock.advance(10_000);
    await expect(verifier.verify(by(first, 'one'))).resolves.toBeDefined();
    expect((await refusal(verifier.verify(by(second, 'two')))).status).toBe(401);
  });

  it('makes nobody wait for a server that hangs, once that is known', async () => {
    const patient = make(60_000);
    await patient.verify(by(first, 'one'));
    answer = { status: 500 };
    clock.advance(600_001);
    await patient.verify(by(first, 'one'));
    answer = { hang: true };
    clock.advance(10_000);
    const asked = new Promise<void>((resolve) => server.once('request', () => resolve()));
    await patient.verify(by(first, 'one')); // the fetch hangs for a minute: jest would give this test up
    await asked;
    expect(fetches).toBe(3);
  });

  it('gives a server that hangs up', async () => {
    answer = { hang: true };
    expect((await refusal(make(20).verify(by(first, 'one')))).status).toBe(503);
  });

  it.each(['file:///keys.json', 'keys.json', ''])('refuses "%s" as its URL', (bad) => {
    expect(() => new JwksKeys({ url: bad })).toThrow('The JWKS URL must be an http or https URL.');
  });
});
