import jwt, { type Jwt, type JwtPayload } from 'jsonwebtoken';
import { AuthError } from './auth-error.ts';
import { ALGORITHMS, type Algorithm, type KeySource, type VerifyKey } from './keys.ts';
import { type Principal, parsePrincipal } from './principal.ts';

export interface VerifierOptions {
  readonly keys: readonly KeySource[];
  /** Accepted values of `iss`. Not checked when absent. */
  readonly issuer?: string | readonly string[];
  /** A token must name one of these in `aud`. Not checked when absent. */
  readonly audience?: string | readonly string[];
  /** How far the clocks of issuer and gateway may differ. Default 5. */
  readonly clockToleranceSeconds?: number;
  readonly now?: () => number;
}

type OneOrMore = [string, ...string[]];

const listOf = (value: string | readonly string[] | undefined): OneOrMore | undefined => {
  const [first, ...rest] = typeof value === 'string' ? [value] : (value ?? []);
  return first === undefined ? undefined : [first, ...rest];
};

const decode = (token: string): Jwt | undefined => {
  try {
    return jwt.decode(token, { complete: true }) ?? undefined;
  } catch {
    return undefined; // the header is there but the claims are not JSON
  }
};

const isAlgorithm = (text: unknown): text is Algorithm => (ALGORITHMS as readonly unknown[]).includes(text);

const refusalOf = (error: unknown): AuthError => {
  if (error instanceof jwt.TokenExpiredError) return new AuthError('expired', 'The token has expired.');
  if (error instanceof jwt.NotBeforeError) return new AuthError('invalid', 'The token is not valid yet.');
  const text = error instanceof Error ? error.message : '';
  if (text.startsWith('jwt audience')) return new AuthError('invalid', 'The token is for another audience.');
  if (text.startsWith('jwt issuer')) return new AuthError('invalid', 'The token comes from another issuer.');
  return new AuthError('invalid', 'The token cannot be verified.', { cause: error });
};

/** Turns a token into a principal, or throws an `AuthError`. */
export class Verifier {
  private readonly keys: readonly KeySource[];
  private readonly issuer: OneOrMore | undefined;
  private readonly audience: OneOrMore | undefined;
  private readonly clockTolerance: number;
  private readonly now: () => number;

  constructor({ keys, issuer, audience, clockToleranceSeconds = 5, now = Date.now }: VerifierOptions) {
    if (keys.length === 0) throw new Error('No key to verify tokens with is configured.');
    this.keys = keys;
    this.issuer = listOf(issuer);
    this.audience = listOf(audience);
    this.clockTolerance = clockToleranceSeconds;
    this.now = now;
  }

  async verify(token: string): Promise<Principal> {
    const header = decode(token)?.header;
    if (!header) throw new AuthError('malformed', 'The token is not a JWT.');
    if (!isAlgorithm(header.alg)) {
      throw new AuthError('invalid', `The token is not signed with one of ${ALGORITHMS.join(', ')}.`);
    }
    // RFC 7515 section 4.1.11: who does not understand a critical extension must refuse. We know none.
    if (header.crit !== undefined) throw new AuthError('invalid', 'The token has critical extensions.');
    const kid = typeof header.kid === 'string' ? header.kid : undefined;
    let refusal = new AuthError('invalid', 'The token was signed with an unknown key.');
    for (const source of this.keys) {
      try {
        for (const key of await source.candidates(header.alg, kid)) {
          const claims = this.claimsBy(key, token);
          if (claims) return parsePrincipal(claims);
          refusal = new AuthError('invalid', 'The signature is wrong.');
        }
      } catch (error) {
        if (!(error instanceof AuthError) || error.reason !== 'unavailable') throw error;
        refusal = error; // the next source may know the key; if none does, nobody can say that the token is bad
      }
    }
    throw refusal;
  }

  /** Undefined if another key must have signed it. */
  private claimsBy({ key, algorithm }: VerifyKey, token: string): JwtPayload | string | undefined {
    try {
      return jwt.verify(token, key, {
        algorithms: [algorithm],
        clockTimestamp: Math.floor(this.now() / 1_000),
        clockTolerance: this.clockTolerance,
        ...(this.issuer && { issuer: this.issuer }),
        ...(this.audience && { audience: this.audience }),
      });
    } catch (error) {
      if (error instanceof Error && error.message === 'invalid signature') return undefined;
      throw refusalOf(error);
    }
  }
}
