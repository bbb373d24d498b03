import fc from 'fast-check';
import { ChatStream } from '../../src/models/chat-stream.ts';
import type { ModelEvent } from '../../src/models/model.ts';
import { ModelError } from '../../src/models/model-error.ts';
import { DONE, delta, saying } from '../support/model-backend.ts';
import { expectHabit } from './habit.ts';
import { HABITS } from './habits.ts';

interface Read {
  readonly events: ModelEvent[];
  readonly error?: ModelError;
}

const read = (pieces: readonly Buffer[], limits: { maxLine?: number; maxBytes?: number } = {}): Read => {
  const events: ModelEvent[] = [];
  let ids = 0;
  const stream = new ChatStream({
    model: 'asked',
    emit: (event) => events.push(event),
    newId: () => `own-${++ids}`,
    now: () => 5_000,
    ...limits,
  });
  try {
    for (const piece of pieces) stream.feed(piece);
    stream.end();
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return { events, error };
  }
  return { events };
};

const inPieces = (body: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(body.length / size) }, (_, i) => body.subarray(i * size, (i + 1) * size));

describe('the body of an answer', () => {
  describe.each(HABITS)('$name', (habit) => {
    const body = Buffer.from(habit.body);

    it.each([Number.POSITIVE_INFINITY, 7, 1])('gives the same events in pieces of %d bytes', (size) => {
      const pieces = size === Number.POSITIVE_INFINITY ? [body] : inPieces(body, size);
      expectHabit(habit, read(pieces));
    });
  });

  it('gives the same events wherever it is cut into pieces', () => {
    const bodies = fc.constantFrom(...HABITS.map(({ body }) => Buffer.from(body)));
    const cuts = fc.array(fc.nat({ max: 5_000 }), { maxLength: 20 });
    const stable = ({ events, error }: Read) => ({
      events: JSON.parse(JSON.stringify(events).replaceAll(/chatcmpl-[\da-f-]{36}/g, 'id')),
      error: error?.message,
    });
    fc.assert(
      fc.property(bodies, cuts, (body, places) => {
        const at = [...new Set([0, ...places.filter((n) => n < body.length), body.length])].sort((a, b) => a - b);
        const pieces = at.slice(1).map((end, i) => body.subarray(at[i], end));
        expect(stable(read(pieces))).toEqual(stable(read([body])));
      }),
      { numRuns: 1_000 },
    );
  });

  it('keeps every word of any text, and gives no empty delta', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 9 }),
        (words, size) => {
          const { events, error } = read(inPieces(Buffer.from(saying(...words)), size));
          const deltas = events.flatMap((event) => (event.type === 'text' ? [event.delta] : []));
          expect(error).toBeUndefined();
          expect(deltas).toEqual(words.filter((word) => word !== ''));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('keeps the arguments of a call whatever pieces they come in', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { minKeys: 1 }),
        sizes,
        fc.boolean(),
        (value, steps, repeat) => {
          const text = JSON.stringify(value);
          let body = '';
          for (let at = 0, i = 0; at < text.length; i++) {
            const size = steps[i % steps.length] ?? 1;
            const named = i === 0 || repeat ? { id: 'c1', name: 'add' } : {};
            const fn = { ...('name' in named && { name: named.name }), arguments: text.slice(at, at + size) };
            body += delta({ tool_calls: [{ index: 0, ...('id' in named && { id: named.id }), function: fn }] });
            at += size;
          }
          const ends = read([Buffer.from(body + delta({}, 'tool_calls') + DONE)]).events.filter(
            ({ type }) => type === 'tool_call_end',
          );
          expect(ends).toEqual([{ type: 'tool_call_end', index: 0, id: 'c1', name: 'add', arguments: text }]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('refuses a line that does not end, and a body that does not', () => {
    const long = inPieces(Buffer.from(`data: ${'x'.repeat(5_000)}`), 500);
    expect(read(long, { maxLine: 2_000 }).error).toMatchObject({
      code: 'too_large',
      message: expect.stringMatching(/line/),
    });
    const many = inPieces(Buffer.from(saying(...Array.from({ length: 100 }, () => 'word '))), 500);
    expect(read(many, { maxBytes: 3_000 }).error).toMatchObject({
      code: 'too_large',
      message: expect.stringMatching(/answer/),
    });
    const document = inPieces(Buffer.from(`{"choices":[${' '.repeat(10_000)}`), 500);
    expect(read(document, { maxBytes: 3_000 }).error).toMatchObject({ code: 'too_large' });
  });

  it('refuses more calls than any model means', () => {
    const calls = Array.from({ length: 129 }, (_, i) => ({
      index: i,
      id: `c${i}`,
      function: { name: 'add', arguments: '{}' },
    }));
    expect(read([Buffer.from(delta({ tool_calls: calls }) + DONE)]).error).toMatchObject({ code: 'too_large' });
  });

  it('tells a connection that was cut before the first event from an empty answer', () => {
    const stream = new ChatStream({ model: 'asked', emit: () => {} });
    expect(() => stream.end({ cut: true })).toThrow(expect.objectContaining({ code: 'unavailable' }));
  });
});
