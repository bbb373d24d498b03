import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Express } from 'express';
import request from 'supertest';
import { redactUrl } from '../../src/auth/redact.ts';
import { makeLogger, requestLogger } from '../../src/ops/logging.ts';

type Line = Record<string, unknown> & { msg: string; level: number; req: Record<string, unknown> };

const makeLog = (level: 'debug' | 'info' | 'silent' = 'debug', format: 'json' | 'pretty' = 'json') => {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  const logger = makeLogger({ level, format, redactUrl, destination });
  return { logger, written, lines: () => written.map((line) => JSON.parse(line) as Line) };
};

const INFO = 30;
const DEBUG = 20;
const WARN = 40;
const ERROR = 50;

describe('the log', () => {
  it('is one JSON object per line', () => {
    const { logger, written, lines } = makeLog();
    logger.info({ channel: 'a' }, 'one\ntwo');
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^[^\n]+\n$/);
    expect(lines()[0]).toMatchObject({ level: INFO, channel: 'a', msg: 'one\ntwo' });
  });

  it('is silent when told so', () => {
    const { logger, written } = makeLog('silent');
    logger.fatal('nobody hears');
    expect(written).toEqual([]);
  });

  it.each(['authorization', 'proxy-authorization', 'x-api-key', 'apikey', 'cookie', 'set-cookie', 'x-secrets'])(
    'never shows the header %s',
    (name) => {
      const { logger, written } = makeLog();
      const headers = { [name]: 'hunter2', accept: 'text/html' };
      logger.info(headers);
      logger.info({ headers });
      logger.info({ request: { headers } });
      logger.info({ reply: { request: { headers } } });
      logger.info({ req: { headers, method: 'GET', url: '/' } });
      logger.child({ request: { headers } }).info('of a child');
      logger.error(Object.assign(new Error('no'), { headers, request: { headers } }));
      logger.error({ cause: Object.assign(new Error('no'), { headers }), tries: [{ headers }] });
      logger.info({ headers: { [name.toUpperCase()]: 'hunter2' }, rawHeaders: [name, 'hunter2'] });
      expect(written).toHaveLength(9);
      expect(written.join('')).not.toContain('hunter2');
      expect(written[1]).toContain('text/html');
    },
  );

  it('never shows a token in a URL', () => {
    const { logger, written } = makeLog();
    logger.info({ url: '/events?token=hunter2' });
    logger.info({ originalUrl: '/events?ticket=hunter2' });
    logger.info({ req: { method: 'GET', url: '/events?token=hunter2', query: { token: 'hunter2' } } });
    expect(written.join('')).not.toContain('hunter2');
  });

  it('shows everything else as it is', () => {
    const { logger, lines } = makeLog();
    const at = new Date(0);
    const loop: Record<string, unknown> = { list: [1, { a: null }], bytes: Buffer.from('x'), at };
    logger.info({ ...loop, loop });
    loop.self = loop;
    logger.info({ loop });
    logger.error(new Error('why', { cause: new Error('because') }), 'what');
    expect(lines()[0]).toMatchObject({ list: [1, { a: null }], at: at.toISOString(), bytes: { type: 'Buffer' } });
    expect(lines()[1]).toMatchObject({ loop: { list: [1, { a: null }] } });
    expect(lines()[2]).toMatchObject({
      msg: 'what',
      err: { type: 'Error', stack: expect.stringContaining('because') },
    });
  });

  it('can be written for people', () => {
    const { logger, written } = makeLog('info', 'pretty');
    logger.info({ channel: 'a', headers: { cookie: 'hunter2' } }, 'hello');
    logger.error(new Error('oh dear'));
    expect(written[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}hello channel=a headers={"cookie":"\*\*\*"}\n$/);
    expect(written[1]).toMatch(/ERROR oh dear\nError: oh dear\n {4}at /);
  });
});

describe('a request', () => {
  const start = () => {
    const log = makeLog();
    const app: Express = express();
    app.use(requestLogger({ logger: log.logger }));
    app.get('/livez', (_, res) => void res.json({}));
    app.get('/readyz', (_, res) => void res.status(503).json({}));
    app.get('/away', (_, res) => void res.status(503).json({}));
    app.get('/events', (req, res) => {
      req.log.info('of the handler');
      res.json({ id: req.id });
    });
    const router = express.Router();
    router.get('/inner', (_, res) => void res.json({}));
    app.use('/outer', router);
    return { ...log, app };
  };

  it('is one line with method, URL, status and duration', async () => {
    const { app, lines } = start();
    await request(app).get('/outer/inner?token=hunter2&a=1').set('Authorization', 'Bearer hunter2').expect(200);
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).toMatchObject({
      level: INFO,
      msg: 'request completed',
      req: { method: 'GET', url: '/outer/inner?token=***&a=1' },
      res: { status: 200 },
      durationMs: expect.any(Number),
    });
    expect(JSON.stringify(lines())).not.toContain('hunter2');
  });

  it('keeps the id that it came with, in the answer and in every line', async () => {
    const { app, lines } = start();
    const { headers, body } = await request(app).get('/events').set('X-Request-Id', 'trace-1/a').expect(200);
    expect(headers['x-request-id']).toBe('trace-1/a');
    expect(body).toEqual({ id: 'trace-1/a' });
    expect(lines().map(({ msg, requestId }) => [msg, requestId])).toEqual([
      ['of the handler', 'trace-1/a'],
      ['request completed', 'trace-1/a'],
    ]);
  });

  it.each(['', 'a b', 'x'.repeat(129), 'caf\u00e9'])('gets another id for %j', async (id) => {
    const { app } = start();
    const { headers } = await request(app).get('/events').set('X-Request-Id', id).expect(200);
    expect(headers['x-request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });

  it('gets an id of its own if it has none', async () => {
    const { app } = start();
    const ids = await Promise.all([1, 2].map(async () => (await request(app).get('/events')).headers['x-request-id']));
    expect(new Set(ids).size).toBe(2);
  });

  it('of a probe is not in the way', async () => {
    const { app, lines } = start();
    await request(app).get('/livez?verbose').expect(200);
    await request(app).get('/readyz').expect(503);
    expect(lines().map(({ level }) => level)).toEqual([DEBUG, WARN]);
  });

  it('that failed is an error, without a stack that says nothing', async () => {
    const { app, lines } = start();
    await request(app).get('/away').expect(503);
    expect(lines()).toMatchObject([{ level: ERROR, msg: 'request failed', res: { status: 503 } }]);
    expect(lines()[0]).not.toHaveProperty('err');
  });

  it('that the client leaves is logged when it is over', async () => {
    const log = makeLog();
    const app = express();
    app.use(requestLogger({ logger: log.logger }));
    const over = new Promise<void>((resolve) => {
      app.get('/stream', (_, res) => {
        res.on('close', () => setImmediate(resolve));
        res.write(': hello\n\n');
      });
    });
    const server = app.listen(0, '127.0.0.1');
    try {
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const client = get({ port, host: '127.0.0.1', path: '/stream', agent: false });
      const [answer] = (await once(client, 'response')) as [IncomingMessage];
      answer.on('error', () => {}); // it is cut on purpose
      expect(answer.statusCode).toBe(200);
      expect(log.lines()).toEqual([]);
      client.destroy();
      await over;
      expect(log.lines()).toMatchObject([{ level: INFO, msg: 'request closed', res: { status: 200 } }]);
    } finally {
      server.close();
    }
  });
});
