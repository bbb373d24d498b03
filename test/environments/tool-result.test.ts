import { blocksOfResult, errorOfResult, textOfResult } from '../../src/environments/tool-result.ts';
import type { ToolContent, ToolResult } from '../../src/tools/tool.ts';

const result = (...content: ToolContent[]): ToolResult => ({ content, isError: false });
const data = Buffer.from('hello').toString('base64');

describe('the result of a tool', () => {
  it.each<[ToolContent, string]>([
    [{ type: 'text', text: 'hello' }, 'hello'],
    [{ type: 'audio', data, mimeType: 'audio/wav' }, '[audio, audio/wav, 5 bytes]'],
    [{ type: 'link', uri: 'demo://1', name: 'One', mimeType: 'text/plain' }, '[link to demo://1, One, text/plain]'],
    [{ type: 'link', uri: 'demo://1', name: 'One' }, '[link to demo://1, One]'],
    [{ type: 'resource', uri: 'demo://1', text: 'inside' }, '[resource demo://1]\ninside'],
    [{ type: 'resource', uri: 'demo://1', blob: data, mimeType: 'a/b' }, '[resource demo://1, a/b, 5 bytes]'],
  ])('%j is read as text', (content, text) => {
    expect(blocksOfResult(result(content))).toEqual([{ text, detail: null, type: 'text' }]);
  });

  it('keeps images, and the order', () => {
    const image = { type: 'image', data, mimeType: 'image/png' } as const;
    const blocks = blocksOfResult(result(image, { type: 'text', text: 'a' }));
    expect(blocks).toEqual([
      { ...image, detail: null },
      { text: 'a', detail: null, type: 'text' },
    ]);
  });

  it('that is only structured is shown as JSON', () => {
    const structured: ToolResult = { content: [], structured: { a: 1 }, isError: false };
    expect(blocksOfResult(structured)).toEqual([{ text: '{"a":1}', detail: null, type: 'text' }]);
    expect(textOfResult(structured)).toBe('{"a":1}');
    expect(blocksOfResult(result())).toEqual([]);
  });

  it('is for rules what the tool has said, and nothing of ours', () => {
    const all = result(
      { type: 'text', text: 'a' },
      { type: 'audio', data, mimeType: 'audio/wav' },
      { type: 'resource', uri: 'demo://1', text: 'b' },
      { type: 'resource', uri: 'demo://2', blob: data },
    );
    expect(textOfResult(all)).toBe('a\nb');
  });

  it('that is an error always has words', () => {
    expect(errorOfResult(result({ type: 'text', text: 'a' }, { type: 'text', text: 'b' }))).toBe('a\nb');
    expect(errorOfResult(result({ type: 'image', data, mimeType: 'image/png' }))).toBe('[image]');
    expect(errorOfResult(result())).toBe('The tool failed and did not say why.');
  });
});
