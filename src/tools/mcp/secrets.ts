/** Shorter values are words like `1` or `true`: to take them out would make nonsense of every text. */
const SHORTEST = 6;

/**
 * Takes secrets out of texts that others wrote: what a server prints or answers may well repeat what it was given. A
 * header such as `Bearer abc` is also known by its words.
 */
export const concealing = (secrets: readonly string[]): ((text: string) => string) => {
  const words = secrets.flatMap((secret) => [secret, ...secret.split(/\s+/)]);
  // The longest first: one secret may be a part of another. In one pass: what stands for one may look like another.
  const known = [...new Set(words)].filter(({ length }) => length >= SHORTEST).sort((a, b) => b.length - a.length);
  if (known.length === 0) return (text) => text;
  const any = new RegExp(known.map((secret) => secret.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'g');
  return (text) => text.replace(any, '[secret]');
};
