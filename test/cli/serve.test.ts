import { connect, createServer } from 'node:net';
import { eventually } from '../streams/logs.ts';
import { Cli, type CliOptions, runCli } from '../support/child.ts';
import { SECRET, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';
import { freePort, startRedis } from '../support/redis.ts';

interface Served {
  readonly cli: Cli;
  readonly url: string;
  readonly port: number;
}

/** A module with an environment, as operators write it. */
const ENVIRONMENT = `
  import { defineEnvironment } from 'sluice';
  export default defineEnvironment({
    name: 'Lab', splits: ['train'], tasks: { train: [{}] }, prompt: () => 'Go.',
    tools: [{ name: 'end', description: 'Ends.', run: () => ({ text: 'Over.', finished: true }) }],
  });`;

/** Waits until it has said where it listens. */
const serve = async (args: readonly string[], options?: CliOptions): Promise<Served> => {
  const cli = new Cli(['serve', ...args], options);
  const said = (): string | undefined => cli.lines.find((line) => line.includes('The gateway is listening.'));
  await eventually(() => said() !== undefined);
  const url = /http:[/\d.:]+/.exec(said() ?? '')?.[0] ?? '';
  return { cli, url, port: Number(new URL(url).port) };
};

const isAnswered = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

describe('serve without a key', () => {
  let served: Served;

  beforeAll(async () => {
    served = await serve(['--port', '0']);
    await eventually(() => served.cli.stdout.includes('curl'));
  });

  afterAll(() => served.cli.stop());

  it('prints a URL that can be opened as it stands and a command that publishes', async () => {
    const { stdout } = served.cli;
    const url = /^ {2}(http\S+)$/m.exec(stdout)?.[1] ?? '';
    const [, target = '', token = ''] = /curl (\S+) -H "Authorization: Bearer (\S+)"/.exec(stdout) ?? [];
    const body = /-d '(.+)'/.exec(stdout)?.[1] ?? '';
    const { port, pathname, search } = new URL(url);
    const stream = new RawStream(Number(port), `${pathname}${search}`);
    await eventually(() => stream.frames.length > 0);
    expect(stream.status).toBe(200);

    const answer = await fetch(target, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body });
    expect(answer.status).toBe(201);
    await eventually(() => stream.events.length === 1);
    expect(stream.events[0]).toContain('"payload":{"channel":"demo","data":{"hello":"world"}}');
    stream.close();
  });

  it('prints a token that may do everything for 24 hours', async () => {
    const token = /^ {2}(eyJ\S+)$/m.exec(served.cli.stdout)?.[1] ?? '';
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(claims.scope.split(' ')).toEqual(['capabilities', 'ors', 'agents', 'responses', 'admin']);
    expect(claims.channels).toEqual({ subscribe: ['#'], publish: ['#'] });
    expect(claims.exp - claims.iat).toBe(86_400);
  });

  it('does not write the token of a request into its log', async () => {
    const token = tokenFor();
    await fetch(`${served.url}/events?channels=demo&token=${token}`);
    await eventually(() => /GET.*channels=demo/.test(served.cli.stdout));
    expect(served.cli.stdout).not.toContain(token);
  });

  it('listens on 127.0.0.1 and on no other address', async () => {
    expect(await isAnswered(served.port, '127.0.0.1')).toBe(true);
    expect(await isAnswered(served.port, '127.0.0.2')).toBe(false); // a socket on all addresses would answer
    expect(await isAnswered(served.port, '::1')).toBe(false);
  });

  it('refuses to listen anywhere else', async () => {
    const { code, stderr } = await runCli(['serve', '--port', '0', '--host', '0.0.0.0']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^host must be a loopback address .* not "0\.0\.0\.0" \(flag --host\)\.\n$/);
  });
});

describe('serve with a key', () => {
  it('prints no token, and accepts those that are signed with the key', async () => {
    const { cli, url } = await serve(['--port', '0'], { env: { SLUICE_JWT_SECRET: SECRET } });
    expect(cli.stdout).not.toContain('eyJ');
    expect(cli.stdout).not.toContain(SECRET);
    const answer = await fetch(`${url}/events`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenFor()}` },
      body: '{"channel":"demo","data":1}',
    });
    expect(answer.status).toBe(201);
    await cli.stop();
  });

  it('takes its settings from sluice.yaml of the directory', async () => {
    const files = { 'sluice.yaml': `jwt:\n  secret: ${SECRET}\nport: 0\nnamespace: harbour\n` };
    const { cli, port } = await serve([], { files });
    const stream = new RawStream(port, '/events?channels=a', { Authorization: `Bearer ${tokenFor()}` });
    await eventually(() => stream.frames.length > 0);
    expect(stream.frames[0]).toContain('agent://harbour/gateway');
    stream.close();
    await cli.stop();
  });
});

describe('serve with an environment', () => {
  it('hosts what a module of the operator defines', async () => {
    const files = {
      'lab.mjs': ENVIRONMENT,
      'sluice.yaml': JSON.stringify({ ors: { environments: [{ module: 'lab.mjs' }] } }),
    };
    const { cli, url } = await serve(['--port', '0'], { files });
    expect(await (await fetch(`${url}/list_environments`)).json()).toEqual(['lab']);
    await cli.stop();
  });
});

describe('the end of serve', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('on %s ends open streams in order and exits with 0', async (signal) => {
    const { cli, port } = await serve(['--port', '0'], { env: { SLUICE_JWT_SECRET: SECRET } });
    const authorization = { Authorization: `Bearer ${tokenFor()}` };
    const streams = ['1.1', '1.0'].map((http) => new RawStream(port, '/events?channels=a', authorization, http));
    await eventually(() => streams.every(({ frames }) => frames.length > 0));

    const begin = performance.now();
    cli.child.kill(signal);
    await Promise.all(streams.map(({ closed }) => closed));
    const { code, stdout, stderr } = await cli.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(performance.now() - begin).toBeLessThan(2_000); // of the 20 s that streams have to end
    expect(stdout).toContain('The gateway has stopped.');
    // Each is told when to come back, and its body is complete.
    for (const { frames } of streams) expect(frames.at(-1)).toMatch(/^retry: \d+$/);
    expect(streams[0]?.ended).toBe(true);
  });

  it('waits for a request that is being sent, and not for the connection that its client keeps', async () => {
    const { cli, port } = await serve(['--port', '0'], { env: { SLUICE_JWT_SECRET: SECRET } });
    const body = '{"channel":"demo","data":1}';
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (bytes) => {
      answer += bytes.toString();
    });
    const head = `POST /events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokenFor()}`;
    socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`);
    await eventually(async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok); // it has come as well by now
    cli.child.kill('SIGTERM');
    await eventually(async () => !(await isAnswered(port, '127.0.0.1')));

    const begin = performance.now();
    socket.write(body.slice(9));
    expect((await cli.ended).code).toBe(0);
    expect(answer).toMatch(/^HTTP\/1\.1 201 /);
    expect(performance.now() - begin).toBeLessThan(2_000); // Node would keep the connection for 5 s
  });

  it('is at once and with 1 when it is asked for a second time', async () => {
    const { cli } = await serve(['--port', '0', '--shutdown-delay-seconds', '60']);
    cli.child.kill('SIGTERM');
    await eventually(() => cli.stdout.includes('about to stop'));
    cli.child.kill('SIGTERM');
    expect((await cli.ended).code).toBe(1);
  });
});

describe('serve that cannot start', () => {
  it('names every wrong setting in one sentence each and exits with 2', async () => {
    const { code, stdout, stderr } = await runCli(['serve', '--log-level', 'loud'], {
      env: { PORT: '99999', SLUICE_JWT_SECRET: 'short', SLUICE_CORS_ORIGINS: 'https://a.example/path' },
      files: { 'sluice.yaml': 'buffer:\n  seconds: never\nprot: 80\n' },
    });
    const lines = stderr.split('\n').slice(0, -1);
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^There is no setting prot \(sluice\.yaml, line 3, column 1\); did you mean port\?$/),
      expect.stringMatching(/^buffer\.seconds must be .* not "never" \(.*sluice\.yaml.*2.*\)\.$/),
      expect.stringMatching(/^cors\.origins\[0\] must be an origin .* \(environment variable SLUICE_CORS_ORIGINS\)\.$/),
      expect.stringMatching(/^jwt\.secret must be text of at least 32 characters \(.*SLUICE_JWT_SECRET\)\.$/),
      expect.stringMatching(/^log\.level must be .* not "loud" \(flag --log-level\)\.$/),
      expect.stringMatching(/^port must be .* not 99999 \(environment variable PORT\)\.$/),
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toContain('short');
  });

  const hosting = (names: readonly string[], more = {}): CliOptions => ({
    files: {
      'lab.mjs': ENVIRONMENT,
      'sluice.yaml': JSON.stringify({
        ors: { environments: names.map((name) => ({ module: 'lab.mjs', name })), ...more },
      }),
    },
  });

  it('refuses every environment whose name is a path of the gateway or of another one', async () => {
    // The first segments of all routes, the nine suffixes, and what others have at their root.
    const taken = [
      ...[
        'livez',
        'readyz',
        'metrics',
        'health',
        'openapi.json',
        'console',
        'auth',
        'api',
        'responses',
        'v1',
        'models',
      ],
      ...['events', 'capabilities', 'agent-status', 'agents', 'channels'],
      ...['list_environments', 'create_session', 'create', 'ping', 'delete', 'delete_session', 'version'],
      ...['tools', 'splits', 'task_tools', 'prompt', 'tasks', 'num_tasks', 'task', 'task_range', 'call'],
      ...['docs', 'redoc'],
    ];
    const upper = taken.map((name) => name.toUpperCase());
    const { code, stdout, stderr } = await runCli(
      ['serve', '--port', '0'],
      hosting([...upper, 'Twice', 'free', 'tWICE']),
    );
    expect(stderr.split('\n').slice(0, -1)).toEqual([
      ...taken.map((name) => `ors.environments: no environment can be called ${name}, which is a path of the gateway.`),
      'ors.environments: two environments are called twice.',
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('refuses a prefix of ORS that lies under a path of the gateway', async () => {
    const { code, stderr } = await runCli(['serve', '--port', '0'], hosting(['lab'], { prefix: '/API/ors' }));
    expect(stderr).toBe('ors.prefix: /API/ors lies under a path of the gateway.\n');
    expect(code).toBe(2);
  });

  it('names the module of an environment that cannot be used', async () => {
    const options = hosting(['lab']);
    const files = { ...options.files, 'lab.mjs': 'export const nothing = 1;' };
    const { code, stderr } = await runCli(['serve', '--port', '0'], { files });
    expect(stderr).toMatch(
      /^ors\.environments\.0: The environments of \S+lab\.mjs cannot be used: It exports nothing .*\.\n$/,
    );
    expect(code).toBe(2);
  });

  it('says in one sentence that its port is in use and exits with 1', async () => {
    const port = await freePort();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    const { code, stderr } = await runCli(['serve', '--port', String(port)]);
    expect(stderr).toBe(`Port ${port} of 127.0.0.1 is in use by another program.\n`);
    expect(code).toBe(1);
    other.close();
  });

  it('does so too while its Redis is there, instead of going on without a port', async () => {
    const redis = await startRedis();
    const { code, stderr } = await runCli(['serve', '--port', String(redis.port)], { env: { REDIS_URL: redis.url } });
    expect(stderr).toBe(`Port ${redis.port} of 127.0.0.1 is in use by another program.\n`);
    expect(code).toBe(1);
    await redis.stop();
  });

  it('says in one sentence that its host is no address of this machine', async () => {
    const { code, stderr } = await runCli(['serve', '--port', '0', '--host', '192.0.2.1'], {
      env: { SLUICE_JWT_SECRET: SECRET },
    });
    expect(stderr).toBe('192.0.2.1 is no address of this machine.\n');
    expect(code).toBe(1);
  });
});
