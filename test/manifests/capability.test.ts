import { agentOf } from './judged.ts';

const names = (spec: string): string[] => agentOf(spec).capabilities.map(({ name }) => name);

describe('capabilities', () => {
  it.each([
    ['names', 'capabilities: [a_b, code.complete, schema-check]', ['a_b', 'code.complete', 'schema-check']],
    ['objects', 'capabilities: [{ name: a }, { name: b, version: "1", retry_policy: {} }]', ['a', 'b']],
    ['names and objects', 'capabilities: [a, { name: b }]', ['a', 'b']],
    ['a map', 'capabilities: { a: { description: A. }, b: B., c: }', ['a', 'b', 'c']],
    ['tools', 'tools: [{ name: t, type: mcp, capabilities: [a, { name: b }] }]', ['a', 'b']],
    ['functions', 'functions: [{ name: a, description: A., parameters: {} }]', ['a']],
    ['commands', 'messaging: { commands: [{ name: a }] }', ['a']],
  ])('may be written as %s', (_, spec, expected) => {
    expect(names(spec)).toEqual(expected);
  });

  it.each([
    ['a description of a map', 'capabilities: { a: Says it. }', { description: 'Says it.' }],
    [
      'input_schema',
      'capabilities: [{ name: a, input_schema: { type: string } }]',
      { inputSchema: { type: 'string' } },
    ],
    ['inputSchema', 'capabilities: [{ name: a, inputSchema: { type: string } }]', { inputSchema: { type: 'string' } }],
    ['input', 'capabilities: { a: { input: { type: string } } }', { inputSchema: { type: 'string' } }],
    [
      'output_schema',
      'capabilities: [{ name: a, output_schema: { type: string } }]',
      { outputSchema: { type: 'string' } },
    ],
    ['parameters', 'functions: [{ name: a, parameters: { type: object } }]', { inputSchema: { type: 'object' } }],
    [
      'returns',
      'functions: [{ name: a, parameters: {}, returns: { type: number } }]',
      { outputSchema: { type: 'number' } },
    ],
    ['a command', 'messaging: { commands: [{ name: a, input_schema: {}, timeoutSeconds: 9 }] }', { timeoutSeconds: 9 }],
    ['timeout_seconds', 'capabilities: [{ name: a, timeout_seconds: 2.5 }]', { timeoutSeconds: 2.5 }],
    ['scopes', 'capabilities: [{ name: a, scopes: [read, write:docs] }]', { scopes: ['read', 'write:docs'] }],
    ['the tool', 'tools: [{ name: t, capabilities: [a] }]', { source: 'tool', tool: 't' }],
  ])('have what is written there: %s', (_, spec, expected) => {
    expect(agentOf(spec).capabilities[0]).toMatchObject(expected);
  });

  it('check their input', () => {
    const [a] = agentOf('capabilities: [{ name: a, input_schema: { type: object, required: [x] } }]').capabilities;
    expect(a?.inputCheck?.fault({})).toBe('x is missing.');
    expect(a?.inputCheck?.fault({ x: 1 })).toBeUndefined();
  });

  it.each([
    ['before', 'capabilities: [a]\ntools: [{ name: t, capabilities: [{ name: a, description: A. }] }]'],
    ['behind', 'capabilities: [{ name: a, description: A. }]\ntools: [{ name: t, capabilities: [a] }]'],
  ])('may be only named in one place and described in another: %s', (_, spec) => {
    expect(agentOf(spec).capabilities).toEqual([expect.objectContaining({ name: 'a', description: 'A.', tool: 't' })]);
  });

  it('are bound to tools beside the spec', () => {
    const { capabilities } = agentOf(
      'capabilities: [a, b]',
      'runtime:\n  bindings:\n    a: { mcp_server: files, tool: read, handler: h, config: { x: 1 } }\n',
    );
    expect(capabilities[0]?.binding).toEqual({ mcpServer: 'files', tool: 'read', handler: 'h', config: { x: 1 } });
    expect(capabilities[1]).not.toHaveProperty('binding');
  });
});
