import { healthOf } from '../../src/agents/agent-health.ts';
import type { Agent } from '../../src/manifests/agent.ts';

describe('the health of an agent', () => {
  const of = (bindings: readonly (string | undefined)[], failing = false): string =>
    healthOf(
      {
        capabilities: bindings.map((tool, i) => ({ name: `c${i}`, scopes: [], ...(tool && { binding: { tool } }) })),
      } as unknown as Agent,
      { hasTool: (name) => name === 'there', isFailing: () => failing },
    );

  it.each([
    [[], false, 'healthy'],
    [['there'], true, 'healthy'],
    [['there', 'gone'], false, 'degraded'],
    [['gone'], false, 'unhealthy'],
    [[undefined], false, 'healthy'],
    [[undefined], true, 'unhealthy'],
    [[undefined, 'there'], true, 'degraded'],
  ])('with %j, its backend failing: %s, is %s', (bindings, failing, health) =>
    expect(of(bindings, failing)).toBe(health),
  );
});
