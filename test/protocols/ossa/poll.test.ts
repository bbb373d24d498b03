import { parseWait } from '../../../src/protocols/ossa/poll.ts';

describe('how long a poll waits', () => {
  it.each([
    [undefined, 25_000],
    ['0', 0],
    ['1.5', 1_500],
    ['25', 25_000],
    ['26', 25_000],
    ['99999', 25_000],
  ])('%s is %i ms', (text, ms) => expect(parseWait(text)).toBe(ms));

  it.each(['', '-1', 'x', '1e3', '1.2345', '999999'])('refuses %j', (text) => {
    expect(() => parseWait(text)).toThrow('wait must be a number of seconds.');
  });
});
