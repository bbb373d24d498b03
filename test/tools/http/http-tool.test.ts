import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpToolSettings } from '../../../src/config/structures.ts';
import { httpTool } from '../../../src/tools/http/http-tool.ts';
import { fill } from '../../../src/tools/placeholders.ts';
import { ToolRegistry } from '../../../src/tools/registry.ts';
import type { ToolResult } from '../../../src/tools/tool.ts';
import { eventually } from '../../streams/logs.ts';
import { TestProvider, textOf } from '../tools.ts';

type Answer = (req: IncomingMessage, res: ServerResponse, body: string) => void;

describe('an HTTP endpoint as a tool', () => {
  let server: Server;
  let base: string;
  let answer: Answer;
  const seen: { method?: string; url?: string; headers: IncomingMessage['headers']; body: string }[] = [];

  beforeAll(async () => {
    server = createServer((req, res) => {
      let body = '';
      req.on('data', (piece) => {
        body += piece;
      });
      req.on('end', () => {
        seen.push({
          ...(req.method && { method: req.method }),
          ...(req.url && { url: req.url }),
          headers: req.headers,
          body,
        });
        answer(req, res, body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  beforeEach(() => {
    seen.length = 0;
    answer = (_, res) => res.setHeader('content-type', 'text/plain').end('fine');
  });

  const call = (
    settings: Partial<HttpToolSettings>,
    input: Record<string, unknown> = {},
    more: { signal?: AbortSignal } = {},
  ): Promise<ToolResult> => {
    const whole = { url: `${base}/x`, allowPrivate: true, ...settings };
    const tool = httpTool('it', whole, (text) => fill(text, { KEY: 'secret-key' }).text);
    const registry = new ToolRegistry();
    registry.add(new TestProvider('http', [tool]));
    return registry.call('it', input, { principal: 'ann', ...more });
  };

  it('sends what has no place in the URL as a query, or as the body', async () => {
    const url = `${base}/weather/{city}?lang=de`;
    const input = { type: 'object' };
    await call({ url, input }, { city: 'Ulm', days: 3, tag: ['a', 'b'] });
    await call({ url, input, method: 'POST' }, { city: 'Ulm', days: 3, deep: { a: [1] } });
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/weather/Ulm?lang=de&days=3&tag=a&tag=b', body: '' });
    expect(seen[1]).toMatchObject({ method: 'POST', url: '/weather/Ulm?lang=de', body: '{"days":3,"deep":{"a":[1]}}' });
    expect(seen[1]?.headers['content-type']).toBe('application/json');
  });

  it('asks for the fields of its URL when no schema is given', async () => {
    await expect(call({ url: `${base}/{a}/{b}` }, { a: 'x' })).rejects.toMatchObject({ code: 'invalid_input' });
    await call({ url: `${base}/{a}/{b}` }, { a: 'x', b: 'y' });
    expect(seen[0]?.url).toBe('/x/y');
  });

  it('puts secrets of the environment into headers', async () => {
    await call({ headers: { Authorization: 'Bearer ${KEY}' } });
    expect(seen[0]?.headers.authorization).toBe('Bearer secret-key');
    expect(() => httpTool('it', { url: base, headers: { A: '${NONE}' } }, (text) => fill(text, {}).text)).toThrow(
      'NONE',
    );
  });

  it.each([
    ['text/plain', 'héllo', { content: [{ type: 'text', text: 'héllo' }], isError: false }],
    [
      'application/json',
      '{"a":1}',
      { content: [{ type: 'text', text: '{"a":1}' }], structured: { a: 1 }, isError: false },
    ],
    ['application/problem+json', '[]', { content: [{ type: 'text', text: '[]' }], structured: [], isError: false }],
    ['application/json', 'not json', { content: [{ type: 'text', text: 'not json' }], isError: false }],
    ['image/png', 'PNG', { content: [{ type: 'image', data: 'UE5H', mimeType: 'image/png' }], isError: false }],
  ])('understands %s', async (type, body, expected) => {
    answer = (_, res) => res.setHeader('content-type', type).end(body);
    expect(await call({})).toEqual(expected);
  });

  it('keeps other bytes as a resource', async () => {
    answer = (_, res) => res.setHeader('content-type', 'application/pdf').end('%PDF');
    expect((await call({})).content).toEqual([
      { type: 'resource', uri: `${base}/x`, mimeType: 'application/pdf', blob: 'JVBERg==' },
    ]);
  });

  it('gives an error of the server to whoever called, once', async () => {
    answer = (_, res) => res.writeHead(503, { 'content-type': 'application/json' }).end('{"why":"tired"}');
    expect(await call({})).toEqual({
      content: [{ type: 'text', text: 'HTTP 503: {"why":"tired"}' }],
      structured: { why: 'tired' },
      isError: true,
    });
    answer = (req) => req.socket.destroy();
    await expect(call({})).rejects.toMatchObject({ code: 'unavailable' });
    expect(seen).toHaveLength(2);
  });

  it('takes no more than it may', async () => {
    answer = (_, res) => res.end('x'.repeat(1_001));
    await expect(call({ maxBytes: 1_000 })).rejects.toMatchObject({ code: 'too_large' });
    expect(textOf(await call({ maxBytes: 1_001 }))).toHaveLength(1_001);
  });

  it('closes the connection when its time is over, or nobody wants the answer', async () => {
    let closed = 0;
    answer = (req, res) => {
      res.write('a little');
      req.socket.on('close', () => closed++);
    };
    await expect(call({ timeoutSeconds: 0.05 })).rejects.toMatchObject({ code: 'timeout' });
    await eventually(() => closed === 1);
    const stop = new AbortController();
    const calling = call({}, {}, { signal: stop.signal });
    await eventually(() => seen.length === 2);
    stop.abort();
    await expect(calling).rejects.toMatchObject({ code: 'cancelled' });
    await eventually(() => closed === 2);
  });

  describe('that may not talk to private networks', () => {
    it.each(['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', '2130706433', '0x7f000001', '127.1'])(
      'does not reach %s',
      async (host) => {
        const { port } = new URL(base);
        await expect(call({ url: `http://${host}:${port}/`, allowPrivate: false })).rejects.toMatchObject({
          message: expect.stringContaining('private network'),
        });
        expect(seen).toEqual([]);
      },
    );
  });

  it('follows redirects, and judges each address on the way', async () => {
    const { port } = new URL(base);
    answer = (req, res) => {
      if (req.url === '/x') res.writeHead(302, { location: '/y' }).end();
      else if (req.url === '/y') res.writeHead(307, { location: `http://localhost:${port}/z` }).end();
      else res.end(`at ${req.url}`);
    };
    const headers = { Authorization: 'Bearer ${KEY}', 'X-Other': 'stays' };
    expect(textOf(await call({ method: 'POST', headers }, { a: 1 }))).toBe('at /z');
    expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['POST /x', 'GET /y', 'GET /z']);
    expect(seen.map(({ headers: sent }) => sent.authorization)).toEqual([
      'Bearer secret-key',
      'Bearer secret-key',
      undefined,
    ]);
    expect(seen[2]?.headers['x-other']).toBe('stays');
  });

  it.each([
    ['/x', 'redirects too often'],
    ['file:///etc/passwd', 'may not use'],
    ['http://', 'led nowhere'],
  ])('does not follow a redirect to %s for ever, or anywhere', async (location, message) => {
    answer = (_, res) => res.writeHead(302, { location }).end();
    await expect(call({})).rejects.toMatchObject({ code: 'failed', message: expect.stringContaining(message) });
    expect(seen.length).toBeLessThan(8);
  });

  it('does not tell more of an address than its host', async () => {
    const url = 'http://127.0.0.1:1/secret/path?key=${KEY}';
    await expect(call({ url })).rejects.toMatchObject({
      code: 'unavailable',
      message: '127.0.0.1:1 could not be reached: ECONNREFUSED.',
    });
  });
});
