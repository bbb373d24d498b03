import { EventPipe } from '../../src/models/event-pipe.ts';
import type { ModelEvent } from '../../src/models/model.ts';
import { ModelError } from '../../src/models/model-error.ts';

const text = (delta: string): ModelEvent => ({ type: 'text', delta });

const open = (signal?: AbortSignal) => {
  const source = { start: jest.fn(), stop: jest.fn(), pause: jest.fn(), resume: jest.fn() };
  return { source, pipe: new EventPipe(source, signal) };
};

describe('a pipe of events', () => {
  it('begins when it is read, once', async () => {
    const { source, pipe } = open();
    expect(source.start).not.toHaveBeenCalled();
    const first = pipe.next();
    const second = pipe.next();
    pipe.push(text('a'));
    pipe.push(text('b'));
    expect([(await first).value, (await second).value]).toEqual([text('a'), text('b')]);
    expect(source.start).toHaveBeenCalledTimes(1);
  });

  it('gives out what waits before it ends or fails', async () => {
    for (const end of ['end', 'fail'] as const) {
      const { source, pipe } = open();
      const first = pipe.next();
      for (const word of ['a', 'b', 'c']) pipe.push(text(word));
      if (end === 'end') pipe.end();
      else pipe.fail(new ModelError('unavailable', 'gone'));
      expect([(await first).value, (await pipe.next()).value, (await pipe.next()).value]).toHaveLength(3);
      if (end === 'fail') await expect(pipe.next()).rejects.toThrow('gone');
      expect(await pipe.next()).toEqual({ done: true, value: undefined });
      expect(source.stop).not.toHaveBeenCalled();
    }
  });

  it('ends for all who wait', async () => {
    const { pipe } = open();
    const waiting = [pipe.next(), pipe.next()];
    pipe.fail(new ModelError('timeout', 'late'));
    await expect(waiting[0]).rejects.toThrow('late');
    expect(await waiting[1]).toEqual({ done: true, value: undefined });
  });

  it('takes nothing after its end', async () => {
    const { pipe } = open();
    const first = pipe.next();
    pipe.end();
    pipe.push(text('late'));
    pipe.fail(new Error('late'));
    expect(await first).toEqual({ done: true, value: undefined });
    expect(await pipe.next()).toEqual({ done: true, value: undefined });
  });

  it('holds its source back, and lets it go on when all is read', async () => {
    const { source, pipe } = open();
    const first = pipe.next();
    for (let i = 0; i <= 300; i++) pipe.push(text(String(i)));
    await first;
    expect(source.pause).toHaveBeenCalledTimes(1);
    for (let i = 1; i < 300; i++) expect((await pipe.next()).value).toEqual(text(String(i)));
    expect(source.resume).not.toHaveBeenCalled();
    expect((await pipe.next()).value).toEqual(text('300'));
    expect(source.resume).toHaveBeenCalledTimes(1);
  });

  it('keeps the order for a reader that is never level', async () => {
    const { pipe } = open();
    const first = pipe.next();
    pipe.push(text('0'));
    await first;
    for (let i = 1; i <= 100; i++) pipe.push(text(String(i)));
    for (let i = 1; i <= 2_000; i++) {
      pipe.push(text(String(100 + i)));
      expect((await pipe.next()).value).toEqual(text(String(i)));
    }
  });

  it('drops what waits when it is aborted, and stops its source', async () => {
    const stop = new AbortController();
    const { source, pipe } = open(stop.signal);
    const first = pipe.next();
    pipe.push(text('a'));
    pipe.push(text('b'));
    await first;
    stop.abort();
    expect(source.stop).toHaveBeenCalledTimes(1);
    await expect(pipe.next()).rejects.toMatchObject({ code: 'cancelled' });
    expect(await pipe.next()).toEqual({ done: true, value: undefined });
  });

  it('stops its source when it is left or thrown into', async () => {
    for (const leave of [
      (pipe: EventPipe) => pipe.return(),
      (pipe: EventPipe) => pipe.throw(new Error('mine')).catch(() => {}),
    ]) {
      const { source, pipe } = open();
      void pipe.next();
      await leave(pipe);
      await leave(pipe);
      expect(source.stop).toHaveBeenCalledTimes(1);
    }
  });

  it('shows nobody the text of an error that is a defect', async () => {
    const { pipe } = open();
    const first = pipe.next();
    pipe.fail(new TypeError('x of undefined'));
    await expect(first).rejects.toMatchObject({
      code: 'bad_answer',
      message: expect.not.stringContaining('undefined'),
    });
  });
});
