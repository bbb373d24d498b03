import { defineTool, fail, isDefinedTool, resultOfAnswer } from '../../../src/tools/module/define-tool.ts';

describe('a tool of a module', () => {
  it('is known by its mark', () => {
    const tool = defineTool({ name: 'a', description: 'b', run: () => 'c' });
    expect(isDefinedTool(tool)).toBe(true);
    expect(isDefinedTool({ ...tool })).toBe(true);
    expect(isDefinedTool({ name: 'a', description: 'b', run: () => 'c' })).toBe(false);
    expect(isDefinedTool(null)).toBe(false);
  });

  it.each([
    ['text', { content: [{ type: 'text', text: 'text' }], isError: false }],
    [7, { content: [{ type: 'text', text: '7' }], isError: false, structured: 7 }],
    [{ a: [1] }, { content: [{ type: 'text', text: '{"a":[1]}' }], isError: false, structured: { a: [1] } }],
    [undefined, { content: [{ type: 'text', text: '' }], isError: false }],
    [fail('no'), { content: [{ type: 'text', text: 'no' }], isError: true }],
    [
      { content: [{ type: 'image', data: 'x', mimeType: 'image/png' }] },
      { content: [{ type: 'image', data: 'x', mimeType: 'image/png' }], isError: false },
    ],
  ])('may answer %j', (answer, expected) => expect(resultOfAnswer(answer)).toEqual(expected));
});
