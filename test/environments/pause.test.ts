import { getEventListeners } from 'node:events';
import { pause } from '../../src/environments/pause.ts';

const HOUR_MS = 3_600_000;

describe('a pause', () => {
  it('ends with the reason of its signal, before its time is over', async () => {
    const stop = new AbortController();
    const paused = pause(HOUR_MS, stop.signal);
    stop.abort(new Error('enough'));
    await expect(paused).rejects.toThrow('enough');
    await expect(pause(HOUR_MS, stop.signal)).rejects.toThrow('enough');
  });

  it('leaves nothing behind on a signal that lives longer', async () => {
    const { signal } = new AbortController();
    await pause(0, signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
