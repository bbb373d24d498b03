// What modules of operators import from this package.
export {
  defineReward,
  type RewardAnswer,
  type RewardFunction,
  type RewardOptions,
} from './environments/mcp/define-reward.ts';
export type { JudgedCall } from './environments/mcp/reward.ts';
export { defineTool, fail, type ToolAnswer, type ToolDefinition } from './tools/module/define-tool.ts';
export type { Progress, Schema, ToolContent, ToolContext, ToolResult } from './tools/tool.ts';
