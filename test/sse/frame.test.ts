import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { comment, frame } from '../../src/sse/frame.ts';
import { framed } from '../../src/sse/framing.ts';

const parse = (text: string): { events: EventSourceMessage[]; retries: number[] } => {
  const events: EventSourceMessage[] = [];
  const retries: number[] = [];
  createParser({ onEvent: (event) => events.push(event), onRetry: (ms) => retries.push(ms) }).feed(text);
  return { events, retries };
};

describe('a frame', () => {
  it('is read by clients as it was written, whatever the data', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.stringMatching(/^[a-z_]{1,20}$/),
        fc.stringMatching(/^[!-~]{1,50}$/),
        (data, event, id) => {
          const { events } = parse(frame({ event, id, data }));
          expect(events).toEqual([{ event, id, data: data.replace(/\r\n|\r/g, '\n') }]);
        },
      ),
    );
  });

  it.each(['a\rb', 'a\nb', 'a\r\nb'])('splits data at %j into lines', (data) => {
    expect(frame({ data })).toBe('data: a\ndata: b\n\n');
  });

  it.each(['a\rb', 'a\nb', 'a\0b', '\n', 'x\r\ndata: forged'])('refuses %j in a name and an id', (text) => {
    expect(() => frame({ event: text, data: '' })).toThrow(RangeError);
    expect(() => frame({ id: text, data: '' })).toThrow(RangeError);
  });

  it('tells when to come back in whole milliseconds', () => {
    expect(parse(frame({ retry: 1234.56 })).retries).toEqual([1234]);
  });

  it('may be a comment, which is always one line and never an event', () => {
    expect(comment('a\r\ndata: b\n\n')).toBe(': a data: b \n\n');
    expect(parse(comment('a\ndata: b')).events).toEqual([]);
  });

  it('stands in a chunk of its size in bytes', () => {
    expect(framed('chunked', 'ü🌊').toString()).toBe('6\r\nü🌊\r\n');
    expect(framed('plain', 'ü').toString()).toBe('ü');
  });
});
