import { Fifo } from '../../src/jobs/fifo.ts';

describe('what comes first', () => {
  it('leaves first, however many came and went before', () => {
    const fifo = new Fifo<number>();
    const left: (number | undefined)[] = [];
    for (let i = 0; i < 10_000; i++) {
      fifo.push(i);
      if (i % 3 === 0) left.push(fifo.shift());
    }
    expect(fifo.peek()).toBe(left.length);
    expect(fifo.size).toBe(10_000 - left.length);
    while (fifo.size > 0) left.push(fifo.shift());
    expect(left).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
    expect([fifo.peek(), fifo.shift(), fifo.size]).toEqual([undefined, undefined, 0]);
    fifo.push(1);
    expect(fifo.shift()).toBe(1);
  });
});
