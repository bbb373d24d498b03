import { AgentUnusable, modelsOf, toolsOf } from '../../src/manifests/variables.ts';
import { agentOf } from './judged.ts';

const agent = agentOf(`
llm:
  provider: \${P:-openai}
  model: \${M}
  temperature: \${T:-0.5}
  max_tokens: \${TOKENS:-100}
  fallback_models:
    - { provider: ollama, model: 'llama-\${SIZE:-small}' }
tools:
  - { type: mcp, name: files, server: '\${SERVER}' }
`);

describe('variables of the environment', () => {
  it('are put in when an agent is used', () => {
    expect(modelsOf(agent, { M: 'gpt', T: '1.5' })).toEqual([
      { provider: 'openai', model: 'gpt', temperature: 1.5, maxTokens: 100 },
      { provider: 'ollama', model: 'llama-small', maxTokens: 100 },
    ]);
    expect(toolsOf(agent, { SERVER: 'disk' })).toEqual([
      { type: 'mcp', name: 'files', source: 'disk', capabilities: [] },
    ]);
  });

  it('are missed only then, by name', () => {
    expect(() => modelsOf(agent, {})).toThrow(
      new AgentUnusable(
        'The agent worker cannot be used: llm.model needs more: the environment variable M is not set.',
      ),
    );
    expect(() => toolsOf(agent, {})).toThrow('the environment variable SERVER is not set');
  });

  it.each([
    [{ M: 'm', T: 'warm' }, 'llm.temperature cannot be "warm" (from ${T:-0.5})'],
    [{ M: 'm', T: '3' }, 'llm.temperature cannot be "3"'],
    [{ M: 'm', TOKENS: '1.5' }, 'llm.maxTokens cannot be "1.5"'],
  ])('must be numbers where numbers belong: %j', (env, message) => {
    expect(() => modelsOf(agent, env)).toThrow(message);
  });

  it('are not looked for where nothing is said', () => {
    expect(modelsOf(agentOf('{}'), {})).toEqual([]);
    expect(modelsOf(agentOf('llm: { provider: a, model: b, temperature: 0 }'), {})).toEqual([
      { provider: 'a', model: 'b', temperature: 0 },
    ]);
  });
});
