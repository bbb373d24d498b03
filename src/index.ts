// What modules of operators import from this package.
export { type GivenBlock, image, text } from './environments/blocks.ts';
export type { Block, Split, SplitType } from './environments/environment.ts';
export {
  defineReward,
  type RewardAnswer,
  type RewardFunction,
  type RewardOptions,
} from './environments/mcp/define-reward.ts';
export type { JudgedCall } from './environments/mcp/reward.ts';
export {
  type DefinedEnvironment,
  defineEnvironment,
  type EnvironmentAnswer,
  type EnvironmentDefinition,
  type EnvironmentTool,
  type EpisodeContext,
  type EpisodeEnd,
  type EpisodeStart,
  type GivenTool,
  type IndexedTasks,
} from './environments/module/define-environment.ts';
export type { GivenOutput } from './environments/output.ts';
export { defineTool, fail, type ToolAnswer, type ToolDefinition } from './tools/module/define-tool.ts';
export type { Progress, Schema, ToolContent, ToolContext, ToolResult } from './tools/tool.ts';
