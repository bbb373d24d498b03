import { type KeyObject, sign } from 'node:crypto';
import { AuthError } from '../../src/auth/auth-error.ts';
import type { Principal } from '../../src/auth/principal.ts';
import { type MintedClaims, mintToken } from '../../src/auth/token.ts';

export const SECRET = 'a secret of more than thirty-two bytes';
export const START = Date.UTC(2030, 0, 1);

/** Time that moves only when a test says so. */
export class Clock {
  private ms = START;
  readonly now = (): number => this.ms;

  advance(ms: number): void {
    this.ms += ms;
  }
}

export const seconds = (ms: number): number => Math.floor(ms / 1_000);

/** Valid for an hour from the start of the clock. */
export const tokenFor = (claims: Partial<MintedClaims> = {}, ttlSeconds = 3_600): string =>
  mintToken(SECRET, { sub: 'alice', ...claims }, ttlSeconds, () => START);

export const principalOf = (more: Partial<Principal> = {}): Principal => ({
  sub: 'alice',
  scopes: new Set(),
  subscribe: [],
  publish: [],
  agents: [],
  expiresAt: START + 3_600_000,
  ...more,
});

export const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A JWT made by hand, so that no library stands in the way of a bad one. */
export const handmade = (header: object, claims: object, signature: (input: string) => Buffer): string => {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signature(input).toString('base64url')}`;
};

export const signedBy = (key: KeyObject, header: { alg: string; kid?: string }, claims: object = {}): string =>
  handmade(header, { sub: 'alice', exp: seconds(START) + 3_600, ...claims }, (input) =>
    sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }),
  );

/** The error of a promise that must not succeed. */
export const refusal = async (promise: Promise<unknown>): Promise<AuthError> => {
  const outcome: unknown = await promise.then(
    (value) => new Error(`it was accepted: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (outcome instanceof AuthError) return outcome;
  throw outcome;
};
