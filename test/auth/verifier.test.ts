import { createHmac, generateKeyPairSync } from 'node:crypto';
import { AuthError } from '../../src/auth/auth-error.ts';
import { FixedKeys, type KeySource, publicKey, secretKey } from '../../src/auth/keys.ts';
import { Verifier, type VerifierOptions } from '../../src/auth/verifier.ts';
import { Clock, handmade, pemOf, refusal, SECRET, START, seconds, signedBy, tokenFor } from './fixtures.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsaPem = pemOf(rsa.publicKey);
const ecPem = pemOf(ec.publicKey);
const good = { sub: 'alice', exp: seconds(START) + 3_600 };

const hmacBy =
  (key: string | Buffer) =>
  (input: string): Buffer =>
    createHmac('sha256', key).update(input).digest();

const verifierOf = (clock: Clock, more: Partial<VerifierOptions> = {}): Verifier =>
  new Verifier({
    keys: [new FixedKeys([secretKey(SECRET), publicKey(rsaPem), publicKey(ecPem)])],
    now: clock.now,
    ...more,
  });

describe('Verifier', () => {
  const clock = new Clock();
  const verifier = verifierOf(clock);

  it.each([
    ['HS256', () => tokenFor()],
    ['RS256', () => signedBy(rsa.privateKey, { alg: 'RS256' })],
    ['ES256', () => signedBy(ec.privateKey, { alg: 'ES256' })],
  ])('accepts %s', async (_, make) => {
    expect(await verifier.verify(make())).toMatchObject({ sub: 'alice', expiresAt: START + 3_600_000 });
  });

  const onlyRsa = verifierOf(clock, { keys: [new FixedKeys([publicKey(rsaPem)])] });
  const onlySecret = verifierOf(clock, { keys: [new FixedKeys([secretKey(SECRET)])] });

  it.each<[string, Verifier, () => string]>([
    ['alg none without a signature', verifier, () => handmade({ alg: 'none' }, good, () => Buffer.alloc(0))],
    ['alg None', verifier, () => handmade({ alg: 'None' }, good, () => Buffer.alloc(0))],
    ['no alg', verifier, () => handmade({}, good, hmacBy(SECRET))],
    ['a list as alg', verifier, () => handmade({ alg: ['HS256'] }, good, hmacBy(SECRET))],
    ['HS256 with the RSA public key as secret', onlyRsa, () => handmade({ alg: 'HS256' }, good, hmacBy(rsaPem))],
    ['the same when a secret is configured too', verifier, () => handmade({ alg: 'HS256' }, good, hmacBy(rsaPem))],
    [
      'HS256 with the DER bytes of the public key',
      onlyRsa,
      () => handmade({ alg: 'HS256' }, good, hmacBy(rsa.publicKey.export({ type: 'spki', format: 'der' }))),
    ],
    [
      'HS512',
      onlySecret,
      () => handmade({ alg: 'HS512' }, good, (i) => createHmac('sha512', SECRET).update(i).digest()),
    ],
    ['RS256 where only a secret is known', onlySecret, () => signedBy(rsa.privateKey, { alg: 'RS256' })],
    ['ES256 where only RSA is known', onlyRsa, () => signedBy(ec.privateKey, { alg: 'ES256' })],
    ['an RSA signature that claims ES256', verifier, () => signedBy(rsa.privateKey, { alg: 'ES256' })],
    ['another secret', onlySecret, () => handmade({ alg: 'HS256' }, good, hmacBy(`${SECRET}!`))],
    [
      'another RSA key',
      verifier,
      () => signedBy(generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey, { alg: 'RS256' }),
    ],
    [
      'a key that the token brings along',
      onlyRsa,
      () => {
        const own = generateKeyPairSync('rsa', { modulusLength: 2_048 });
        return signedBy(own.privateKey, { alg: 'RS256', jwk: own.publicKey.export({ format: 'jwk' }) } as {
          alg: string;
        });
      },
    ],
    ['critical extensions', verifier, () => handmade({ alg: 'HS256', crit: ['b64'], b64: true }, good, hmacBy(SECRET))],
    [
      'changed claims',
      verifier,
      () => {
        const [head, , tail] = tokenFor().split('.');
        return `${head}.${Buffer.from(JSON.stringify({ ...good, scope: 'admin' })).toString('base64url')}.${tail}`;
      },
    ],
    ['text', verifier, () => 'hello'],
    ['claims that are not JSON', verifier, () => `${tokenFor().split('.')[0]}.aGVsbG8.c2ln`],
    ['claims that are a list', verifier, () => handmade({ alg: 'HS256' }, [1], hmacBy(SECRET))],
    ['a token that never ends', verifier, () => handmade({ alg: 'HS256' }, { sub: 'alice' }, hmacBy(SECRET))],
    ['a wrong claim', verifier, () => handmade({ alg: 'HS256' }, { ...good, scope: 1 }, hmacBy(SECRET))],
  ])('refuses %s', async (_, by, make) => {
    const error = await refusal(by.verify(make()));
    expect(error).toMatchObject({ status: 401, code: 'AUTH_FAILED' });
    expect(error.headers['WWW-Authenticate']).toContain('error="invalid_token"');
  });

  it('says which algorithms there are, before any key is looked for', async () => {
    const unsigned = handmade({ alg: 'none' }, good, () => Buffer.alloc(0));
    expect((await refusal(verifier.verify(unsigned))).message).toBe(
      'The token is not signed with one of HS256, RS256, ES256.',
    );
  });

  it('accepts an expired token for the tolerance of 5 s and no longer', async () => {
    const moving = new Clock();
    const by = verifierOf(moving);
    moving.advance(3_600_000 + 4_999);
    await expect(by.verify(tokenFor())).resolves.toBeDefined();
    moving.advance(1);
    expect(await refusal(by.verify(tokenFor()))).toMatchObject({ reason: 'expired', status: 401 });
  });

  it('takes another tolerance', async () => {
    const moving = new Clock();
    moving.advance(3_600_000);
    expect((await refusal(verifierOf(moving, { clockToleranceSeconds: 0 }).verify(tokenFor()))).reason).toBe('expired');
  });

  it('refuses a token whose time has not come', async () => {
    const early = handmade({ alg: 'HS256' }, { ...good, nbf: seconds(START) + 6 }, hmacBy(SECRET));
    expect((await refusal(verifier.verify(early))).message).toBe('The token is not valid yet.');
    const nearly = handmade({ alg: 'HS256' }, { ...good, nbf: seconds(START) + 5 }, hmacBy(SECRET));
    await expect(verifier.verify(nearly)).resolves.toBeDefined();
  });

  it('checks issuer and audience when they are configured', async () => {
    const by = verifierOf(clock, { issuer: 'https://id', audience: ['sluice', 'gate'] });
    await expect(by.verify(tokenFor({ iss: 'https://id', aud: ['other', 'gate'] }))).resolves.toBeDefined();
    expect((await refusal(by.verify(tokenFor({ iss: 'https://id', aud: 'other' })))).message).toContain('audience');
    expect((await refusal(by.verify(tokenFor({ iss: 'https://id' })))).message).toContain('audience');
    expect((await refusal(by.verify(tokenFor({ iss: 'https://evil', aud: 'gate' })))).message).toContain('issuer');
    expect((await refusal(by.verify(tokenFor({ aud: 'gate' })))).message).toContain('issuer');
    await expect(verifier.verify(tokenFor({ iss: 'https://any', aud: 'any' }))).resolves.toBeDefined();
  });

  it('tries every key, so that a secret can be replaced while old tokens live', async () => {
    const by = verifierOf(clock, { keys: [new FixedKeys([secretKey(`new ${SECRET}`), secretKey(SECRET)])] });
    await expect(by.verify(tokenFor())).resolves.toBeDefined();
  });

  it('asks the next source when one is away, and does not call a token bad that it could not check', async () => {
    const away: KeySource = {
      candidates: () => Promise.reject(new AuthError('unavailable', 'away')),
    };
    const known = new FixedKeys([secretKey(SECRET)]);
    await expect(verifierOf(clock, { keys: [away, known] }).verify(tokenFor())).resolves.toBeDefined();
    const error = await refusal(
      verifierOf(clock, { keys: [known, away] }).verify(signedBy(rsa.privateKey, { alg: 'RS256' })),
    );
    expect(error).toMatchObject({ status: 503, code: 'UNAVAILABLE' });
    expect(error.headers).toEqual({ 'Retry-After': '5' });
  });

  it('needs at least one source of keys', () => {
    expect(() => new Verifier({ keys: [] })).toThrow('No key');
  });
});
