import { mintToken } from '../../src/auth/token.ts';
import { eventually } from '../streams/logs.ts';
import { type CliOptions, type Ended, runCli } from '../support/child.ts';
import { type RunningGateway, SECRET, startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { RawStream } from '../support/raw-stream.ts';
import { freePort } from '../support/redis.ts';

interface Published {
  readonly id: string;
  readonly type: string;
  readonly payload: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
}

describe('publish', () => {
  let gateway: RunningGateway;
  let stream: RawStream;

  beforeAll(async () => {
    gateway = await startGateway();
  });

  beforeEach(async () => {
    stream = new RawStream(gateway.port, '/events?channels=demo', { Authorization: `Bearer ${tokenFor()}` });
    await eventually(() => stream.frames.length > 0);
  });

  afterEach(() => stream.close());

  afterAll(() => gateway.stop());

  const publish = (args: readonly string[], { env = {}, ...options }: CliOptions = {}): Promise<Ended> =>
    runCli(['publish', ...args], { env: { SLUICE_URL: gateway.url, SLUICE_TOKEN: tokenFor(), ...env }, ...options });

  const events = async (count: number): Promise<Published[]> => {
    await eventually(() => stream.events.length >= count);
    return stream.events.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '') as Published);
  };

  it.each([
    { what: 'JSON as what it is', text: '{"a":[1,null]}', data: { a: [1, null] } },
    { what: 'text as text', text: 'hello, world', data: 'hello, world' },
    { what: 'a number as a number', text: '42', data: 42 },
    { what: 'JSON of standard input', text: '-', input: '{"from":\n"a pipe"}\n', data: { from: 'a pipe' } },
    { what: 'text of standard input', text: '-', input: 'two\nlines', data: 'two\nlines' },
  ])('publishes $what and prints its id', async ({ text, input = '', data }) => {
    const { code, stdout, stderr } = await publish(['demo', text], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [event] = await events(1);
    expect(event).toMatchObject({ type: 'message', payload: { channel: 'demo', data } });
    expect(stdout).toBe(`${event?.id}\n`);
  });

  it('puts every option into the event, and takes URL and token as options too', async () => {
    const token = tokenFor({ agents: ['agent://default/writer'] });
    const remote = ['--url', `${gateway.url}/`, '--token', token];
    const of = ['--type', 'status', '--agent-id', 'agent://default/writer', '--correlation-id', 'c-1'];
    const { code } = await publish(['demo', '{"status":"busy"}', ...of, ...remote], {
      env: { SLUICE_URL: 'http://127.0.0.1:9', SLUICE_TOKEN: 'none' },
    });
    expect(code).toBe(0);
    expect((await events(1))[0]).toMatchObject({
      type: 'status',
      payload: { status: 'busy' },
      metadata: { agentId: 'agent://default/writer', correlationId: 'c-1', channel: 'demo' },
    });
  });

  it('publishes once, however often it is repeated with the same idempotency key', async () => {
    const args = ['demo', '1', '--idempotency-key', 'once'];
    const first = await publish(args);
    expect(await publish(args)).toEqual(first);
    await publish(['demo', '2']);
    expect((await events(2)).map(({ payload }) => (payload as { data: unknown }).data)).toEqual([1, 2]);
  });

  it.each([
    { what: 'a token that is none', env: { SLUICE_TOKEN: 'nonsense' }, says: /^The gateway answered 401: .+\.$/ },
    {
      what: 'an expired token',
      env: { SLUICE_TOKEN: mintToken(SECRET, { sub: 'late' }, 60, () => Date.now() - 3_600_000) },
      says: /^The gateway answered 401: The token has expired\.$/,
    },
    {
      what: 'a channel that the token does not grant',
      env: { SLUICE_TOKEN: tokenFor({ publish: ['other'] }) },
      says: /^The gateway answered 403: Your token does not let you publish here: demo\.$/,
    },
  ])('says in one sentence what the gateway has against $what', async ({ env, says }) => {
    const { code, stdout, stderr } = await publish(['demo', '1'], { env });
    const [line, ...more] = stderr.split('\n');
    expect(line).toMatch(says);
    expect({ code, stdout, more }).toEqual({ code: 1, stdout: '', more: [''] });
  });

  it('says in one sentence that no gateway is there', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await publish(['demo', '1', '--url', url]);
    expect(stderr).toMatch(new RegExp(`^${url}/ does not answer: connect ECONNREFUSED .*\\.\n$`));
    expect(code).toBe(1);
  });

  // `fetch` waited for ever here, and the process ended with 13 and without a word.
  it('says in one sentence that the connection was closed before it could ask', async () => {
    const proxy = await TcpProxy.start(gateway.port);
    proxy.target = undefined;
    const { code, stderr } = await publish(['demo', '1', '--url', proxy.url]);
    expect(stderr).toMatch(/^http:\S+ does not answer: .+\.\n$/);
    expect(code).toBe(1);
    await proxy.stop();
  });

  it.each([
    {
      args: ['--url', 'localhost:8080'],
      says: 'The URL must be http://host:port or https://host, without a password.',
    },
    {
      args: ['--url', 'http://a:secret@b'],
      says: 'The URL must be http://host:port or https://host, without a password.',
    },
    { args: ['--token', ''], says: 'Give a token with --token or SLUICE_TOKEN.' },
    { args: ['--token', 'a\nb'], says: 'The token has characters that no token has.' },
    { args: ['--idempotency-key', 'ü'], says: 'The idempotency key must be of visible ASCII characters.' },
  ])('refuses without asking anybody: $args', async ({ args, says }) => {
    expect(await publish(['demo', '1', ...args])).toEqual({ code: 2, stdout: '', stderr: `${says}\n` });
  });
});
