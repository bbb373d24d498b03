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

describe('a value of an expression', () => {
  const variables = { tool: 'string', input: 'map', calls: 'int', none: 'dyn' } as const;
  const context = { tool: 'submit', input: { n: 3 }, calls: 7n, none: null };

  it.each([
    ['calls / 2', 3],
    ['tool == "submit" ? 1 : 0', 1],
    ['input.n + 0.5', 3.5],
    ['double(calls) / 2.0', 3.5],
    ['tool == "other" ? 1.0 : none', null],
    ['tool + "!"', 'submit!'],
  ])('%s: %s', (text, value) => expect(new Expression(text, variables).value(context)).toBe(value));

  it('is one sentence if it cannot be had', () => {
    const missing = new Expression('input.missing', variables);
    expect(() => missing.value(context)).toThrow(/^The expression cannot be evaluated: No such key: missing\.$/);
  });

  it('cannot be of a variable that does not exist, where they are named', () => {
    expect(() => new Expression('toll == "submit"', variables)).toThrow(
      /^The expression cannot be understood: Unknown variable: toll\.$/,
    );
  });

  it('has a type, as far as that is known', () => {
    expect(['calls > 1', 'calls', '1.0', 'input.n', '"a"'].map((text) => new Expression(text, variables).type)).toEqual(
      ['bool', 'int', 'double', 'dyn', 'string'],
    );
  });

  it('knows the variables it speaks of, and not the fields and texts that are called the same', () => {
    const mentions = (text: string): boolean => new Expression(text).mentions('failed');
    expect(['failed', 'size([!failed]) > 0', 'a ? [1] : [failed ? 1 : 2]'].every(mentions)).toBe(true);
    expect(['input.failed', '"failed" == tool', '1 > 0'].some(mentions)).toBe(false);
  });
});
