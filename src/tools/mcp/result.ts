import { type ToolContent, ToolError, type ToolResult } from '../tool.ts';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const mimeTypeOf = ({ mimeType }: Fields): { mimeType?: string } => (isText(mimeType) ? { mimeType } : {});

/** A block that is known and whole. */
const known = (block: Fields): ToolContent | undefined => {
  const { type, text, data, mimeType, resource, uri, name } = block;
  if (type === 'text' && isText(text)) return { type, text };
  if ((type === 'image' || type === 'audio') && isText(data) && isText(mimeType)) return { type, data, mimeType };
  if (type === 'resource_link' && isText(uri)) {
    return { type: 'link', uri, name: isText(name) ? name : uri, ...mimeTypeOf(block) };
  }
  if (type === 'resource' && isFields(resource) && isText(resource.uri)) {
    const content = isText(resource.text)
      ? { text: resource.text }
      : isText(resource.blob)
        ? { blob: resource.blob }
        : {};
    return { type, uri: resource.uri, ...mimeTypeOf(resource), ...content };
  }
  return undefined;
};

const blockOf = (block: unknown): ToolContent =>
  // Kept for whoever reads it: a new kind of block is no reason to lose the work.
  (isFields(block) ? known(block) : undefined) ?? { type: 'text', text: JSON.stringify(block) };

/** What a server has answered to a call, in our words. Nothing of it is dropped but annotations. */
export const toolResult = (answer: unknown): ToolResult => {
  const { content, structuredContent, isError } = isFields(answer) ? answer : ({} as Fields);
  if (!Array.isArray(content) && structuredContent === undefined) {
    throw new ToolError('failed', 'The MCP server has answered with something that is not the result of a tool.');
  }
  return {
    content: Array.isArray(content) ? content.map(blockOf) : [],
    ...(structuredContent !== undefined && { structured: structuredContent }),
    isError: isError === true,
  };
};
