import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { PIECE_BYTES, piecesOf, wireJson } from '../../../src/protocols/ors/pieces.ts';

/** What Python's `str.strip()` takes away and `str.splitlines()` breaks at; a test below asks Python itself. */
const PYTHON_SPACE = [
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680],
  ...[0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a],
  ...[0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
];
const PYTHON_SPACES = new Set(PYTHON_SPACE.map((code) => String.fromCharCode(code)));
/** What JavaScript's `trim()` takes away besides. */
const ALL_SPACES = [...PYTHON_SPACES, '\ufeff'];

const outcomeOf = (text: string): unknown => ({
  ok: true,
  output: { blocks: [{ text, detail: null, type: 'text' }], metadata: null, reward: 1, finished: false },
});

/** Null if the pieces of a value do what they must, else what is wrong with them. */
const faultOf = (value: unknown): string | null => {
  const pieces = piecesOf(wireJson(value));
  for (const [i, piece] of pieces.entries()) {
    const where = `piece ${i} of ${pieces.length}`;
    if (Buffer.byteLength(piece) > PIECE_BYTES) return `${where} has ${Buffer.byteLength(piece)} bytes`;
    if (piece.trim() !== piece) return `${where} changes under trim()`;
    if (PYTHON_SPACES.has(piece.at(0) ?? '') || PYTHON_SPACES.has(piece.at(-1) ?? '')) {
      return `${where} changes under strip()`;
    }
    if (Buffer.from(piece).toString() !== piece) return `${where} is not whole in UTF-8`;
    for (const character of piece) {
      if (character !== ' ' && ALL_SPACES.includes(character)) return `${where} holds ${JSON.stringify(character)}`;
    }
  }
  const joined: unknown = JSON.parse(pieces.join(''));
  return JSON.stringify(joined) === JSON.stringify(value) ? null : 'the value has changed';
};

/** Letters before a text, so that what follows them meets a cut at every place that it can. */
const shifted = (unit: string, shift: number, bytes: number): string =>
  `${'x'.repeat(shift)}${unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))}`;

const UNITS: readonly (readonly [string, string])[] = [
  ['spaces', ' '],
  ['words', 'word '],
  ['two spaces', 'a  b'],
  ['emoji', '😀'],
  ['emoji and spaces', '😀 '],
  ['letters of two bytes', 'é '],
  ['letters of three bytes', '漢 '],
  ['a family', '👩‍👩‍👧 '],
  ['high halves', '\ud83d'],
  ['low halves', '\ude00 '],
  ['CR LF', '\r\n'],
  ['CR and a space', '\r '],
  ['LF and a space', '\n '],
  ['quotes', '" '],
  ['backslashes', '\\ '],
  ['backslashes alone', '\\'],
  ['what looks like an escape', '\\u0020 '],
  ['tabs', '\t '],
  ['NUL', '\0 '],
  ...ALL_SPACES.map((space) => [`U+${space.charCodeAt(0).toString(16).padStart(4, '0')}`, `${space} `] as const),
];

describe('the pieces of a result', () => {
  it.each(UNITS)('survive a client that trims each of them, wherever they are cut: %s', (_, unit) => {
    // Three pieces and more; as many shifts as the JSON of a unit is long would do, and some more bring other ends.
    for (let shift = 0; shift < 64; shift++) expect(faultOf(outcomeOf(shifted(unit, shift, 10_000)))).toBeNull();
  });

  it('survive it at every one of the 4096 places where a run of emoji or of spaces can begin', () => {
    for (const unit of ['😀', ' ', '😀 ']) {
      for (let shift = 0; shift < PIECE_BYTES; shift++) {
        const fault = faultOf(outcomeOf(shifted(unit, shift, PIECE_BYTES + 64)));
        if (fault !== null) throw new Error(`${JSON.stringify(unit)} behind ${shift}: ${fault}`);
      }
    }
  });

  it('survive it for any text of such characters', () => {
    const odd = fc.constantFrom(...ALL_SPACES, '😀', '\ud83d', '\ude00', '\\', '"', '\0', '\u007f', '\u180e', '\u200b');
    const letters = fc.string({ unit: 'binary', maxLength: 40 });
    // Runs that are longer than a piece, and a little of everything between them.
    const run = fc.tuple(fc.oneof(odd, letters), fc.integer({ min: 1, max: 3_000 })).map(([s, n]) => s.repeat(n));
    const text = fc.array(fc.oneof(odd, letters, run), { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (given) => {
        expect(faultOf(outcomeOf(given))).toBeNull();
      }),
      { numRuns: 500, endOnFailure: true }, // texts of this size are not shrunk in any time,
    );
  });

  it('survive it for any value, keys included', () => {
    const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(' ', '\u2028', ' '.repeat(5_000), '😀 '));
    const value = fc.jsonValue({ stringUnit: 'binary' });
    fc.assert(
      fc.property(fc.dictionary(key, value), fc.integer({ min: 0, max: 9_000 }), (metadata, shift) => {
        expect(faultOf({ ok: true, output: { before: ' '.repeat(shift), metadata } })).toBeNull();
      }),
      { numRuns: 300, endOnFailure: true },
    );
  });

  it('are one as long as the JSON has at most 4096 bytes', () => {
    const around = Buffer.byteLength(JSON.stringify(outcomeOf('')));
    const lengths = [4_096, 4_097, 8_192].map((bytes) => {
      const pieces = piecesOf(wireJson(outcomeOf('x'.repeat(bytes - around))));
      return pieces.map((piece) => piece.length);
    });
    expect(lengths).toEqual([[4_096], [4_096, 1], [4_096, 4_096]]);
  });

  it('are cut with regard to the very white space that Python knows', () => {
    const script =
      'import sys, json; print(json.dumps([c for c in range(0x110000) if chr(c).strip() == "" or len(("a" + chr(c) + "b").splitlines()) > 1]))';
    const { stdout } = spawnSync('/usr/bin/python3', ['-c', script], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual(PYTHON_SPACE);
  });

  it('are cut with regard to the very white space that JavaScript knows', () => {
    const codes = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));
    expect(codes.filter((character) => character.trim() === '').filter((one) => !ALL_SPACES.includes(one))).toEqual([]);
  });
});
