import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../../src/manifests/agent.ts';
import { Expression } from '../../src/manifests/expression.ts';
import { agentOf, agentWith, judged } from './judged.ts';

const SEED = join(__dirname, '../fixtures/seeds/event-streamer.ossa.yaml');

describe('an agent', () => {
  it('is read from the manifest of the specification', () => {
    const { manifests, told } = judged(readFileSync(SEED));
    expect(told).toEqual([]);
    expect(manifests).toEqual([
      expect.objectContaining({
        kind: 'Agent',
        name: 'event-streamer',
        uri: 'agent://default/event-streamer',
        version: '1.0.0',
        role: 'Real-time event broadcaster',
        sse: {
          enabled: true,
          endpoint: '/events',
          channels: ['content.published', 'agent.status', 'task.progress'],
          heartbeatSeconds: 30,
          retryMs: 5000,
          buffer: { events: 100, ageMs: 300_000 },
        },
        capabilities: [
          expect.objectContaining({ name: 'stream_events', description: 'Stream real-time events to clients' }),
        ],
      }),
    ]);
  });

  it('needs next to nothing', () => {
    expect(agentOf('{}')).toMatchObject({
      name: 'worker',
      uri: 'agent://default/worker',
      sse: { enabled: false, endpoint: '/events', channels: [] },
      publishes: [],
      subscribes: [],
      capabilities: [],
      tools: [],
      approval: { always: false, actions: [], triggers: [] },
    });
    expect(agentOf('{}')).not.toHaveProperty('llm');
    expect(agentOf('{}')).not.toHaveProperty('rateLimit');
  });

  it('has its own namespace, or that of the gateway', () => {
    expect(agentOf('{}', '', { namespace: 'example.com' }).uri).toBe('agent://example.com/worker');
    const text = agentWith('{}').replace('name: worker', 'name: worker\n  namespace: team.blue');
    expect((judged(text).manifests[0] as Agent).uri).toBe('agent://team.blue/worker');
  });

  it.each([
    ['transport: { sse: {} }', true],
    ['transport: { sse: { enabled: true } }', true],
    ['transport: { sse: { enabled: false } }', false],
    ['transport: {}', false],
  ])('is served if it has the block and does not say otherwise: %s', (spec, enabled) => {
    expect(agentOf(spec).sse.enabled).toBe(enabled);
  });

  it('takes its system prompt before its role as instructions', () => {
    expect(agentOf('role: a').instructions).toBe('a');
    expect(agentOf('role: a\nprompts: { system: { template: b } }')).toMatchObject({ role: 'a', instructions: 'b' });
  });

  it('says what it publishes and what it follows', () => {
    const agent = agentOf(`
capabilities: [handle]
messaging:
  publishes:
    - channel: a.done
      description: Done.
      schema: { type: object, required: [id] }
  subscribes:
    - channel: 'a.#'
      handler: handle
      maxConcurrency: 3
      filter: { expression: data.x > 1, fields: { kind: urgent } }
`);
    expect(agent.publishes).toEqual([
      expect.objectContaining({
        channel: 'a.done',
        description: 'Done.',
        schema: { type: 'object', required: ['id'] },
      }),
    ]);
    expect(agent.publishes[0]?.check?.fault({})).toBe('id is missing.');
    expect(agent.subscribes).toEqual([
      {
        ...{ channel: 'a.#', handler: 'handle', maxConcurrency: 3 },
        filter: { expression: 'data.x > 1', condition: expect.any(Expression), fields: { kind: 'urgent' } },
      },
    ]);
  });

  it('has limits', () => {
    expect(
      agentOf(`
safety: { rate_limiting: { requests_per_minute: 60, burst_limit: 5 } }
constraints: { performance: { maxConcurrentRequests: 2, timeoutSeconds: 1.5, maxLatencySeconds: 9 } }
`),
    ).toMatchObject({
      ...{ rateLimit: { requestsPerMinute: 60, burst: 5 }, maxConcurrentRequests: 2 },
      ...{ timeoutSeconds: 1.5, maxLatencySeconds: 9 },
    });
    expect(agentOf('safety: { rate_limiting: { enabled: false, requests_per_minute: 60 } }')).not.toHaveProperty(
      'rateLimit',
    );
  });

  it('has access and approvals', () => {
    const agent = agentOf(`
access: { tier: tier_2_write_limited, permissions: [write_docs], requires_approval: true, approval_chain: elevated }
autonomy: { approval_required: [deploy] }
safety: { human_in_loop: { triggers: [money] } }
`);
    expect(agent.access).toEqual({ tier: 'tier_2_write_limited', permissions: ['write_docs'], prohibited: [] });
    expect(agent.approval).toEqual({ always: true, actions: ['deploy'], chain: 'elevated', triggers: ['money'] });
  });

  it('lists tools without what opens them', () => {
    const agent = agentOf(`
tools:
  - { type: mcp, name: files, server: filesystem, auth: { type: bearer, token: hush }, capabilities: [read_file] }
  - { type: http, name: search, endpoint: 'https://user:hush@example.com/search?key=hush', config: { apiKey: hush } }
  - { type: mcp, server: { url: 'https://hush@example.com/mcp', headers: { authorization: hush } } }
  - { name: odd }
`);
    expect(agent.tools).toEqual([
      { type: 'mcp', name: 'files', source: 'filesystem', capabilities: ['read_file'] },
      { type: 'http', name: 'search', source: 'https://example.com/search', capabilities: [] },
      { type: 'mcp', source: 'https://example.com/mcp', capabilities: [] },
      { name: 'odd', capabilities: [] },
    ]);
    expect(JSON.stringify(agent)).not.toContain('hush');
  });
});
