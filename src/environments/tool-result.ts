import type { ToolContent, ToolResult } from '../tools/tool.ts';
import { image, text } from './blocks.ts';
import type { Block } from './environment.ts';
import { NO_WORDS } from './outcome.ts';

/** How many bytes there are behind base64. */
const sizeOf = (data: string): number => Buffer.byteLength(data, 'base64');

const inBrackets = (...parts: readonly (string | undefined)[]): string =>
  `[${parts.filter((part) => part !== undefined).join(', ')}]`;

/** There are only texts and images: of everything else a model reads what it is. */
const blockOf = (content: ToolContent): Block => {
  switch (content.type) {
    case 'text':
      return text(content.text);
    case 'image':
      return image(content.data, content.mimeType);
    case 'audio':
      return text(inBrackets('audio', content.mimeType, `${sizeOf(content.data)} bytes`));
    case 'link':
      return text(inBrackets(`link to ${content.uri}`, content.name, content.mimeType));
    case 'resource': {
      const { uri, mimeType, text: inside, blob } = content;
      const size = blob === undefined ? undefined : `${sizeOf(blob)} bytes`;
      const head = inBrackets(`resource ${uri}`, mimeType, size);
      return text(inside === undefined ? head : `${head}\n${inside}`);
    }
  }
};

/** What a model sees of a result. */
export const blocksOfResult = ({ content, structured }: ToolResult): readonly Block[] => {
  if (content.length === 0 && structured !== undefined) return [text(JSON.stringify(structured))];
  return content.map(blockOf);
};

/** What a tool has said, without what we say about the rest. */
export const textOfResult = ({ content, structured }: ToolResult): string => {
  if (content.length === 0 && structured !== undefined) return JSON.stringify(structured);
  const texts = content.map((one) => (one.type === 'text' || one.type === 'resource' ? one.text : undefined));
  return texts.filter((one) => one !== undefined).join('\n');
};

/** Why a tool failed, by its own account. */
export const errorOfResult = (result: ToolResult): string => {
  const texts = blocksOfResult(result).map((block) => (block.type === 'text' ? block.text : '[image]'));
  return texts.join('\n').trim() || NO_WORDS;
};
