// A model backend for bench/models.ts, in a process of its own. The request says what to send: `count` chunks, `pauseMs`
// between two of them (0: as fast as the reader takes them). Every chunk carries the time it was written, in microseconds
// of the monotonic clock, which all processes of a machine share.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const head = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench-1","choices":[{"index":0,"delta":`;
const tail = `,"logprobs":null,"finish_reason":null}]}`;
const chunk = (): string => `data: ${head}{"content":"t${process.hrtime.bigint() / 1_000n} word"}${tail}\n\n`;

const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
  let body = '';
  for await (const bytes of req) body += String(bytes);
  const { count, pauseMs } = JSON.parse(body) as { count: number; pauseMs: number };
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  // Streams that begin together would all speak in the same moment.
  if (pauseMs > 0) await sleep(Math.random() * pauseMs);
  for (let i = 0; i < count; i++) {
    if (!res.write(chunk())) await once(res, 'drain');
    if (pauseMs > 0) await sleep(pauseMs);
  }
  res.end(`data: ${head}{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`);
};

const server = createServer((req, res) => void answer(req, res));
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') console.log(address.port);
});
process.once('disconnect', () => process.exit(0)); // with whoever started it
