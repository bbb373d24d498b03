import { CallStream } from '../../../src/environments/upstream/call-stream.ts';

const fed = (text: string, size: number, maxBytes = 1_000): CallStream => {
  const stream = new CallStream(maxBytes);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) stream.feed(bytes.subarray(at, at + size));
  return stream;
};

const call = (end: string): string =>
  [
    'event: task_id',
    'data: abc',
    '',
    ': ping',
    '',
    'event: chunk',
    'data:  \u{1f600} ',
    '',
    'event: end',
    'data:\u2028 x ',
    '',
    '',
  ].join(end);

describe('the stream of a call', () => {
  it.each(['\r\n', '\n', '\r'])('is read in pieces of any size, with lines that end in %j', (end) => {
    for (const size of [1, 2, 3, 5, 7, 1_000]) {
      // A single CR at the very end may be the first half of a line end.
      const stream = fed(`${call(end)}: more${end}`, size);
      expect(stream.taskId).toBe('abc');
      expect(stream.ended).toEqual({ kind: 'end', json: ' \u{1f600} \u2028 x ' });
    }
  });

  it('has not ended before the empty line behind the last event', () => {
    const whole = Buffer.from(call('\n'));
    const stream = new CallStream(1_000);
    expect(stream.feed(whole.subarray(0, -1))).toBe(false);
    expect(stream.ended).toBeUndefined();
    expect(stream.feed(whole.subarray(-1))).toBe(true);
  });

  it('takes nothing behind the end, and nothing that it does not know', () => {
    const odd = 'id: 1\nretry: 5\nno colon\nevent: strange\ndata: x\n\ndata: unnamed\n\n';
    const stream = fed(`${odd}${call('\n')}${odd}event: error\ndata: late\n\n`, 1_000);
    expect(stream.ended).toEqual({ kind: 'end', json: ' \u{1f600} \u2028 x ' });
  });

  it('keeps the lines of an error apart', () => {
    expect(fed('event: error\ndata: one\ndata:\ndata:  three\n\n', 4).ended).toEqual({
      kind: 'error',
      message: 'one\n\n three',
    });
  });

  it('refuses more bytes than it may have, in pieces or in one that never ends', () => {
    const piece = `event: chunk\ndata: ${'\u00e9'.repeat(20)}\n\n`;
    expect(() => fed(piece.repeat(2), 10, 80)).not.toThrow();
    expect(() => fed(piece.repeat(3), 10, 80)).toThrow('larger than 80 bytes');
    expect(() => fed(`event: chunk\ndata: ${'a'.repeat(200)}`, 10, 80)).toThrow('larger than 80 bytes');
  });
});
