import { Expression } from '../../src/manifests/expression.ts';

describe('a condition over an event', () => {
  const data = { kind: 'news', n: 7, tags: ['a', 'b'], deep: { ok: true } };
  it.each([
    ['data.kind == "news"', true],
    ['data.kind == "gossip"', false],
    ['data.n > 5 && data.n < 10', true],
    ['size(data.tags) > 1 || false', true],
    ['"a" in data.tags', true],
    ['data.deep.ok', true],
    ['channel.startsWith("content.")', true],
    ['has(data.missing)', false],
    ['data.missing == 1', false],
    ['data.kind > 1', false],
    ['data.n', false],
    ['data.constructor == 1', false],
  ])('%s: %s', (text, holds) => {
    expect(new Expression(text).holds({ channel: 'content.published', data })).toBe(holds);
  });

  it.each([
    ['data.kind ==', 'Unexpected token'],
    ['data.kind.matches("a+")', 'matches() cannot be used'],
    ['size([data.kind.matches("(a+)+$")]) > 0', 'matches() cannot be used'],
    ['nonsense(1)', 'nonsense'],
    [`${'('.repeat(100)}1${')'.repeat(100)}`, 'cannot be understood'],
    [Array(600).fill('1').join('+'), 'cannot be understood'],
  ])('refuses %s', (text, message) => expect(() => new Expression(text)).toThrow(message));
});
