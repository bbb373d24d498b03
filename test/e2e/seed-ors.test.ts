import { join } from 'node:path';
import { fencesIn } from '../support/fences.ts';
import { type OrsSite, startOrs } from '../support/ors-site.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Script } from '../support/script.ts';

const SAMPLES = fencesIn(join(__dirname, '../fixtures/seeds/ors-clients.md'));

/** A sample of the ORS page about SSE, as it stands there. */
const sample = (heading: string): string => {
  const found = SAMPLES.find((one) => one.heading === heading);
  if (!found) throw new Error(`There is no sample under "${heading}".`);
  return found.code;
};

jest.setTimeout(30_000); // interpreters start slowly while everything else runs as well

/** Each sample is a function; these few lines call it. */
const PYTHON = `${sample('Python (httpx)')}
import sys
try:
    print(json.dumps(call_tool(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))))
except Exception as error:
    print(repr(error))
    sys.exit(3)
`;
const JAVASCRIPT = `${sample('JavaScript (fetch)')}
const [, , baseUrl, sessionId, tool, input] = process.argv;
try {
  console.log(JSON.stringify(await callTool(baseUrl, sessionId, tool, JSON.parse(input))));
} catch (error) {
  console.log(String(error));
  process.exit(3);
}
`;

const outputOf = (text: string, reward: number | null, finished: boolean): object => ({
  ok: true,
  output: { blocks: [{ text, detail: null, type: 'text' }], metadata: null, reward, finished },
});

describe('the clients of the ORS page about SSE', () => {
  let site: OrsSite;
  let sid: string;

  beforeAll(async () => {
    site = await startOrs();
    sid = await site.session();
  });
  afterAll(() => site.stop());

  const run = async (
    script: Script,
  ): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> => ({
    code: await script.ended,
    stdout: script.stdout,
    stderr: script.stderr,
  });

  describe.each([
    ['httpx', 'sample.py', PYTHON, 200_000, `Exception('Tool error: kaputt')`],
    // What is larger than one read of 64 KiB arrives whole only while nothing keeps the client busy: see seed-ors.alone.ts.
    ['fetch', 'sample.mjs', JAVASCRIPT, 40_000, 'Error: kaputt'],
  ])('%s', (_, file, code, large, failure) => {
    const call = (tool: string, input: object): ReturnType<typeof run> =>
      run(new Script({ [file]: code }, file, [site.url, sid, tool, JSON.stringify(input)]));

    it('gets a small result', async () => {
      const { code: status, stdout, stderr } = await call('submit', { answer: 42 });
      expect([status, stderr]).toEqual([0, '']);
      expect(JSON.parse(stdout)).toEqual(outputOf('Correct!', 1, true));
    });

    it('gets a large result, which comes in pieces, without a character lost', async () => {
      const input = { text: '   a\n', times: large / 5 }; // cuts fall on each of its six bytes
      const { stdout } = await call('repeat', input);
      expect(JSON.parse(stdout)).toEqual(outputOf(input.text.repeat(input.times), null, false));
    });

    it('gets line separators that would break its lines', async () => {
      const { stdout } = await call('repeat', { text: '\u2028\u2029\u0085\r\n\v\f\u001c a', times: 100 });
      expect(JSON.parse(stdout)).toEqual(outputOf('\u2028\u2029\u0085\r\n\v\f\u001c a'.repeat(100), null, false));
    });

    it('gets what a model did wrong as a result', async () => {
      const { stdout } = await call('fail', {});
      expect(JSON.parse(stdout)).toEqual({ ok: false, error: 'Invalid answer format' });
    });

    it('fails when the tool does', async () => {
      expect(await call('throw', {})).toEqual({ code: 3, stdout: `${failure}\n`, stderr: '' });
    });
  });

  describe.each(['curl', 'View Raw SSE Stream'])('%s', (heading) => {
    const call = (tool: string, input: object): ReturnType<typeof run> => {
      const code = sample(heading)
        .replace('http://localhost:8080', site.url)
        .replace('abc-123', sid)
        .replace('{"name": "submit", "input": {"answer": 42}}', JSON.stringify({ name: tool, input }));
      return run(new Script({ 'sample.sh': code }, 'sample.sh', []));
    };
    const TASK = 'event: task_id\ndata: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n\n';

    it('shows a small result', async () => {
      const { code, stdout } = await call('submit', { answer: 42 });
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`^${TASK}event: end\ndata: {"ok":true,"output":{.*}}\n\n$`));
      expect(JSON.parse(/^data: ({.*)$/m.exec(stdout)?.[1] ?? '')).toEqual(outputOf('Correct!', 1, true));
    });

    it('shows a large result in pieces', async () => {
      const { stdout } = await call('repeat', { text: 'abcdefg', times: 30_000 });
      expect(stdout).toMatch(new RegExp(`^${TASK}(event: chunk\ndata: .{4096}\n\n){51}event: end\ndata: .+\n\n$`));
      const pieces = [...stdout.matchAll(/^event: (?:chunk|end)\ndata: (.*)$/gm)].map(([, piece]) => piece);
      expect(JSON.parse(pieces.join(''))).toEqual(outputOf('abcdefg'.repeat(30_000), null, false));
    });

    it('shows an error', async () => {
      const { stdout } = await call('throw', {});
      expect(stdout).toMatch(new RegExp(`^${TASK}event: error\ndata: kaputt\n\n$`));
    });
  });

  it('httpx, sent again by somebody who lost the connection and has kept no task_id: the tool runs once', async () => {
    const before = site.waits;
    const proxy = await TcpProxy.start(site.port);
    const input = JSON.stringify({ ms: 300, text: 'the same' });
    const call = (): ReturnType<typeof run> =>
      run(new Script({ 'sample.py': PYTHON }, 'sample.py', [proxy.url, sid, 'wait', input]));
    const cut = proxy.cutAfter(100); // within the headers
    const lost = call();
    await cut;
    expect((await lost).code).toBe(3);
    expect(JSON.parse((await call()).stdout)).toEqual(outputOf('the same', null, false));
    expect(site.waits - before).toBe(1);
    await proxy.stop();
  });

  it('Reconnect with Task ID: the call is not made again, and its result is all there', async () => {
    const before = site.waits;
    const call = { name: 'wait', input: { ms: 10, text: 'once' } };
    const headers = { 'X-Session-ID': sid };
    const first = await fetch(`${site.url}/gsm8k/call`, { method: 'POST', headers, body: JSON.stringify(call) });
    const events = await first.text();
    const taskId = /^event: task_id\ndata: (.+)\n/.exec(events)?.[1] ?? '';
    const given = { base_url: site.url, session_id: sid, tool_name: call.name, tool_input: call.input };
    const code = `import httpx, sys
${Object.entries({ ...given, task_id: taskId })
  .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  .join('\n')}
${sample('Reconnect with Task ID')}
sys.stdout.write(response.text)
`;
    const { stdout, stderr } = await run(new Script({ 'sample.py': code }, 'sample.py'));
    expect(stderr).toBe('');
    expect(stdout).toBe(events);
    expect(stdout).toContain('"text":"once"');
    expect(site.waits - before).toBe(1);
  });
});
