import jwt from 'jsonwebtoken';
import { secretKey } from './keys.ts';
import { type Claims, parsePrincipal } from './principal.ts';

export interface MintedClaims extends Omit<Claims, 'exp'> {
  readonly iss?: string;
  readonly aud?: string | readonly string[];
}

/** An HS256 token. Throws what the gateway would refuse, so that nobody carries a token that does not work. */
export const mintToken = (
  secret: string,
  claims: MintedClaims,
  ttlSeconds: number,
  now: () => number = Date.now,
): string => {
  if (!(ttlSeconds > 0)) throw new Error('The lifetime of a token must be more than 0 seconds.');
  const iat = Math.floor(now() / 1_000);
  const payload = { ...claims, iat, exp: iat + Math.ceil(ttlSeconds) };
  parsePrincipal(payload);
  return jwt.sign(payload, secretKey(secret).key, { algorithm: 'HS256' });
};
