import {
  type Schema,
  type Tool,
  type ToolContext,
  type ToolProvider,
  type ToolResult,
  textResult,
} from '../../src/tools/tool.ts';

export interface ToolMaking extends Partial<Omit<Tool, 'call'>> {
  readonly call?: (input: Readonly<Record<string, unknown>>, context: ToolContext) => Promise<ToolResult>;
}

/** A tool that says what it was given, unless it is told to do something else. */
export const makeTool = (name: string, more: ToolMaking = {}): Tool => ({
  name,
  description: `the tool ${name}`,
  inputSchema: { type: 'object' } satisfies Schema,
  source: { kind: 'module', name: 'test' },
  timeoutMs: 0,
  concurrency: 0,
  approval: 'never',
  call: async (input) => textResult(`${name} ${JSON.stringify(input)}`),
  ...more,
});

export class TestProvider implements ToolProvider {
  readonly source: ToolProvider['source'];
  readonly concurrency: number;
  private list: readonly Tool[];
  private changed: () => void = () => {};

  constructor(name: string, list: readonly Tool[], concurrency = 0) {
    this.source = { kind: 'module', name };
    this.list = list;
    this.concurrency = concurrency;
  }

  tools(): readonly Tool[] {
    return this.list;
  }

  onChange(changed: () => void): void {
    this.changed = changed;
  }

  become(list: readonly Tool[]): void {
    this.list = list;
    this.changed();
  }
}

export const textOf = (result: ToolResult): string =>
  result.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
