import { createServer, type Socket } from 'node:net';
import type { Outcome } from '../../../src/environments/environment.ts';
import { json, OK, OrsServer, type OrsServerOptions } from '../../support/ors-server.ts';
import { running } from '../../support/running.ts';
import { echo, gate, open, until, upstream } from './support.ts';

// White space where pieces begin and end, characters of two and four bytes, and line ends of other alphabets.
const TEXT = `  a  b   ${' '.repeat(30)}\u00e9\u2028\u{1f600}\u{1f600} \\" end `;
const expected = (text: string): Outcome => ({
  ok: true,
  output: { blocks: [{ text, detail: null, type: 'text' }], metadata: null, reward: 1, finished: false },
});

const start = async (options: OrsServerOptions = {}, given: Parameters<typeof upstream>[1] = {}) => {
  const server = await OrsServer.start(options);
  const episode = await open(upstream(server, given));
  const posts = () => server.requests.filter(({ path }) => path === '/lab/call');
  return { server, episode, posts };
};

describe('a call on an upstream', () => {
  it.each([
    { lineEnd: '\r\n' },
    { lineEnd: '\n' },
    { lineEnd: '\r\n', tight: true },
    { lineEnd: '\n', pieceLength: 1 },
  ] as const)('is put together from its pieces, not one blank lost: %j', async (options) => {
    const { episode } = await start(options);
    // The blank behind the colon is optional, so what begins with one cannot be written without it.
    const text = 'tight' in options ? TEXT.repeat(200).replaceAll(' ', '_') : TEXT.repeat(200);
    expect(await episode.call(echo(text))).toEqual(expected(text));
  });

  it('runs once and gives the same result wherever the connection is cut', async () => {
    const { server, episode, posts } = await start({ pieceLength: 30 });
    await episode.call(echo(TEXT));
    const length = server.lastLength;
    expect(length).toBeGreaterThan(500);
    const known = { unknown: 0, same: 0 };
    for (let cut = 0; cut < length; cut++) {
      server.cuts.push(cut);
      server.executions.length = 0;
      const before = posts().length;
      const result = await episode.call(echo(TEXT)).catch((error: Error) => error);
      if (result instanceof Error) {
        expect(result.message).toBe('The connection to the upstream was lost: it is not known whether the tool ran.');
        expect(posts().length - before).toBe(1);
        known.unknown++;
      } else {
        expect(result).toEqual(expected(TEXT));
        known.same++;
      }
      expect(server.executions).toEqual(['echo']);
    }
    // Without the whole id it cannot be asked for again.
    const head = Buffer.byteLength(
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    const id = Buffer.byteLength(`39\r\n${server.frame('task_id', 'x'.repeat(32))}`);
    expect(known).toEqual({ unknown: head + id, same: length - head - id });
  }, 60_000);

  it('runs once wherever the connection is cut, the id included, if the upstream keeps to the key', async () => {
    const { server, episode } = await start({ pieceLength: 30, honoursKeys: true });
    await episode.call(echo(TEXT));
    const length = server.lastLength;
    for (let cut = 0; cut < length; cut++) {
      server.cuts.push(cut);
      server.executions.length = 0;
      expect(await episode.call(echo(TEXT))).toEqual(expected(TEXT));
      expect(server.executions).toEqual(['echo']);
    }
  }, 60_000);

  it('is asked for by its id over many cuts, with the same key and body', async () => {
    const { server, episode, posts } = await start();
    server.cuts.push(400, 300, 250, 400);
    const call = echo(TEXT.repeat(100));
    expect(await episode.call(call)).toEqual(expected(TEXT.repeat(100)));
    const [id] = server.tasks.keys();
    expect(posts().map(({ body }) => body.task_id)).toEqual([undefined, id, id, id, id]);
    expect(new Set(posts().map(({ headers }) => headers['idempotency-key']))).toEqual(new Set([call.taskId]));
    expect(posts().map(({ body }) => body.input)).toEqual(posts().map(() => call.input));
    expect(server.executions).toHaveLength(1);
  });

  it('stops trusting the key when another server stands there', async () => {
    const { server, episode } = await start({ honoursKeys: true });
    await episode.call(echo('a'));
    server.answer = ({ path, response }) => {
      if (path !== '/lab/call') return false;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(server.frame('task_id', 'x') + server.frame('end', OK('b')));
      return true;
    };
    await episode.call(echo('b'));
    server.answer = () => false;
    server.cuts.push(0);
    await expect(episode.call(echo('c'))).rejects.toThrow('it is not known whether the tool ran');
  });

  it('is not known any more: the tool does not run a second time', async () => {
    const { server, episode, posts } = await start({ honoursKeys: true });
    server.cuts.push(300);
    server.answer = ({ path, body }) => {
      if (path === '/lab/call' && body.task_id !== undefined) server.tasks.clear();
      return false;
    };
    await expect(episode.call(echo(TEXT.repeat(100)))).rejects.toMatchObject({
      code: 'failed',
      message: 'The upstream no longer knows the call: it is not known whether the tool ran to its end.',
    });
    expect(server.executions).toHaveLength(1);
    expect(posts()).toHaveLength(2);
  });

  it('keeps the words of a tool that fails with "unknown task_id"', async () => {
    const fail = () => Promise.reject(new Error('unknown task_id'));
    const { server, episode } = await start({ tools: { echo: fail } });
    server.cuts.push(220);
    await expect(episode.call(echo('a'))).rejects.toMatchObject({ code: 'failed', message: 'unknown task_id' });
  });

  it('passes the lines of an error on, up to a limit', async () => {
    const tools = {
      lines: () => Promise.reject(new Error('one\n  two\n\nfour')),
      long: () => Promise.reject(new Error('\u00e9'.repeat(20_000))),
      mute: () => Promise.reject(new Error('')),
    };
    const { episode } = await start({ tools });
    const failure = (name: string) => episode.call(echo('', { name })).catch((error: Error) => error.message);
    expect(await failure('lines')).toBe('one\n  two\n\nfour');
    expect(await failure('long')).toBe(`${'\u00e9'.repeat(8_192)}…`);
    expect(await failure('mute')).toBe('The tool failed and did not say why.');
  });

  it('fails when its result is larger than it may be, in many pieces or in one', async () => {
    for (const pieceLength of [100, 1_000_000]) {
      const { episode, server } = await start({ pieceLength }, { maxResultBytes: 2_000 });
      await expect(episode.call(echo('a'.repeat(3_000)))).rejects.toThrow('larger than 2000 bytes');
      expect(await episode.call(echo('a'.repeat(1_000)))).toMatchObject({ ok: true });
      expect(server.executions).toHaveLength(2);
    }
  });

  it('is lost when nothing has come for long, and asked for again as long as the upstream is there', async () => {
    const go = gate<string>();
    const times = { silentMs: 30, giveUpMs: 20 };
    const { server, episode, posts } = await start({ tools: { echo: () => go.opened } }, { times });
    const result = episode.call(echo('a'));
    await until(() => posts().length > 3);
    // A tool that holds up its whole server: connections are accepted, and that is all.
    server.answer = ({ path }) => path === '/lab/call';
    const before = posts().length;
    await until(() => posts().length > before + 3);
    server.answer = () => false;
    go.open(OK('late'));
    expect(await result).toEqual(expected('late'));
    expect(server.executions).toHaveLength(1);
  });

  it('is not lost while pings come', async () => {
    const { episode, posts } = await start(
      {
        tools: {
          echo: async ({ ping }) => {
            for (let i = 0; i < 10; i++) {
              ping();
              await new Promise((resolve) => setTimeout(resolve, 50));
            }
            return OK('a');
          },
        },
      },
      { times: { silentMs: 300 } },
    );
    expect(await episode.call(echo('a'))).toEqual(expected('a'));
    expect(posts()).toHaveLength(1);
  });

  it('is not given up for silence before it has an id', async () => {
    const { server, episode, posts } = await start({}, { times: { silentMs: 10 } });
    const held = gate();
    let asked = false;
    server.answer = ({ path, response }) => {
      if (path !== '/lab/call' || asked) return false;
      asked = true;
      void held.opened.then(() => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(server.frame('task_id', 'x') + server.frame('end', OK('b')));
      });
      return true;
    };
    const result = episode.call(echo('a'));
    await new Promise((resolve) => setTimeout(resolve, 60));
    held.open();
    expect(await result).toEqual(expected('b'));
    expect(posts()).toHaveLength(1);
  });

  it.each([429, 503])('waits while the upstream answers %i, for the tool has not run', async (status) => {
    const { server, episode } = await start();
    let refusals = 5;
    server.answer = ({ path, response }) => {
      if (path !== '/lab/call' || refusals-- <= 0) return false;
      json(response, status, { detail: 'later' });
      return true;
    };
    expect(await episode.call(echo('a'))).toEqual(expected('a'));
    expect(server.executions).toHaveLength(1);
  });

  it.each([
    [429, 'busy'],
    [503, 'unavailable'],
  ])('gives up when the upstream answers %i for too long: %s', async (status, code) => {
    let time = 0;
    const now = () => {
      time += 100;
      return time;
    };
    const { server, episode, posts } = await start({}, { now, times: { giveUpMs: 5_000 } });
    server.answer = ({ path, response }) => {
      if (path === '/lab/call') json(response, status, { detail: 'later' });
      return path === '/lab/call';
    };
    await expect(episode.call(echo('a'))).rejects.toMatchObject({ code });
    expect(posts().length).toBeGreaterThan(5);
  });

  it.each([502, 504])('does not send again what a proxy may have passed on: %i', async (status) => {
    const { server, episode, posts } = await start();
    server.answer = ({ path, response }) => {
      if (path === '/lab/call') json(response, status, {});
      return path === '/lab/call';
    };
    await expect(episode.call(echo('a'))).rejects.toThrow('it is not known whether the tool ran');
    expect(posts()).toHaveLength(1);
  });

  it('asks again through a proxy that fails, once it has an id, but not for ever', async () => {
    let time = 0;
    const now = () => {
      time += 100;
      return time;
    };
    const { server, episode, posts } = await start({}, { now, times: { giveUpMs: 5_000 } });
    let failures = 3;
    server.answer = ({ path, body, response }) => {
      if (path !== '/lab/call' || body.task_id === undefined || failures-- <= 0) return false;
      json(response, 502, {});
      return true;
    };
    server.cuts.push(300);
    expect(await episode.call(echo(TEXT.repeat(100)))).toEqual(expected(TEXT.repeat(100)));
    failures = 1_000;
    server.cuts.push(300);
    await expect(episode.call(echo(TEXT.repeat(100)))).rejects.toMatchObject({
      code: 'failed',
      message: 'The upstream was away for 5 s during the call: it is not known whether the tool ran to its end.',
    });
    expect(posts().length).toBeLessThan(100);
    expect(server.executions).toHaveLength(2);
  });

  it('is sent again as long as no connection was made', async () => {
    const { server, episode } = await start({ brief: true });
    await server.stop();
    const { port } = new URL(server.url);
    const result = episode.call(echo('a', { name: 'late' }));
    const again = await OrsServer.start({ tools: { late: () => OK('there') } }, Number(port));
    for (const [sid, session] of server.sessions) again.sessions.set(sid, session);
    expect(await result).toEqual(expected('there'));
    expect(server.executions).toEqual([]);
    expect(again.executions).toEqual(['late']);
  });

  it('is not sent again when the connection was made and nothing came back', async () => {
    const { server, episode } = await start({ brief: true });
    await server.stop();
    let received = 0;
    const sockets = new Set<Socket>();
    const deaf = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => {
        received++;
        socket.resetAndDestroy();
      });
    });
    await new Promise<void>((resolve) => {
      deaf.listen(Number(new URL(server.url).port), '127.0.0.1', resolve);
    });
    running.add({
      stop: async () => {
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => deaf.close(resolve));
      },
    });
    await expect(episode.call(echo('a'))).rejects.toThrow('it is not known whether the tool ran');
    expect(received).toBe(1);
  });

  it('says unavailable when the upstream never was there', async () => {
    const { server, episode } = await start({ brief: true }, { times: { giveUpMs: 30 } });
    await server.stop();
    await expect(episode.call(echo('a'))).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The upstream cannot be reached (ECONNREFUSED).',
    });
  });

  it.each([404, 410])('is gone with its episode (%i), and so are later ones without being sent', async (status) => {
    const { server, episode, posts } = await start();
    server.answer = ({ path, response }) => {
      if (path === '/lab/call') json(response, status, { detail: 'Active environment not found' });
      return path === '/lab/call';
    };
    await expect(episode.call(echo('a'))).rejects.toMatchObject({ code: 'gone' });
    await expect(episode.call(echo('a'))).rejects.toMatchObject({ code: 'gone' });
    expect(posts()).toHaveLength(1);
  });

  it.each([
    [422, { detail: [{ loc: ['body', 'input'], msg: 'is missing', input: 'hush' }] }, 'body.input: is missing'],
    [500, { detail: 'RuntimeError: no disk' }, 'RuntimeError: no disk'],
    [401, { detail: 'no' }, "refuses the gateway's credentials"],
    [308, {}, 'redirect'],
  ])('fails with the words of a refusal (%i)', async (status, body, words) => {
    const { server, episode } = await start();
    server.answer = ({ path, response }) => {
      if (path === '/lab/call') json(response, status, body);
      return path === '/lab/call';
    };
    const error = await episode.call(echo('a')).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'failed', message: expect.stringContaining(words) });
    expect((error as Error).message).not.toContain('hush');
  });

  it('does not take an answer that is no stream of events', async () => {
    const { server, episode } = await start();
    server.answer = ({ path, response }) => {
      if (path === '/lab/call') json(response, 200, { ok: true });
      return path === '/lab/call';
    };
    await expect(episode.call(echo('a'))).rejects.toThrow('did not answer with a stream of events');
  });

  it('ends with the reason of its signal, while it is read and between two attempts', async () => {
    const stopped = new Error('time is over');
    const begun = gate();
    const never = new Promise<string>(() => {});
    const tools = {
      echo: () => {
        begun.open();
        return never;
      },
    };
    const { server, episode } = await start({ tools }, { callRetries: { firstDelayMs: 60_000 } });
    const reading = new AbortController();
    const first = episode.call(echo('a', { signal: reading.signal }));
    await begun.opened;
    reading.abort(stopped);
    await expect(first).rejects.toBe(stopped);
    const waiting = new AbortController();
    const refused = gate();
    server.answer = ({ path, response }) => {
      if (path !== '/lab/call') return false;
      response.once('close', () => setImmediate(refused.open));
      json(response, 503, {});
      return true;
    };
    const second = episode.call(echo('a', { signal: waiting.signal }));
    await refused.opened;
    waiting.abort(stopped);
    await expect(second).rejects.toBe(stopped);
    await expect(episode.call(echo('a', { signal: AbortSignal.abort(stopped) }))).rejects.toBe(stopped);
    expect(server.executions).toHaveLength(1);
  });

  it('does not disturb others that run at the same time, with the same signal', async () => {
    const { server, episode } = await start();
    server.cuts.push(250, undefined, 300, undefined, 350);
    const texts = Array.from({ length: 20 }, (_, i) => `${i} ${TEXT.repeat(100)}`);
    const { signal } = new AbortController();
    const results = texts.map((text) => episode.call(echo(text, { signal })));
    expect(await Promise.all(results)).toEqual(texts.map(expected));
    expect(server.executions).toHaveLength(20);
  });
});
