import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { Readable } from 'node:stream';
import type { Remote } from './remote.ts';

export interface Question {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** It is given up when nothing comes for this long. */
  readonly silenceMs: number;
}

/**
 * Asks a gateway. Not with `fetch`: that of Node 20 waits for ever if the other side closes the connection before the
 * request is written, and the process then ends in the middle without a word.
 */
export const ask = ({ token }: Remote, url: URL, question: Question): Promise<Response> => {
  const { method = 'GET', headers = {}, body, signal, silenceMs } = question;
  const request = url.protocol === 'https:' ? tlsRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      method,
      headers: { ...headers, Authorization: `Bearer ${token}` },
      agent: false, // a connection of its own, that nobody keeps
      timeout: silenceMs,
      ...(signal && { signal }),
    });
    asked.once('timeout', () => asked.destroy(new Error(`nothing came for ${silenceMs / 1_000} s`)));
    asked.on('error', reject);
    asked.once('response', (answer) => {
      const { statusCode: status = 0, statusMessage: statusText = '' } = answer;
      const type = answer.headers['content-type'];
      const content = status === 204 || status === 304 ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
      resolve(new Response(content, { status, statusText, ...(type && { headers: { 'Content-Type': type } }) }));
    });
    asked.end(body);
  });
};
