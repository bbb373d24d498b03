import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { running } from '../../support/running.ts';

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Answers one call in its own way: gets the response before anything was written. */
export type Answer = (response: ServerResponse, id: number) => void;

export const json = (response: ServerResponse, body: unknown): void => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
};

/** A server of streamable HTTP of our own making, for all that the reference server does not do wrong. */
export class HttpMcpServer {
  /** The calls that were really carried out. */
  readonly calls: string[] = [];
  readonly notified: string[] = [];
  readonly headers: IncomingMessage['headers'][] = [];
  readonly sessions = new Set<string>();
  /** How many sessions there have been. */
  begun = 0;
  /** Of every answer, instead of the right one. */
  status: number | undefined;
  /** How calls of these tools are answered. */
  readonly answers: Record<string, Answer> = {
    echo: (response, id) =>
      json(response, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'echo' }] } }),
  };
  /** What a stream that was cut goes on with, by the last id that was seen of it. */
  readonly rest = new Map<string, string>();
  private readonly server: Server;

  private constructor() {
    this.server = createServer((request, response) => void this.take(request, response));
  }

  static async start(): Promise<HttpMcpServer> {
    const server = new HttpMcpServer();
    running.add(server);
    await new Promise<void>((resolve) => server.server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async stop(): Promise<void> {
    running.delete(this);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.headers.push(request.headers);
    const body = await text(request);
    if (this.status !== undefined) {
      // As some do: the answer repeats what was sent.
      response.writeHead(this.status).end(`refused ${request.headers.authorization} ${body}`);
      return;
    }
    if (request.method === 'GET') {
      const rest = this.rest.get(String(request.headers['last-event-id']));
      if (rest === undefined) return void response.writeHead(405).end();
      return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(rest);
    }
    const session = String(request.headers['mcp-session-id']);
    if (request.method === 'DELETE') {
      this.sessions.delete(session);
      return void response.writeHead(200).end();
    }
    const message = JSON.parse(body) as Message;
    if (message.method === 'initialize') return this.initialize(response, message);
    if (!this.sessions.has(session)) return void response.writeHead(404).end('unknown session');
    this.answer(response, message);
  }

  private initialize(response: ServerResponse, { id, params }: Message): void {
    const session = `session-${++this.begun}`;
    this.sessions.add(session);
    response.setHeader('mcp-session-id', session);
    const { protocolVersion } = params ?? {};
    const result = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'own', version: '1' } };
    json(response, { jsonrpc: '2.0', id, result });
  }

  private answer(response: ServerResponse, { id, method, params }: Message): void {
    if (id === undefined) {
      this.notified.push(method);
      return void response.writeHead(202).end();
    }
    if (method === 'tools/list') {
      const tools = Object.keys(this.answers).map((name) => ({ name, inputSchema: { type: 'object' } }));
      json(response, { jsonrpc: '2.0', id, result: { tools } });
      return;
    }
    const name = String(params?.name);
    this.calls.push(name);
    (this.answers[name] as Answer)(response, id);
  }
}
