import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readPublicKey } from '../../src/config/public-key.ts';
import { makeDirectory } from '../support/directory.ts';

const directory = makeDirectory();
afterAll(() => directory.remove());

const publicPem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

describe('a public key', () => {
  it('is given as PEM, on one line, or as a file', () => {
    const pem = publicPem(ec.publicKey).trim();
    directory.write('keys/ec.pem', `${pem}\n`);
    expect(readPublicKey(pem, directory.path)).toBe(pem);
    expect(readPublicKey(pem.replaceAll('\n', '\\n'), directory.path)).toBe(pem);
    expect(readPublicKey('keys/ec.pem', directory.path)).toBe(pem);
    expect(readPublicKey(publicPem(rsa.publicKey), directory.path)).toContain('BEGIN PUBLIC KEY');
  });

  it.each([
    ['a private key', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['a private key of the old form', ec.privateKey.export({ type: 'sec1', format: 'pem' }).toString()],
    ['a short key', publicPem(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)],
    ['another curve', publicPem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
    ['another kind', publicPem(generateKeyPairSync('ed25519').publicKey)],
    ['no key', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'],
    ['no file', 'missing.pem'],
  ])('is not %s', (_, given) => {
    expect(() => readPublicKey(given, directory.path)).toThrow();
  });
});
