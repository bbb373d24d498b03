// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how the file of servers names variables
import { parseMcpServers, readMcpServers } from '../../../src/tools/mcp/config.ts';
import { makeDirectory } from '../../support/directory.ts';
import { configured } from './room.ts';

const common = { timeoutMs: undefined, concurrency: 0, approval: 'never', tools: undefined, secrets: [] };

describe('the file of MCP servers', () => {
  it('describes servers of all three transports', () => {
    const { servers, problems, warnings } = configured({
      files: { command: 'npx', args: ['-y', 'server'], env: { LEVEL: 'high' }, cwd: '/srv' },
      plain: { type: 'stdio', command: 'server' },
      remote: { type: 'streamable-http', url: 'https://example.com/mcp', headers: { 'X-Team': 'blue' } },
      guessed: { url: 'http://localhost:1/mcp' },
      short: { type: 'http', url: 'http://localhost:2/mcp' },
      old: { type: 'sse', url: 'http://localhost:3/sse' },
      limited: { command: 'a', timeoutSeconds: 1.5, concurrency: 2, approval: 'always', tools: ['one'] },
      off: { command: 'a', disabled: true },
    });
    expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
    const stdio = { ...common, transport: 'stdio', args: [], env: {}, cwd: undefined };
    const http = { ...common, transport: 'streamable-http', headers: {} };
    expect(servers).toEqual([
      {
        ...stdio,
        name: 'files',
        command: 'npx',
        args: ['-y', 'server'],
        env: { LEVEL: 'high' },
        cwd: '/srv',
        secrets: ['high'],
      },
      { ...stdio, name: 'plain', command: 'server' },
      { ...http, name: 'remote', url: 'https://example.com/mcp', headers: { 'X-Team': 'blue' }, secrets: ['blue'] },
      { ...http, name: 'guessed', url: 'http://localhost:1/mcp' },
      { ...http, name: 'short', url: 'http://localhost:2/mcp' },
      { ...http, transport: 'sse', name: 'old', url: 'http://localhost:3/sse' },
      { ...stdio, name: 'limited', command: 'a', timeoutMs: 1_500, concurrency: 2, approval: 'always', tools: ['one'] },
    ]);
  });

  it('takes values from the environment, and knows that they are secrets', () => {
    const env = { TOKEN: 'tok-123', EMPTY: '', PORT: '99' };
    const { servers, problems } = configured(
      {
        a: {
          command: '${BIN:-node}',
          args: ['--key=${TOKEN}', '${EMPTY:-none}', '${EMPTY}', '$TOKEN'],
          env: { KEY: '${TOKEN}' },
        },
        b: { url: 'http://localhost:${PORT}/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } },
      },
      env,
    );
    expect(problems).toEqual([]);
    expect(servers).toMatchObject([
      { command: 'node', args: ['--key=tok-123', 'none', '', '$TOKEN'], env: { KEY: 'tok-123' } },
      { url: 'http://localhost:99/mcp', headers: { Authorization: 'Bearer tok-123' } },
    ]);
    expect(servers[0]?.secrets).toContain('tok-123');
    expect(servers[1]?.secrets).toEqual(expect.arrayContaining(['tok-123', 'Bearer tok-123']));
  });

  it.each<[string, unknown, string]>([
    ['not an object', 'node', 'must be an object.'],
    ['nothing', {}, 'command is missing.'],
    ['an unknown type', { type: 'websocket', url: 'http://a' }, 'type must be stdio, sse or streamable-http.'],
    ['no url', { type: 'sse' }, 'url is missing.'],
    ['an empty command', { command: '' }, 'command must be a text that is not empty.'],
    ['args that are no list', { command: 'a', args: 'b' }, 'args must be a list of texts.'],
    ['env that is no text', { command: 'a', env: { A: 1 } }, 'env must be an object of texts.'],
    ['headers that are a list', { url: 'http://a', headers: [] }, 'headers must be an object of texts.'],
    [
      'two wrong fields',
      { command: 1, approval: 'maybe' },
      'command must be a text that is not empty, and approval must be never or always.',
    ],
    [
      'a negative time',
      { command: 'a', timeoutSeconds: -1 },
      'timeoutSeconds must be a number of seconds from 0 (no limit) to 2000000.',
    ],
    [
      'half a call',
      { command: 'a', concurrency: 0.5 },
      'concurrency must be a whole number from 0 (any number) to 10000.',
    ],
    ['tools that are no names', { command: 'a', tools: [1] }, 'tools must be a list of names of tools.'],
    ['both', { command: 'a', url: 'http://a' }, 'has both command and url: say which by type.'],
    ['a url for stdio', { type: 'stdio', command: 'a', url: 'http://a' }, 'url does not go with type stdio.'],
    ['a command for sse', { type: 'sse', url: 'http://a', env: {} }, 'env does not go with type sse.'],
    ['an address that is none', { url: 'nowhere' }, 'url must be an http or https address.'],
    ['another protocol', { url: 'file:///etc/passwd' }, 'url must be an http or https address.'],
    [
      'a password in the url',
      { url: 'http://me:secret-1@a' },
      'url must not contain a user or a password: send them in headers.',
    ],
    [
      'a header of two lines',
      { url: 'http://a', headers: { A: 'x\r\nsecret-1: y' } },
      'headers.A cannot be sent as a header.',
    ],
    [
      'a header with a bad name',
      { url: 'http://a', headers: { 'A B': 'secret-1' } },
      'headers.A B cannot be sent as a header.',
    ],
    [
      'a variable that is not set',
      { command: 'a', env: { KEY: 'secret-1${NOT_SET}' } },
      'env.KEY needs the environment variable NOT_SET, which is not set.',
    ],
    [
      'one in the arguments',
      { command: 'a', args: ['b', '${NOT_SET}'] },
      'args[1] needs the environment variable NOT_SET, which is not set.',
    ],
    ['one in the url', { url: 'http://${NOT_SET}/' }, 'url needs the environment variable NOT_SET, which is not set.'],
  ])('leaves out a server with %s, says why, and keeps the others', (_, entry, problem) => {
    const content = JSON.stringify({ mcpServers: { good: { command: 'a' }, bad: entry, fine: { command: 'b' } } });
    const { servers, problems } = parseMcpServers(content, {});
    expect(problems).toEqual([`MCP server "bad": ${problem}`]);
    expect(problems.join()).not.toContain('secret-1');
    expect(servers.map(({ name }) => name)).toEqual(['good', 'fine']);
  });

  it.each(['a b', 'a.b', '', 'ü', 'a/b', 'x'.repeat(65)])('refuses the name %j', (name) => {
    const { servers, problems } = configured({ [name]: { command: 'a' } });
    expect(servers).toEqual([]);
    expect(problems).toEqual([
      expect.stringContaining('the name may hold letters, digits, _ and -, at most 64 of them.'),
    ]);
  });

  it.each([
    ['{"mcpServers": {"a": {"command": "x", "env": {"K": "secret-1"', 'The file of MCP servers is not JSON.'],
    ['', 'The file of MCP servers is not JSON.'],
    ['[]', 'The file of MCP servers must be an object with an object "mcpServers".'],
    ['{"servers": {}}', 'The file of MCP servers must be an object with an object "mcpServers".'],
    ['{"mcpServers": []}', 'The file of MCP servers must be an object with an object "mcpServers".'],
  ])('says what is wrong with %j as a whole', (content, problem) => {
    expect(parseMcpServers(content, {})).toEqual({ servers: [], problems: [problem], warnings: [] });
  });

  it('warns of fields that it does not know, and starts the server all the same', () => {
    const { servers, warnings } = configured({ a: { command: 'b', enviroment: {}, autoApprove: [] } });
    expect(servers).toHaveLength(1);
    expect(warnings).toEqual(['MCP server "a": enviroment is not known.', 'MCP server "a": autoApprove is not known.']);
    const typo = configured({ a: { command: 'b', arg: [] } });
    expect(typo.warnings).toEqual(['MCP server "a": arg is not known; did you mean args?']);
  });

  it('may be missing, which is worth a warning, or not readable', async () => {
    const directory = makeDirectory();
    try {
      const missing = `${directory.path}/none.json`;
      expect(await readMcpServers(missing)).toEqual({
        servers: [],
        problems: [],
        warnings: [`There is no file of MCP servers at ${missing}.`],
      });
      expect(await readMcpServers(directory.path)).toMatchObject({
        problems: [`The file of MCP servers at ${directory.path} cannot be read (EISDIR).`],
      });
      const file = directory.write('mcp.json', '\uFEFF{"mcpServers": {"a": {"command": "${SHELL_OF_TEST}"}}}');
      expect((await readMcpServers(file, { SHELL_OF_TEST: 'sh' })).servers).toMatchObject([
        { name: 'a', command: 'sh' },
      ]);
    } finally {
      directory.remove();
    }
  });
});
