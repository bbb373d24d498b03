import type { ToolContent, ToolResult } from '../../tools/tool.ts';
import type { Block } from '../environment.ts';

export const textBlock = (text: string): Block => ({ text, detail: null, type: 'text' });

/** How many bytes there are behind base64. */
const sizeOf = (data: string): number => Buffer.byteLength(data, 'base64');

const inBrackets = (...parts: readonly (string | undefined)[]): string =>
  `[${parts.filter((part) => part !== undefined).join(', ')}]`;

/** There are only texts and images: of everything else a model reads what it is. */
const blockOf = (content: ToolContent): Block => {
  switch (content.type) {
    case 'text':
      return textBlock(content.text);
    case 'image':
      return { data: content.data, mimeType: content.mimeType, detail: null, type: 'image' };
    case 'audio':
      return textBlock(inBrackets('audio', content.mimeType, `${sizeOf(content.data)} bytes`));
    case 'link':
      return textBlock(inBrackets(`link to ${content.uri}`, content.name, content.mimeType));
    case 'resource': {
      const { uri, mimeType, text, blob } = content;
      const size = blob === undefined ? undefined : `${sizeOf(blob)} bytes`;
      const head = inBrackets(`resource ${uri}`, mimeType, size);
      return textBlock(text === undefined ? head : `${head}\n${text}`);
    }
  }
};

/** What a model sees of a result. */
export const blocksOf = ({ content, structured }: ToolResult): readonly Block[] => {
  if (content.length === 0 && structured !== undefined) return [textBlock(JSON.stringify(structured))];
  return content.map(blockOf);
};

/** What a tool has said, without what we say about the rest. */
export const textOf = ({ content, structured }: ToolResult): string => {
  if (content.length === 0 && structured !== undefined) return JSON.stringify(structured);
  const texts = content.map((one) => (one.type === 'text' || one.type === 'resource' ? one.text : undefined));
  return texts.filter((text) => text !== undefined).join('\n');
};

/** Why a tool failed, by its own account. */
export const errorOf = (result: ToolResult): string => {
  const texts = blocksOf(result).map((block) => (block.type === 'text' ? block.text : '[image]'));
  return texts.join('\n').trim() || 'The tool failed and did not say why.';
};
