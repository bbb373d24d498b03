import { toolResult } from '../../../src/tools/mcp/result.ts';

describe('the result of a call', () => {
  it('keeps every kind of block', () => {
    const content = [
      { type: 'text', text: 'a', annotations: { priority: 1 } },
      { type: 'image', data: 'aW1n', mimeType: 'image/png' },
      { type: 'audio', data: 'c291bmQ=', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///a', mimeType: 'text/plain', text: 'b' } },
      { type: 'resource', resource: { uri: 'file:///b', blob: 'Yg==' } },
      { type: 'resource_link', uri: 'file:///c', name: 'c', mimeType: 'text/csv', description: 'd' },
      { type: 'resource_link', uri: 'file:///d' },
    ];
    expect(toolResult({ content }).content).toEqual([
      { type: 'text', text: 'a' },
      { type: 'image', data: 'aW1n', mimeType: 'image/png' },
      { type: 'audio', data: 'c291bmQ=', mimeType: 'audio/wav' },
      { type: 'resource', uri: 'file:///a', mimeType: 'text/plain', text: 'b' },
      { type: 'resource', uri: 'file:///b', blob: 'Yg==' },
      { type: 'link', uri: 'file:///c', name: 'c', mimeType: 'text/csv' },
      { type: 'link', uri: 'file:///d', name: 'file:///d' },
    ]);
  });

  it.each([
    { type: 'hologram', depth: 3 },
    { type: 'text' },
    { type: 'image', data: 1 },
    { type: 'resource' },
    'bare',
    null,
  ])('shows the block %j, which is not known, as its JSON', (block) => {
    expect(toolResult({ content: [block] }).content).toEqual([{ type: 'text', text: JSON.stringify(block) }]);
  });

  it('keeps structured content, whatever it is, and the mark of an error', () => {
    expect(toolResult({ content: [], structuredContent: { a: [1] }, isError: true })).toEqual({
      content: [],
      structured: { a: [1] },
      isError: true,
    });
    expect(toolResult({ structuredContent: null })).toEqual({ content: [], structured: null, isError: false });
    expect(toolResult({ content: [], isError: 'yes' })).toEqual({ content: [], isError: false });
  });

  it.each([undefined, null, 1, [], {}, { content: 'text' }])('must be one: %j is not', (answer) => {
    expect(() => toolResult(answer)).toThrow('not the result of a tool');
  });
});
