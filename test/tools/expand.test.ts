import { expander } from '../../src/tools/expand.ts';

describe('variables of the environment in a text', () => {
  const expand = expander({ A: 'one', EMPTY: '' });
  it.each([
    ['Bearer ${A}', 'Bearer one'],
    ['${A}${A}', 'oneone'],
    ['${B:-two}', 'two'],
    ['${EMPTY:-two}', 'two'],
    ['${B:-}', ''],
    ['$A and ${', '$A and ${'],
  ])('%s is %s', (text, expected) => expect(expand(text)).toBe(expected));

  it('tells which one is missing', () => {
    expect(() => expand('x ${B}')).toThrow('The environment variable B is not set.');
    expect(() => expand('x ${EMPTY}')).toThrow('EMPTY');
  });
});
