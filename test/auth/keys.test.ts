import { generateKeyPairSync } from 'node:crypto';
import { FixedKeys, publicKey, secretKey } from '../../src/auth/keys.ts';
import { pemOf, SECRET } from './fixtures.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

describe('keys', () => {
  it('are each for one algorithm, which the kind of key decides', () => {
    expect(secretKey(SECRET).algorithm).toBe('HS256');
    expect(publicKey(pemOf(rsa.publicKey)).algorithm).toBe('RS256');
    expect(publicKey(pemOf(ec.publicKey)).algorithm).toBe('ES256');
  });

  it('need 32 bytes of secret, not 32 characters or fewer bytes', () => {
    expect(() => secretKey('x'.repeat(31))).toThrow('has 31 bytes and needs at least 32.');
    expect(secretKey('é'.repeat(16)).algorithm).toBe('HS256');
  });

  it.each<[string, () => unknown, string]>([
    ['a public key as a secret', () => secretKey(pemOf(rsa.publicKey)), 'is a PEM key'],
    [
      'a private key',
      () => publicKey(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
      'is a private key',
    ],
    ['text', () => publicKey('hello'), 'not a PEM key'],
    [
      'a short RSA key',
      () => publicKey(pemOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey)),
      'fewer than 2048 bits',
    ],
    ['another curve', () => publicKey(pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)), 'P-256'],
    ['Ed25519', () => publicKey(pemOf(generateKeyPairSync('ed25519').publicKey)), 'P-256'],
  ])('refuse %s in one sentence', (_, make, sentence) => {
    expect(make).toThrow(sentence);
    expect(make).toThrow(/^[^.]+\.$/);
  });

  it('are offered for their own algorithm and their own id only', async () => {
    const keys = new FixedKeys([
      secretKey(SECRET),
      publicKey(pemOf(rsa.publicKey), 'one'),
      publicKey(pemOf(ec.publicKey)),
    ]);
    expect(await keys.candidates('HS256', undefined)).toHaveLength(1);
    expect(await keys.candidates('RS256', 'one')).toHaveLength(1);
    expect(await keys.candidates('RS256', 'two')).toHaveLength(0);
    expect(await keys.candidates('ES256', 'any')).toHaveLength(1);
  });
});
