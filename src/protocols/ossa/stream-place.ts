import { Problem } from '../problem.ts';

/** A place for one more stream of a principal. */
export type AcquireStream = (
  principal: string,
) => Promise<
  | { readonly allowed: true; readonly release: () => void }
  | { readonly allowed: false; readonly reason: 'principal' | 'total' }
>;

const REFUSED = {
  principal: 'You have as many open streams as you may.',
  total: 'This gateway has as many open streams as it may.',
} as const;

/** Throws a `Problem` when there is none. */
export const placeFor = async (
  acquire: AcquireStream,
  principal: string,
): Promise<{ readonly release: () => void }> => {
  const place = await acquire(principal);
  if (place.allowed) return place;
  throw new Problem('RATE_LIMIT_EXCEEDED', REFUSED[place.reason], { headers: { 'Retry-After': '5' } });
};
