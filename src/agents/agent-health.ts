import type { Agent } from '../manifests/agent.ts';

export type AgentHealth = 'healthy' | 'degraded' | 'unhealthy';

export interface HealthFacts {
  /** Whether a tool can be called. */
  readonly hasTool: (name: string) => boolean;
  /** Whether the backend that would answer for a model failed the last time. */
  readonly isFailing: (model: string | undefined) => boolean;
}

/** Of its bindings those that lead somewhere; and whether the model behind the rest answers. */
export const healthOf = ({ capabilities, llm }: Agent, { hasTool, isFailing }: HealthFacts): AgentHealth => {
  if (capabilities.length === 0) return 'healthy';
  const working = capabilities.filter(({ binding, name }) => {
    if (!binding) return !isFailing(llm?.model);
    const tool = binding.tool ?? binding.handler ?? name;
    return hasTool(binding.mcpServer === undefined ? tool : `${binding.mcpServer}.${tool}`);
  });
  if (working.length === capabilities.length) return 'healthy';
  return working.length > 0 ? 'degraded' : 'unhealthy';
};
