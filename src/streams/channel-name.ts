/**
 * Channel names are segments of letters, digits, `_` and `-` joined by dots. In a pattern `*` stands for one segment and
 * `#`, only as the last one, for one or more.
 *
 * The log also stores names with a principal behind an `@` (one channel per principal, see `docs/ARCHITECTURE.md`);
 * those are made by the gateway and never come from a request.
 */
const MAX_BYTES = 255;
const NAME = /^[\w-]+(?:\.[\w-]+)*$/;
const PATTERN = /^(?:(?:[\w-]+|\*)\.)*(?:[\w-]+|\*|#)$/;

export const isChannelName = (text: string): boolean => text.length <= MAX_BYTES && NAME.test(text);

/** True for every pattern, a plain name among them. */
export const isChannelPattern = (text: string): boolean => text.length <= MAX_BYTES && PATTERN.test(text);

export const hasWildcard = (pattern: string): boolean => pattern.includes('*') || pattern.includes('#');

export const matchesPattern = (pattern: string, channel: string): boolean => {
  if (!hasWildcard(pattern)) return pattern === channel;
  const want = pattern.split('.');
  const have = channel.split('.');
  for (const [i, segment] of want.entries()) {
    if (segment === '#') return have.length > i;
    if (i >= have.length || (segment !== '*' && segment !== have[i])) return false;
  }
  return want.length === have.length;
};
