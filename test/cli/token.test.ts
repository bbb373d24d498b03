import jwt from 'jsonwebtoken';
import { type CliOptions, type Ended, runCli } from '../support/child.ts';
import { type RunningGateway, SECRET, startGateway } from '../support/gateway.ts';

const KEYED: CliOptions = { env: { SLUICE_JWT_SECRET: SECRET } };

const token = (args: readonly string[], options: CliOptions = KEYED): Promise<Ended> =>
  runCli(['token', '--sub', 'anna', ...args], options);

describe('token', () => {
  let gateway: RunningGateway;

  beforeAll(async () => {
    gateway = await startGateway({ SLUICE_JWT_ISSUER: 'https://issuer.example', SLUICE_JWT_AUDIENCE: 'sluice' });
  });

  afterAll(() => gateway.stop());

  const publishes = async (key: string, event: object): Promise<number> => {
    const headers = { Authorization: `Bearer ${key}` };
    return (await fetch(`${gateway.url}/events`, { method: 'POST', headers, body: JSON.stringify(event) })).status;
  };

  it('refuses in one sentence while no key is configured', async () => {
    expect(await token([], {})).toEqual({
      code: 2,
      stdout: '',
      stderr: 'No key is configured to sign with: set SLUICE_JWT_SECRET, or jwt.secret in sluice.yaml.\n',
    });
  });

  it('refuses as well while there are keys to verify with only', async () => {
    const env = { SLUICE_JWT_JWKS_URL: 'https://issuer.example/keys' };
    expect(await token([], { env })).toMatchObject({ code: 2, stderr: expect.stringMatching(/^No key .*\.\n$/) });
  });

  it('mints what a gateway of the same settings accepts, and puts every option into it', async () => {
    const settings = ['jwt:', `  secret: ${SECRET}`, '  issuer: https://issuer.example', '  audience: sluice'];
    const files = { 'elsewhere.yaml': `${settings.join('\n')}\n` };
    const args = [
      ...['--subscribe', 'content.*, agent.#', '--subscribe', 'demo', '--publish', 'demo'],
      ...['--scope', 'admin,ors', '--agent', 'agent://default/writer', '--ttl', '30m', '--config', 'elsewhere.yaml'],
    ];
    const { code, stdout, stderr } = await token(args, { files });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

    const key = stdout.trim();
    const { iat, exp, ...claims } = jwt.decode(key) as jwt.JwtPayload;
    expect(claims).toEqual({
      sub: 'anna',
      scope: 'admin ors',
      channels: { subscribe: ['content.*', 'agent.#', 'demo'], publish: ['demo'] },
      agents: ['agent://default/writer'],
      iss: 'https://issuer.example',
      aud: 'sluice',
    });
    expect((exp ?? 0) - (iat ?? 0)).toBe(1_800);
    expect(await publishes(key, { channel: 'demo', data: 1, agentId: 'agent://default/writer' })).toBe(201);
    expect(await publishes(key, { channel: 'demo', data: 1, agentId: 'agent://default/reader' })).toBe(403);
    expect(await publishes(key, { channel: 'other', data: 1 })).toBe(403);
    const metrics = await fetch(`${gateway.url}/readyz`, { headers: { Authorization: `Bearer ${key}` } });
    expect(Object.keys((await metrics.json()) as object).length).toBeGreaterThan(1); // details, for admins
  });

  it('is good for 24 hours and for no channel unless it is told otherwise', async () => {
    const { stdout } = await token([]);
    const { iat = 0, exp = 0, ...claims } = jwt.decode(stdout.trim()) as jwt.JwtPayload;
    expect(exp - iat).toBe(86_400);
    expect(claims).toEqual({ sub: 'anna', channels: { subscribe: [], publish: [] } });
  });

  it.each([
    { args: ['--ttl', 'soon'], says: /^"soon" is not a time such as 90s/ },
    { args: ['--ttl', '0s'], says: /^"0s" is not a time/ },
    { args: ['--ttl', '999999999d'], says: /^"999999999d" is not a time .* at most 36500d\.$/ },
    { args: ['--scope', 'root,admin'], says: /^Unknown scope root; there are capabilities, / },
    { args: ['--subscribe', 'a..b,#.c,ok'], says: /^Not a channel pattern in --subscribe: "a\.\.b", "#\.c"\.$/ },
    { args: ['--publish', 'a b'], says: /^Not a channel pattern in --publish: "a b"\.$/ },
    { args: ['--agent', 'writer'], says: /^"agents\[0\]" is not an agent URI\.$/ },
    { args: ['--sub', ''], says: /^The claim "sub" must be/ },
    { args: ['--config', 'missing.yaml'], says: /missing\.yaml/ },
  ])('refuses in one sentence: $args', async ({ args, says }) => {
    const { code, stdout, stderr } = await token(args);
    const [line, ...more] = stderr.split('\n');
    expect(line).toMatch(says);
    expect({ code, stdout, more }).toEqual({ code: 2, stdout: '', more: [''] });
  });
});
