import { parseTraceparent } from '../../src/ops/traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

describe('a traceparent', () => {
  it('is taken apart', () => {
    expect(parseTraceparent(`00-${TRACE}-${PARENT}-01`)).toEqual({
      traceId: TRACE,
      parentId: PARENT,
      sampled: true,
      text: `00-${TRACE}-${PARENT}-01`,
    });
    expect(parseTraceparent(`00-${TRACE}-${PARENT}-00`)?.sampled).toBe(false);
  });

  it('of a later version is read as far as it is known, and handed on as version 00', () => {
    const text = `00-${TRACE}-${PARENT}-01`;
    expect(parseTraceparent(`cc-${TRACE}-${PARENT}-01`)?.text).toBe(text);
    expect(parseTraceparent(`cc-${TRACE}-${PARENT}-01-what-the-future-brings`)?.text).toBe(text);
    expect(parseTraceparent(`01-${TRACE}-${PARENT}-ff`)?.text).toBe(text);
  });

  it.each([
    undefined,
    '',
    'nonsense',
    `ff-${TRACE}-${PARENT}-01`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-01-more`,
    `00-${TRACE}-${PARENT}-01-`,
    `cc-${TRACE}-${PARENT}-01.more`,
    `00-${TRACE}-${PARENT}-1`,
    `00-${TRACE}-${PARENT}`,
    `0-${TRACE}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
    `cc-${TRACE}-${PARENT}-01-${'x'.repeat(1000)}`,
  ])('is not %s', (header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });
});
