import { join } from 'node:path';
import { eventually } from '../streams/logs.ts';
import { Cli, runCli } from '../support/child.ts';
import { RawStream } from '../support/raw-stream.ts';

const DICE = `
import { defineTool, fail } from 'sluice';

export const dice = defineTool({
  name: 'dice',
  description: 'Rolls dice.\\nFairly.',
  input: { type: 'object', properties: { count: { type: 'integer', minimum: 1 } }, required: ['count'] },
  run: ({ count }, { progress, principal }) => {
    progress({ progress: 1, total: 2, message: 'rolling' });
    if (count === 13) return fail('Not thirteen.');
    if (count === 14) throw new Error('a bug');
    return { rolls: Array(count).fill(6), principal };
  },
});
export default [defineTool({ name: 'picture', description: 'Draws.', run: () => ({
  content: [{ type: 'text', text: 'see' }, { type: 'image', data: 'UE5H', mimeType: 'image/png' }],
}) })];
`;

const EVERYTHING = join(__dirname, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js');

const files = {
  'sluice.yaml': `
manifests: { paths: [./gambler.ossa.yaml] }
tools:
  modules: [./mine.js]
  http:
    echo: { url: 'http://127.0.0.1:1/{text}', description: Echoes. }
mcp: { servers: ./mcp.json }
`,
  'mine.js': DICE,
  'gambler.ossa.yaml': `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: gambler, version: 1.0.0 }
spec: { role: You gamble., capabilities: [roll] }
runtime: { bindings: { roll: { tool: dice } } }
`,
  'mcp.json': JSON.stringify({
    mcpServers: {
      everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
      broken: { command: 'there-is-no-such-command' },
    },
  }),
};

/** Without servers, which take their time to start. */
const alone = { ...files, 'mcp.json': '{"mcpServers":{}}' };

describe('sluice tools', () => {
  it('lists every tool, whatever it comes from', async () => {
    const { code, stdout, stderr } = await runCli(['tools', 'list'], { files });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^echo +http http +Echoes\.$/m);
    expect(stdout).toMatch(/^dice +module mine +Rolls dice\.$/m);
    expect(stdout).toMatch(/^picture +module mine +Draws\.$/m);
    expect(stdout).toMatch(/^everything\.echo +mcp everything /m);
    expect(stderr).toContain('Two tools are called "echo": it means http.echo; the other is everything.echo.');
    expect(stderr).toContain('there-is-no-such-command');
  });

  it('prints everything about them as JSON', async () => {
    const { stdout } = await runCli(['tools', 'list', '--json'], { files: alone });
    const tools = JSON.parse(stdout) as { name: string; inputSchema: object }[];
    expect(tools.find(({ name }) => name === 'dice')).toMatchObject({
      fullName: 'mine.dice',
      source: { kind: 'module', name: 'mine' },
      inputSchema: { required: ['count'] },
    });
  });

  it.each([
    ['dice', '{"count":2}', 0, '{"rolls":[6,6],"principal":"cli"}\n', '1/2 rolling\n'],
    ['mine.dice', '{"count":13}', 1, 'Not thirteen.\n', ''],
    ['dice', '{"count":14}', 1, '', 'a bug'],
    ['dice', '{"count":"x"}', 2, '', 'Input of dice: count must be integer.\n'],
    ['dice', 'nonsense', 2, '', 'The input is not JSON.\n'],
    ['nothing', '{}', 2, '', 'There is no tool "nothing".\n'],
    ['picture', '{}', 0, 'see\n[image, image/png, 3 bytes]\n', ''],
    ['everything.echo', '{"message":"hello"}', 0, 'Echo: hello\n', ''],
  ])('calls %s with %s', async (name, input, expected, out, note) => {
    const { code, stdout, stderr } = await runCli(['tools', 'call', name, input], {
      files: name.startsWith('everything') ? files : alone,
    });
    expect(stdout).toBe(out);
    expect(stderr).toContain(note);
    expect(code).toBe(expected);
  });

  it.each([
    ['export const x = 1;', 'it exports nothing that defineTool has made'],
    ['export const = ;', 'Unexpected token'],
    ['import "no-such-package";', 'no-such-package'],
    [
      "import { defineTool } from 'sluice'; export const a = defineTool({ name: 'a b', description: '', run() {} });",
      'name',
    ],
    [
      "import { defineTool } from 'sluice'; export const a = defineTool({ name: 'a', description: '' });",
      'no function "run"',
    ],
    [
      "import { defineTool } from 'sluice'; const t = { name: 'a', description: '', run() {} }; export default [defineTool(t), defineTool(t)];",
      'two tools called a',
    ],
  ])('says what is wrong with a module: %s', async (module, message) => {
    const wrong = { 'sluice.yaml': 'tools: { modules: [./mine.js] }', 'mine.js': module };
    const { code, stderr } = await runCli(['tools', 'list'], { files: wrong });
    expect(stderr).toContain('mine.js cannot be used: ');
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  it('stops the start of the gateway when a tool cannot be used', async () => {
    const wrong = { 'sluice.yaml': 'tools: { http: { a: { url: "https://{host}/" }, b: { url: "${NOT_SET}" } } }' };
    const { code, stderr } = await runCli(['serve', '--port', '0'], { files: wrong });
    expect(stderr).toContain('tools.http.a: The host of a URL cannot come from the input.\n');
    expect(stderr).toContain('tools.http.b: the environment variable NOT_SET is not set');
    expect(code).toBe(2);
  });
});

describe('a running gateway with tools', () => {
  it('shows them, and loads them again when it is told to', async () => {
    const { writeFileSync } = await import('node:fs');
    const cli = new Cli(['serve', '--port', '0', '--log-format', 'json'], { files });
    await eventually(() => /listens on (\S+)/.test(cli.stdout));
    const [, url] = /listens on (\S+)/.exec(cli.stdout) as RegExpExecArray;
    const token = /^ {2}(ey\S+)$/m.exec(cli.stdout)?.[1];
    const headers = { Authorization: `Bearer ${token}` };
    const names = async (): Promise<string[]> => {
      const answer = (await (await fetch(`${url}/api/tools`, { headers })).json()) as { tools: { name: string }[] };
      return answer.tools.map(({ name }) => name);
    };
    expect(await names()).toEqual(expect.arrayContaining(['echo', 'dice', 'picture']));
    await eventually(async () => (await names()).includes('everything.echo'));
    const ready = (await (await fetch(`${url}/readyz`, { headers })).json()) as { mcpServers: { name: string }[] };
    expect(ready.mcpServers).toEqual([
      expect.objectContaining({ name: 'everything', state: 'ready' }),
      expect.objectContaining({ name: 'broken', state: 'failed' }),
    ]);
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
    expect(metrics).toContain('sluice_mcp_server_up{server="everything"} 1');
    expect(metrics).toContain('sluice_mcp_server_up{server="broken"} 0');

    // A module as what stands behind a capability.
    const asked = await fetch(`${url}/capabilities/roll`, { method: 'POST', headers, body: '{"count":3}' });
    const { streamUrl } = (await asked.json()) as { streamUrl: string };
    const stream = new RawStream(Number(new URL(streamUrl).port), streamUrl.slice(new URL(streamUrl).origin.length));
    await eventually(() => stream.body.includes('"final":true'));
    expect(stream.body).toContain('"progress":{"percent":50,"current":1,"total":2},"message":"rolling"');
    expect(stream.body).toContain('"result":{"rolls":[6,6,6],"principal":"owner"}');
    stream.close();

    writeFileSync(join(cli.directory, 'mine.js'), DICE.replaceAll("'dice'", "'cube'"));
    writeFileSync(join(cli.directory, 'mcp.json'), '{"mcpServers":{}}');
    cli.child.kill('SIGHUP');
    await eventually(async () => (await names()).sort().join() === 'cube,echo,picture');
    writeFileSync(join(cli.directory, 'mine.js'), 'export const = ;');
    cli.child.kill('SIGHUP');
    await eventually(() => cli.stderr.includes('cannot be used') || cli.stdout.includes('cannot be used'));
    expect((await names()).sort()).toEqual(['cube', 'echo', 'picture']);
    cli.child.kill('SIGTERM');
    expect((await cli.ended).code).toBe(0);
  });
});
