import type { Schema } from '../tool.ts';

/** A tool as its server describes it. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
  readonly outputSchema?: Schema;
}

export interface Listing {
  readonly tools: readonly ListedTool[];
  /** Parts of sentences about what was left out. */
  readonly warnings: readonly string[];
}

/** Gives one page: the first without a cursor. */
export type Page = (cursor: string | undefined) => Promise<unknown>;

export const MAX_TOOLS = 1_000;
const MAX_PAGES = 200;
const TOO_MANY = `lists more than ${MAX_TOOLS} tools: the rest is left out`;
const LONGEST_NAME = 256;
const LONGEST_DESCRIPTION = 100_000;

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const toolOf = (entry: unknown): ListedTool | undefined => {
  if (!isFields(entry)) return undefined;
  const { name, title, description, inputSchema, outputSchema } = entry;
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) return undefined;
  const words = [description, title, ''].find((text) => typeof text === 'string') as string;
  return {
    name,
    description: words.slice(0, LONGEST_DESCRIPTION),
    inputSchema: isFields(inputSchema) ? inputSchema : { type: 'object' },
    ...(isFields(outputSchema) && { outputSchema }),
  };
};

/** All tools of a server, over all pages. What is wrong with a part of them does not hide the others. */
export const listTools = async (page: Page): Promise<Listing> => {
  const tools = new Map<string, ListedTool>();
  const warnings = new Set<string>();
  const twice = new Set<string>();
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; ; pages++) {
    if (pages === MAX_PAGES) {
      warnings.add(`lists its tools on more than ${MAX_PAGES} pages: the rest is left out`);
      break;
    }
    const answer = await page(cursor);
    const entries = isFields(answer) && Array.isArray(answer.tools) ? answer.tools : [];
    for (const entry of entries) {
      const tool = toolOf(entry);
      if (!tool) warnings.add('lists a tool without a usable name, which is left out');
      else if (tools.has(tool.name)) twice.add(`lists "${tool.name}" twice: the first one counts`);
      else if (tools.size === MAX_TOOLS) warnings.add(TOO_MANY);
      else tools.set(tool.name, tool);
    }
    const next = isFields(answer) ? answer.nextCursor : undefined;
    if (typeof next !== 'string') break;
    if (tools.size === MAX_TOOLS) {
      warnings.add(TOO_MANY);
      break;
    }
    if (seen.has(next)) {
      warnings.add('lists its tools in a circle of pages: every page is read once');
      twice.clear(); // the first page may have been read again under the name of its cursor
      break;
    }
    seen.add(next);
    cursor = next;
  }
  return { tools: [...tools.values()], warnings: [...warnings, ...twice] };
};
