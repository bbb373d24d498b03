import { lookup as resolveName } from 'node:dns';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { ToolError } from '../tool.ts';
import { isPrivateAddress } from './private-address.ts';

export interface GuardedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly allowPrivate: boolean;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

export interface GuardedAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Where a redirect leads to another origin, these stay behind. */
const FOR_THE_ORIGIN = ['authorization', 'cookie', 'proxy-authorization'];

const refused = (host: string): ToolError =>
  new ToolError('failed', `${host} is an address of a private network, which this tool may not use.`);

/**
 * Names are judged when they are resolved for the connection itself: a name that is looked up once for the check and once
 * for the connection may lead to two places.
 */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  resolveName(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0);
    const bad = addresses.find(({ address }) => isPrivateAddress(address));
    const [first] = addresses;
    if (bad || !first) return callback(refused(hostname), '', 0);
    return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
  });
};

const AGENTS = {
  'http:': { open: new HttpAgent({ keepAlive: false }), request: httpRequest },
  'https:': { open: new HttpsAgent({ keepAlive: false }), request: httpsRequest },
} as const;

const once = (request: GuardedRequest): Promise<IncomingMessage> => {
  const { url, method, headers, body, allowPrivate, signal } = request;
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ToolError('failed', `A redirect led to ${url.protocol}, which this tool may not use.`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!allowPrivate && isIP(host) !== 0 && isPrivateAddress(host)) throw refused(host);
  const { open, request: send } = AGENTS[url.protocol];
  return new Promise((resolve, reject) => {
    const sent = send(
      url,
      {
        method,
        headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
        agent: open,
        signal,
        ...(!allowPrivate && { lookup: publicLookup }),
      },
      resolve,
    );
    sent.on('error', reject);
    sent.end(body);
  });
};

const bodyOf = async (answer: IncomingMessage, maxBytes: number): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > maxBytes) {
      answer.destroy();
      throw new ToolError('too_large', `The answer is larger than ${maxBytes} bytes.`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
};

const withoutSecrets = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !FOR_THE_ORIGIN.includes(name.toLowerCase())));

const redirected = (request: GuardedRequest, status: number, location: string): GuardedRequest => {
  if (!URL.canParse(location, request.url.href)) throw new ToolError('failed', 'A redirect led nowhere.');
  const url = new URL(location, request.url);
  const headers = url.origin === request.url.origin ? request.headers : withoutSecrets(request.headers);
  if (status === 307 || status === 308 || request.method === 'GET' || request.method === 'HEAD') {
    return { ...request, url, headers };
  }
  const { body: _, ...rest } = request;
  return { ...rest, method: 'GET', url, headers };
};

/** One request, over its redirects; each address on the way is judged. Sent once: what fails is not tried again. */
export const guardedRequest = async (request: GuardedRequest): Promise<GuardedAnswer> => {
  let current = request;
  for (let redirects = 0; ; redirects++) {
    const answer = await once(current);
    const status = answer.statusCode ?? 0;
    const { location } = answer.headers;
    if (!REDIRECTS.includes(status) || location === undefined) {
      const contentType = answer.headers['content-type'] ?? '';
      return { status, contentType, body: await bodyOf(answer, request.maxBytes) };
    }
    answer.destroy();
    if (redirects === MAX_REDIRECTS) throw new ToolError('failed', 'The address redirects too often.');
    current = redirected(current, status, location);
  }
};
