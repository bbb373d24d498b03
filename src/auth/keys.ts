import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';

export const ALGORITHMS = ['HS256', 'RS256', 'ES256'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** A key and the one algorithm it is for. What a token's header says never widens this. */
export interface VerifyKey {
  readonly algorithm: Algorithm;
  readonly key: KeyObject;
  readonly kid?: string;
}

/** Where keys come from. */
export interface KeySource {
  /** The keys that may have signed such a token. Throws `AuthError` `unavailable` if that cannot be known now. */
  candidates(algorithm: Algorithm, kid: string | undefined): Promise<readonly VerifyKey[]>;
}

const MIN_SECRET_BYTES = 32; // RFC 7518 section 3.2: as long as the hash
const MIN_RSA_BITS = 2_048;

/** Refuses, in one sentence, a secret that is too short or that everybody may know. */
export const secretKey = (secret: string): VerifyKey => {
  if (/-----BEGIN [A-Z ]+-----/.test(secret)) {
    throw new Error('The secret for HS256 is a PEM key; configure it as a public key instead.');
  }
  const bytes = Buffer.from(secret, 'utf8');
  if (bytes.length < MIN_SECRET_BYTES) {
    throw new Error(`The secret for HS256 has ${bytes.length} bytes and needs at least ${MIN_SECRET_BYTES}.`);
  }
  return { algorithm: 'HS256', key: createSecretKey(bytes) };
};

const algorithmOf = (key: KeyObject): Algorithm => {
  const details = key.asymmetricKeyDetails;
  if (key.asymmetricKeyType === 'rsa') {
    if ((details?.modulusLength ?? 0) < MIN_RSA_BITS) {
      throw new Error(`The RSA public key has fewer than ${MIN_RSA_BITS} bits.`);
    }
    return 'RS256';
  }
  if (key.asymmetricKeyType === 'ec' && details?.namedCurve === 'prime256v1') return 'ES256';
  throw new Error('The public key is neither RSA (RS256) nor on the curve P-256 (ES256).');
};

export const publicKey = (pem: string, kid?: string): VerifyKey => {
  // Node would quietly take the public half: a private key has no business here.
  if (/PRIVATE KEY-----/.test(pem)) throw new Error('The key is a private key; the gateway needs the public one.');
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch (cause) {
    throw new Error('The public key is not a PEM key that can be read.', { cause });
  }
  return { algorithm: algorithmOf(key), key, ...(kid !== undefined && { kid }) };
};

/** Keys that stay as they are while the process runs. */
export class FixedKeys implements KeySource {
  private readonly keys: readonly VerifyKey[];

  constructor(keys: readonly VerifyKey[]) {
    this.keys = keys;
  }

  async candidates(algorithm: Algorithm, kid: string | undefined): Promise<readonly VerifyKey[]> {
    return this.keys.filter(
      (key) => key.algorithm === algorithm && (kid === undefined || key.kid === undefined || key.kid === kid),
    );
  }
}
