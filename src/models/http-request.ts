import { type ClientRequest, type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { ModelError } from './model-error.ts';
import { Patience } from './patience.ts';

/**
 * One request to a backend. Not fetch, which can wait for ever for a peer that closes right after it has accepted, and
 * not a pool that connects on its own: here an abort closes the very socket, even one that is still connecting.
 */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly agent: PlainAgent | SecureAgent;
  /** To have a connection, TLS included. */
  readonly connectMs: number;
  /** From then to the head of the answer. */
  readonly firstByteMs: number;
  /** Aborted: the socket is closed, in whatever state it is, until the whole answer has been read. */
  readonly signal: AbortSignal;
}

/** Shorter than the five seconds after which common servers close: a request on a socket that is being closed is lost. */
const FREE_SOCKET_MS = 4_000;
const FREE_SOCKETS = 64;

export const agentFor = (url: URL): PlainAgent | SecureAgent => {
  const options = {
    keepAlive: true,
    timeout: FREE_SOCKET_MS,
    maxFreeSockets: FREE_SOCKETS,
    scheduling: 'lifo',
  } as const;
  return url.protocol === 'https:' ? new SecureAgent(options) : new PlainAgent(options);
};

const unreachable = (error: Error): ModelError => {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code?.startsWith('HPE_')) {
    return new ModelError('bad_answer', "The model's backend does not answer in HTTP.", { cause: error });
  }
  const why = code === undefined ? '' : ` (${code})`;
  return new ModelError('unavailable', `The model's backend cannot be reached${why}.`, { cause: error });
};

/** The head of the answer, its body still to be read. Throws a `ModelError`. */
export const sendRequest = ({ method, url, headers, body, agent, signal, ...limits }: HttpRequest) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const secure = url.protocol === 'https:';
    const request: ClientRequest = (secure ? secureRequest : plainRequest)(url, { method, headers, agent });
    const close = (): void => {
      request.destroy();
    };
    let patience: Patience | undefined;
    const allow = (ms: number, error: () => ModelError): void => {
      patience?.end();
      patience = new Patience(ms, () => {
        reject(error());
        close();
      });
    };
    const connected = (): void =>
      allow(limits.firstByteMs, () => new ModelError('timeout', "The model's backend did not answer in time."));

    if (signal.aborted) close();
    signal.addEventListener('abort', close);
    allow(limits.connectMs, () => unreachable(Object.assign(new Error('no connection'), { code: 'ETIMEDOUT' })));
    request.once('socket', (socket) => {
      if (request.reusedSocket) connected();
      else socket.once(secure ? 'secureConnect' : 'connect', connected);
    });
    request.once('response', (response) => {
      patience?.end();
      response.on('error', () => {}); // told by its end
      resolve(response);
    });
    request.on('error', (error) => reject(unreachable(error)));
    request.once('close', () => {
      patience?.end();
      signal.removeEventListener('abort', close);
      reject(unreachable(new Error('closed'))); // says nothing to who has the answer
    });
    request.end(body);
  });

/** The body as text, or as much of it as comes within these limits; what is longer is not read on. */
export const readText = (response: IncomingMessage, maxBytes: number, ms: number): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (): void => {
      clearTimeout(timer);
      if (!response.complete) response.destroy();
      resolve(Buffer.concat(chunks).toString().slice(0, maxBytes));
    };
    const timer = setTimeout(finish, ms);
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) finish();
    });
    response.once('close', finish);
  });
