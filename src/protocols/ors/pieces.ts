/** What a piece may hold, in bytes and so in characters too: servers count the one, documents the other. */
export const PIECE_BYTES = 4096;

/**
 * White space that is not ASCII: clients break lines at some of it, and strip all of it from the ends of a piece. What is
 * ASCII and no space JSON has escaped already.
 */
const ODD_SPACE = /[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON that passes every client unharmed: compact, on one line, with no white space but plain spaces inside strings. */
export const wireJson = (value: unknown): string => JSON.stringify(value).replace(ODD_SPACE, escaped);

const SPACE = 0x20;
const ESCAPED_SPACE = '\\u0020';
/** By how much a space grows. */
const GROWTH = ESCAPED_SPACE.length - 1;

/** The beginning of the character that is cut by an end. */
const boundary = (bytes: Buffer, end: number): number => {
  let at = end;
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at--;
  return at;
};

/**
 * Cuts JSON into pieces of at most 4096 bytes, between characters. Clients strip white space from the ends of each piece,
 * so a space that would stand there is written as an escape: inside a JSON string, and nowhere else are spaces in compact
 * JSON, it means the same. Put together again, the pieces are JSON of the same value.
 */
export const piecesOf = (json: string): string[] => {
  if (json.length <= PIECE_BYTES / 3) return [json]; // no character has more than three bytes per unit
  const bytes = Buffer.from(json);
  const pieces: string[] = [];
  let at = 0;
  while (bytes.length - at > PIECE_BYTES || (bytes[at] === SPACE && bytes.length - at > PIECE_BYTES - GROWTH)) {
    const leads = bytes[at] === SPACE;
    const room = PIECE_BYTES - (leads ? GROWTH : 0);
    let end = boundary(bytes, at + room);
    if (bytes[end - 1] === SPACE) end = boundary(bytes, at + room - GROWTH);
    const trails = bytes[end - 1] === SPACE;
    const middle = bytes.toString('utf8', leads ? at + 1 : at, trails ? end - 1 : end);
    pieces.push(`${leads ? ESCAPED_SPACE : ''}${middle}${trails ? ESCAPED_SPACE : ''}`);
    at = end;
  }
  const rest = bytes.toString('utf8', at);
  pieces.push(rest.startsWith(' ') ? `${ESCAPED_SPACE}${rest.slice(1)}` : rest);
  return pieces;
};
