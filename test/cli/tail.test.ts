import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '../streams/logs.ts';
import { Cli, type CliOptions, runCli } from '../support/child.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Counter, post } from '../support/publisher.ts';

const GATEWAY = { SLUICE_OSSA_RETRY_MS: '30', SLUICE_BUFFER_EVENTS: '5000' };

interface Printed {
  readonly id: string;
  readonly type: string;
  readonly payload: { readonly data: unknown; readonly reason?: string };
}

const printed = (cli: Cli): Printed[] => cli.lines.map((line) => JSON.parse(line) as Printed);

/** Data of the messages that were printed with --json. */
const dataOf = (cli: Cli): unknown[] =>
  printed(cli).flatMap(({ type, payload }) => (type === 'message' ? [payload.data] : []));

describe('tail', () => {
  let gateway: RunningGateway;

  beforeAll(async () => {
    gateway = await startGateway(GATEWAY);
  });

  afterAll(() => gateway.stop());

  const tail = async (channels: string, args: readonly string[] = [], { env = {} }: CliOptions = {}): Promise<Cli> => {
    const cli = new Cli(['tail', channels, ...args], {
      env: { SLUICE_URL: gateway.url, SLUICE_TOKEN: tokenFor(), ...env },
    });
    await eventually(() => cli.stdout + cli.stderr !== '');
    return cli;
  };

  it('prints events as lines, what it says itself on standard error, and ends after --count', async () => {
    const cli = await tail('demo,other.#', ['--count', '3']);
    await post(gateway.url, { channel: 'demo', data: { hello: 'world' } });
    await post(gateway.url, { channel: 'unheard', data: 0 });
    await post(gateway.url, { channel: 'other.status', data: { load: 1 }, type: 'status' });
    await post(gateway.url, { channel: 'demo', data: 42, type: 'capability_response' });
    const { code, stdout, stderr } = await cli.ended;
    expect(code).toBe(0);
    expect(stdout.replaceAll(/^\d\d:\d\d:\d\d\.\d{3} /gm, '')).toBe(
      'demo {"hello":"world"}\nother.status status {"load":1}\ndemo capability_response 42\n',
    );
    expect(stderr).toMatch(/^[\d:.]+ -- following demo, other\.#\n$/);
  });

  it('prints whole events with --json', async () => {
    const cli = await tail('json', ['--json', '--count', '1']);
    const id = await post(gateway.url, { channel: 'json', data: 1, correlationId: 'c-1' });
    const { code, stderr } = await cli.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(printed(cli)).toEqual([
      expect.objectContaining({ type: 'connected', payload: { channels: ['json'], resumed: false } }),
      {
        type: 'message',
        id,
        timestamp: expect.any(String),
        payload: { channel: 'json', data: 1 },
        metadata: expect.objectContaining({ correlationId: 'c-1' }),
      },
    ]);
  });

  it('goes on after the id that it is given, and prints no more than --count of what is there', async () => {
    const ids = [];
    for (const data of [1, 2, 3, 4, 5]) ids.push(await post(gateway.url, { channel: 'kept', data }));
    const cli = await tail('kept', ['--json', '--after', ids[1] ?? '', '--count', '2']);
    expect((await cli.ended).code).toBe(0);
    expect(printed(cli)[0]).toMatchObject({ type: 'connected', payload: { resumed: true } });
    expect(dataOf(cli)).toEqual([3, 4]);
  });

  it('says so when it cannot go on after the id that it is given', async () => {
    const cli = await tail('kept', ['--after', 'nonsense']);
    await eventually(() => cli.notes.length === 2);
    expect(cli.notes[1]).toMatch(/!! resync \(unknown_id\): events of kept may be missing; what is kept follows$/);
    await cli.stop();
  });

  it('shows an event of the type error as an event, not as trouble of its own', async () => {
    const cli = await tail('faults', ['--count', '2']);
    await post(gateway.url, { channel: 'faults', type: 'error', data: { code: 'TIMEOUT', message: 'too late' } });
    await post(gateway.url, { channel: 'faults', data: 'on it goes' });
    const { code, stdout, stderr } = await cli.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^[\d:.]+ faults error {"code":"TIMEOUT","message":"too late"}\n[\d:.]+ faults "on it goes"\n$/,
    );
    expect(stderr).toMatch(/^[\d:.]+ -- following faults\n$/);
  });

  it('loses and doubles nothing when it is cut three times in the middle of a frame', async () => {
    const proxy = await TcpProxy.start(gateway.port);
    const cli = await tail('cut', ['--json'], { env: { SLUICE_URL: proxy.url } });
    const counter = new Counter(() => gateway.url, 'cut');
    for (const bytes of [1, 150, 700]) {
      const before = dataOf(cli).length;
      await eventually(() => dataOf(cli).length > before + 5);
      await proxy.cutAfter(bytes);
    }
    await eventually(() => proxy.accepted === 4);
    await counter.stop();
    await eventually(() => dataOf(cli).length >= counter.published);
    expect(dataOf(cli)).toEqual(counter.all);
    expect(cli.notes).toEqual(Array(3).fill('-- The connection was lost. Trying again.'));
    expect(printed(cli).filter(({ type }) => type === 'resync')).toEqual([]);
    await cli.stop();
    await proxy.stop();
  });

  it('waits for a gateway that is away, whatever stands in its place, and goes on where it was', async () => {
    const proxy = await TcpProxy.start(gateway.port);
    const balancer = createServer((_, res) => {
      res.writeHead(502).end('<html>no backend</html>');
    });
    await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve));
    const cli = await tail('away', ['--json'], { env: { SLUICE_URL: proxy.url } });
    await post(gateway.url, { channel: 'away', data: 1 });
    await eventually(() => dataOf(cli).length === 1);

    proxy.target = undefined;
    proxy.cut();
    await eventually(() => cli.notes.some((note) => /does not answer: .+\. Trying again\.$/.test(note)));
    proxy.target = (balancer.address() as AddressInfo).port;
    await eventually(() => cli.notes.includes('-- The gateway answered 502: Bad Gateway. Trying again.'));
    await post(gateway.url, { channel: 'away', data: 2 });
    proxy.target = gateway.port;
    await eventually(() => dataOf(cli).length === 2);
    expect(dataOf(cli)).toEqual([1, 2]);
    await cli.stop();
    await proxy.stop();
    balancer.close();
  });

  it('shows that an embedded store was lost with its gateway, and goes on with the next one', async () => {
    const first = await startGateway(GATEWAY);
    const proxy = await TcpProxy.start(first.port);
    const cli = await tail('restarted', [], { env: { SLUICE_URL: proxy.url } });
    await post(first.url, { channel: 'restarted', data: 'before' });
    await eventually(() => cli.lines.length === 1);

    const second = await startGateway(GATEWAY);
    proxy.target = second.port;
    proxy.cut();
    await first.stop();
    await eventually(() => cli.notes.some((note) => note.includes('resync')));
    await post(second.url, { channel: 'restarted', data: 'after' });
    await eventually(() => cli.lines.length === 2);
    expect(cli.stderr).toMatch(/!! resync \(epoch_changed\): events of restarted may be missing; what is kept follows/);
    expect(cli.lines[1]).toMatch(/restarted "after"$/);
    await cli.stop();
    await proxy.stop();
    await second.stop();
  });

  it('comes back when its gateway is stopped in order', async () => {
    const first = await startGateway(GATEWAY);
    const proxy = await TcpProxy.start(first.port);
    const cli = await tail('drained', [], { env: { SLUICE_URL: proxy.url } });
    proxy.target = gateway.port;
    await first.stop();
    await eventually(() => cli.notes.filter((note) => /following|resumed|resync/.test(note)).length >= 2);
    expect(cli.notes[1]).toBe('-- The connection was lost. Trying again.');
    await post(gateway.url, { channel: 'drained', data: 1 });
    await eventually(() => cli.lines.length === 1);
    await cli.stop();
    await proxy.stop();
  }, 10_000);

  it.each([
    { what: '401', token: 'nonsense', says: /^The gateway answered 401: .+\.\n$/ },
    {
      what: '403',
      token: tokenFor({ subscribe: ['other'] }),
      says: /^The gateway answered 403: Your token does not let you follow demo\.\n$/,
    },
  ])('ends with 1 and the reason when it is refused with $what', async ({ token, says }) => {
    const { code, stdout, stderr } = await runCli(['tail', 'demo', '--url', gateway.url, '--token', token]);
    expect(stderr).toMatch(says);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  it('ends with the reason when its token expires', async () => {
    // Within the tolerance for other clocks a token still opens a stream; it ends with the next look at it.
    const strict = await startGateway({ ...GATEWAY, SLUICE_JWT_CLOCK_TOLERANCE_SECONDS: '0' });
    const env = { SLUICE_URL: strict.url, SLUICE_TOKEN: tokenFor({ ttlSeconds: 2 }) };
    const { code, stderr } = await (await tail('demo', [], { env })).ended;
    expect(stderr).toMatch(/The gateway answered 401: The token has expired\.\n$/);
    expect(code).toBe(1);
    await strict.stop();
  });

  it('ends without a word when whoever reads it has seen enough', async () => {
    const cli = await tail('pipe');
    cli.child.stdout?.destroy();
    const counter = new Counter(() => gateway.url, 'pipe');
    const { code, stderr } = await cli.ended;
    await counter.stop();
    expect(stderr).toMatch(/^[\d:.]+ -- following pipe\n$/);
    expect(code).toBe(0);
  });
});
