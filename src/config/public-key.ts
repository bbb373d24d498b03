import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const MIN_RSA_BITS = 2048;

/** The PEM of a key that is given as such, as a file, or in one line with `\n` for the line ends. Throws if it is none. */
export const readPublicKey = (given: string, directory: string): string => {
  const pem = (
    given.includes('-----BEGIN') ? given.replaceAll('\\n', '\n') : readFileSync(resolve(directory, given), 'utf8')
  ).trim();
  // node would take the public half of a private key without a word; here it has no business at all.
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) throw new Error('This is a private key.');
  const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey(pem);
  const rsa = asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_RSA_BITS;
  const ec = asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1';
  if (!rsa && !ec) throw new Error('Neither RS256 nor ES256 can use this key.');
  return pem;
};
