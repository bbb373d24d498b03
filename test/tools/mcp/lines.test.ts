import { Lines } from '../../../src/tools/mcp/lines.ts';

const read = (most: number, chunks: readonly (string | Buffer)[]): string[] => {
  const seen: string[] = [];
  const lines = new Lines(most, {
    line: (text) => seen.push(text),
    tooLong: (head, tail) => seen.push(`too long: ${head.slice(0, 3)}..${tail.slice(-3)}`),
  });
  for (const chunk of chunks) lines.push(Buffer.from(chunk));
  lines.end();
  return seen;
};

describe('lines', () => {
  it('are found wherever the bytes are cut', () => {
    const text = Buffer.from('one\ntwö\r\n\nfour');
    for (let cut = 0; cut <= text.length; cut++) {
      expect(read(100, [text.subarray(0, cut), text.subarray(cut)])).toEqual(['one', 'twö', '', 'four']);
    }
    expect(
      read(
        100,
        [...text].map((byte) => Buffer.from([byte])),
      ),
    ).toEqual(['one', 'twö', '', 'four']);
  });

  it('may be as long as they may be, and not one byte longer', () => {
    expect(read(5, ['12345\n'])).toEqual(['12345']);
    expect(read(5, ['123456\nnext\n'])).toEqual(['too long: 123..456', 'next']);
  });

  it('that are too long show how they began and ended, and cost no memory', () => {
    const chunks = ['abc', ...Array.from({ length: 1_000 }, () => 'x'.repeat(1_000)), 'end\nnext\n'];
    expect(read(10_000, chunks)).toEqual(['too long: abc..end', 'next']);
  });
});
