// What modules of operators import from this package.
export { defineTool, fail, type ToolAnswer, type ToolDefinition } from './tools/module/define-tool.ts';
export type { Progress, Schema, ToolContent, ToolContext, ToolResult } from './tools/tool.ts';
