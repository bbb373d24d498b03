import { loadConfig } from '../config/config.ts';
import { type Progress, ToolError, type ToolResult } from '../tools/tool.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { UsageError } from './usage-error.ts';

export interface ToolsOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** How long MCP servers have to start. */
const START_MS = 30_000;

type Print = (line: string) => void;

/** Starts the configured tools in this process, and ends them. */
const withTools = async <T>(
  { config: file }: ToolsOptions,
  note: Print,
  use: (toolbox: Toolbox) => Promise<T>,
): Promise<T> => {
  const { config } = loadConfig({ flags: file === undefined ? {} : { config: file } });
  const toolbox = await Toolbox.open({ settings: config, env: process.env, warn: note });
  try {
    await toolbox.settled(START_MS);
    for (const { name, state, lastError } of toolbox.mcpStates()) {
      if (state !== 'ready') note(`The MCP server "${name}" is not ready: ${lastError ?? state}`);
    }
    return await use(toolbox);
  } finally {
    await toolbox.close();
  }
};

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';

export const listTools = (options: ToolsOptions, print: Print, note: Print): Promise<void> =>
  withTools(options, note, async ({ registry }) => {
    const tools = registry.list();
    if (options.json) {
      print(
        JSON.stringify(
          tools.map(({ name, fullName, tool: { description, inputSchema, source } }) => ({
            ...{ name, fullName, description, inputSchema, source },
          })),
          null,
          2,
        ),
      );
      return;
    }
    const width = Math.max(0, ...tools.map(({ name }) => name.length));
    for (const { name, tool } of tools) {
      print(
        `${name.padEnd(width)}  ${`${tool.source.kind} ${tool.source.name}`.padEnd(20)}  ${firstLine(tool.description)}`,
      );
    }
    note(tools.length === 0 ? 'No tools are configured.' : `${tools.length} tools.`);
  });

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('The input is not JSON.');
  }
};

const shown = ({ content }: ToolResult): string[] =>
  content.map((block) => {
    if (block.type === 'text') return block.text;
    if (block.type === 'link') return `[link ${block.uri}]`;
    if (block.type === 'resource') return block.text ?? `[resource ${block.uri}]`;
    return `[${block.type}, ${block.mimeType}, ${Buffer.byteLength(block.data, 'base64')} bytes]`;
  });

const progressLine = ({ progress, total, message }: Progress): string =>
  `${progress}${total === undefined ? '' : `/${total}`}${message === undefined ? '' : ` ${message}`}`;

/** True if the tool did what it should. */
export const callTool = (
  name: string,
  input: string,
  options: ToolsOptions,
  print: Print,
  note: Print,
): Promise<boolean> => {
  const value = parsed(input);
  return withTools(options, note, async ({ registry }) => {
    try {
      const progress = (update: Progress): void => note(progressLine(update));
      const result = await registry.call(name, value, { principal: 'cli', progress });
      for (const line of options.json ? [JSON.stringify(result, null, 2)] : shown(result)) print(line);
      return !result.isError;
    } catch (error) {
      if (error instanceof ToolError && (error.code === 'not_found' || error.code === 'invalid_input')) {
        throw new UsageError(error.message);
      }
      throw error;
    }
  });
};
