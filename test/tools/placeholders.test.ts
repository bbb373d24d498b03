import { fill } from '../../src/tools/placeholders.ts';

describe('variables of the environment in a text', () => {
  const expand = (text: string): string => fill(text, { A: 'one', EMPTY: '' }).text;
  it.each([
    ['Bearer ${A}', 'Bearer one'],
    ['${A}${A}', 'oneone'],
    ['${B:-two}', 'two'],
    ['${EMPTY:-two}', 'two'],
    ['${B:-}', ''],
    ['$A and ${', '$A and ${'],
  ])('%s is %s', (text, expected) => expect(expand(text)).toBe(expected));

  it('tells which one is missing', () => {
    expect(() => expand('x ${B}')).toThrow('the environment variable B is not set');
  });
});
