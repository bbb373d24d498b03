import { randomUUID } from 'node:crypto';
import { tokenFor } from '../support/gateway.ts';

/** Two agents: one that writes, counts and fails, and one that is soon tired. */
export const MANIFESTS = `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: writer, version: 1.0.0, description: Writes. }
spec:
  role: You write.
  llm: { provider: openai, model: demo }
  transport: { sse: { enabled: true, endpoint: /events, channels: [content.published] } }
  tools: [{ name: count, type: function, description: Counts. }]
  capabilities:
    - name: write_text
      description: Writes something.
      input_schema: { type: object, properties: { prompt: { type: string } }, required: [prompt] }
    - { name: secret_work, scopes: [very.special], timeout_seconds: 5 }
    - name: count
    - name: missing_tool
runtime:
  bindings:
    count: { tool: count }
    missing_tool: { tool: nothing_there }
---
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: limited, version: 1.0.0 }
spec:
  role: You are limited.
  capabilities: [often, count]
  safety: { rate_limiting: { enabled: true, requests_per_minute: 1, burst_limit: 1 } }
`;

export interface Sent {
  /** Path and query; that of the route unless it has parameters. */
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Undefined: none. A string is sent as it is. */
  readonly body?: unknown;
  /** How an answer that is a stream is known to have come far enough. */
  readonly until?: string;
  readonly at?: 'gateway' | 'tight' | 'stopping' | 'empty';
}
export type Row = readonly [route: string, status: number, what: string, sent: () => Sent];

export const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });
const all = tokenFor({ sub: 'ann', scope: 'capabilities admin ors' });
export const ann = bearer(all);
const nobody = bearer(tokenFor({ sub: 'nobody', subscribe: ['mine'], publish: ['mine'] }));
const polling = { ...ann, Accept: 'application/json' };
const evil = { Cookie: `session=${all}`, Origin: 'https://evil.example' };
const tooLong = bearer(tokenFor({ subscribe: Array.from({ length: 400 }, (_, i) => `channel.number.${i}`) }));
export const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const unknownId = 'msg-01a1edd3-f383-7000-8000-0000040ebe49';
const large = (bytes: number): string => ' '.repeat(bytes + 1);
const BODY_BYTES = 8 * 1024 * 1024;

/** What is only known once the gateway runs. */
export const known = { ticketUrl: '', result: '', failed: '', counted: '', last: '', streamUrl: '' };
export const stream = (id: string, more: Partial<Sent> = {}) => ({
  target: `/events/stream/${id}`,
  headers: ann,
  until: '"final":true',
  ...more,
});

/** Requests that together get every answer that the document describes; those that concern only the token apart. */
// biome-ignore format: one row per line
export const ROWS: readonly Row[] = [
  ['GET /', 200, 'anybody', () => ({})],
  ['GET /health', 200, 'anybody', () => ({})],
  ['GET /livez', 200, 'anybody', () => ({})],
  ['GET /openapi.json', 200, 'anybody', () => ({})],
  ['GET /readyz', 200, 'anybody', () => ({})],
  ['GET /readyz', 200, 'an administrator', () => ({ headers: ann })],
  ['GET /readyz', 503, 'an administrator, while it stops', () => ({ headers: ann, at: 'stopping' })],
  ['GET /metrics', 200, 'an administrator', () => ({ headers: ann })],
  ['GET /metrics', 403, 'somebody else', () => ({ headers: nobody })],
  ['POST /auth/ticket', 201, 'a path', () => ({ headers: ann, body: { url: '/events?channels=a' } })],
  ['POST /auth/ticket', 201, 'a whole URL', () => ({ headers: ann, body: { url: 'https://gateway.example/events' } })],
  ['POST /auth/ticket', 400, 'a URL of another scheme', () => ({ headers: ann, body: { url: 'file:///etc' } })],
  ['POST /auth/ticket', 403, 'a page elsewhere', () => ({ headers: evil, body: { url: '/events' } })],
  ['POST /auth/ticket', 413, 'a large body', () => ({ headers: ann, body: large(65_536) })],
  ['POST /auth/session', 201, 'a token', () => ({ headers: ann })],
  ['POST /auth/session', 400, 'a token that no cookie can hold', () => ({ headers: tooLong })],
  ['DELETE /auth/session', 204, 'anybody', () => ({})],
  ['DELETE /auth/session', 403, 'a page elsewhere', () => ({ headers: evil })],
  ['GET /events', 200, 'every type of event', () => ({ target: '/events?channels=content.**,other', headers: { ...ann, 'Last-Event-ID': unknownId }, until: '"last"' })],
  ['GET /events', 200, 'an id of nobody', () => ({ target: '/events?channels=content.published&lastEventId=x', headers: ann, until: 'resync' })],
  ['GET /events', 200, 'what manifests declare', () => ({ headers: ann, until: 'connected' })],
  ['GET /events', 200, 'a ticket', () => ({ target: known.ticketUrl, until: 'connected' })],
  ['GET /events', 200, 'the stream of a capability', () => ({ target: `/events?stream=${known.result}`, headers: ann, until: '"final":true' })],
  ['GET /events', 200, 'the task of a capability', () => ({ target: `/events?task=${known.result}`, headers: ann, until: '"final":true' })],
  ['GET /events', 200, 'long-polling of what was lost', () => ({ target: `/events?channels=content.**&cursor=${unknownId}&wait=1`, headers: polling })],
  ['GET /events', 200, 'long-polling of nothing', () => ({ target: '/events?channels=quiet&wait=0.1', headers: polling })],
  ['GET /events', 204, 'the end of a capability', () => ({ target: `/events?stream=${known.result}&lastEventId=${known.last}`, headers: ann })],
  ['GET /events', 400, 'no channel', () => ({ target: '/events?channels=', headers: ann })],
  ['GET /events', 400, 'a wait of words', () => ({ target: '/events?channels=a&wait=long', headers: polling })],
  ['GET /events', 403, 'a channel that is not granted', () => ({ target: '/events?channels=yours', headers: nobody })],
  ['GET /events', 404, 'a stream that is not there', () => ({ target: `/events?stream=${randomUUID()}`, headers: ann })],
  ['GET /events', 429, 'one stream too many', () => ({ target: '/events?channels=a', headers: ann, at: 'tight' })],
  ['POST /events', 201, 'an event', () => ({ headers: { ...ann, 'Idempotency-Key': 'k', traceparent: trace }, body: { channel: 'a', data: 1, correlationId: 'c' } })],
  ['POST /events', 201, 'the same again', () => ({ headers: { ...ann, 'Idempotency-Key': 'k', traceparent: trace }, body: { channel: 'a', data: 1, correlationId: 'c' } })],
  ['POST /events', 201, 'a list', () => ({ headers: ann, body: [{ channel: 'a', data: null }, { channel: 'b', type: 'error', data: [] }] })],
  ['POST /events', 400, 'no channel', () => ({ headers: ann, body: { data: 1 } })],
  ['POST /events', 403, 'a reserved channel', () => ({ headers: ann, body: { channel: 'gateway.stats', data: 1 } })],
  ['POST /events', 409, 'the key of another event', () => ({ headers: { ...ann, 'Idempotency-Key': 'used' }, body: { channel: 'a', data: 2 } })],
  ['POST /events', 413, 'a large event', () => ({ headers: ann, body: { channel: 'a', data: 'x'.repeat(65_536) } })],
  ['POST /events', 429, 'one event too many', () => ({ headers: ann, body: { channel: 'a', data: 1 }, at: 'tight' })],
  ['POST /capabilities/{name}', 202, 'its input', () => ({ target: '/capabilities/write_text', headers: { ...ann, 'X-Correlation-ID': 'req', 'Idempotency-Key': 'c' }, body: { prompt: 'Hi.' } })],
  ['POST /capabilities/{name}', 400, 'an input that does not fit', () => ({ target: '/capabilities/write_text', headers: ann, body: {} })],
  ['POST /capabilities/{name}', 403, 'a scope that is missing', () => ({ target: '/capabilities/secret_work', headers: ann, body: {} })],
  ['POST /capabilities/{name}', 404, 'a name of nobody', () => ({ target: '/capabilities/none', headers: ann, body: {} })],
  ['POST /capabilities/{name}', 409, 'a name of two', () => ({ target: '/capabilities/count', headers: ann, body: {} })],
  ['POST /capabilities/{name}', 413, 'a large body', () => ({ target: '/capabilities/often', headers: ann, body: large(BODY_BYTES) })],
  ['POST /capabilities/{name}', 429, 'one too many', () => ({ target: '/capabilities/often', headers: ann, body: {} })],
  ['POST /capabilities/{name}/invoke', 202, 'input and options', () => ({ target: '/capabilities/writer.write_text/invoke', headers: ann, body: { input: { prompt: 'Hi.' }, options: { timeout_seconds: 5, priority: 'low', correlationId: 'c' } } })],
  ['POST /capabilities/{name}/invoke', 400, 'a field that nobody knows', () => ({ target: '/capabilities/write_text/invoke', headers: ann, body: { prompt: 'Hi.' } })],
  ['POST /capabilities/{name}/invoke', 403, 'no scope', () => ({ target: '/capabilities/write_text/invoke', headers: nobody, body: {} })],
  ['POST /capabilities/{name}/invoke', 404, 'a name of nobody', () => ({ target: '/capabilities/none/invoke', headers: ann, body: {} })],
  ['POST /capabilities/{name}/invoke', 409, 'a name of two', () => ({ target: '/capabilities/count/invoke', headers: ann, body: {} })],
  ['POST /capabilities/{name}/invoke', 413, 'a large body', () => ({ target: '/capabilities/often/invoke', headers: ann, body: large(BODY_BYTES) })],
  ['POST /capabilities/{name}/invoke', 429, 'one too many', () => ({ target: '/capabilities/often/invoke', headers: ann, body: {} })],
  ['GET /events/stream/{id}', 200, 'an answer in pieces', () => stream(known.result)],
  ['GET /events/stream/{id}', 200, 'the ticket of the one who asked', () => stream(known.result, { target: known.streamUrl, headers: {} })],
  ['GET /events/stream/{id}', 200, 'progress', () => stream(known.counted)],
  ['GET /events/stream/{id}', 200, 'a failure', () => stream(known.failed)],
  ['GET /events/stream/{id}', 200, 'an id of nobody', () => stream(known.result, { target: `/events/stream/${known.result}?lastEventId=x` })],
  ['GET /events/stream/{id}', 204, 'the end', () => stream(known.result, { headers: { ...ann, 'Last-Event-ID': known.last } })],
  ['GET /events/stream/{id}', 400, 'a path that cannot be decoded', () => stream('%zz')],
  ['GET /events/stream/{id}', 404, 'a stream of somebody else', () => stream(known.result, { headers: nobody })],
  ['GET /events/stream/{id}', 429, 'one stream too many', () => stream(randomUUID(), { at: 'tight' })],
  ['GET /agents', 200, 'a token', () => ({ headers: ann })],
  ['GET /agent-status', 200, 'a token', () => ({ headers: ann, until: '"throughput"' })],
  ['GET /agent-status', 429, 'one stream too many', () => ({ headers: ann, at: 'tight' })],
  ['GET /agents/{name}', 200, 'an agent', () => ({ target: '/agents/writer', headers: ann })],
  ['GET /agents/{name}', 400, 'a path that cannot be decoded', () => ({ target: '/agents/%zz', headers: ann })],
  ['GET /agents/{name}', 404, 'no agent', () => ({ target: '/agents/none', headers: ann })],
  ['GET /channels', 200, 'Authorization', () => ({ headers: ann })],
  ['GET /channels', 200, 'X-API-Key', () => ({ headers: { 'X-API-Key': all } })],
  ['GET /channels', 200, 'apikey', () => ({ headers: { apikey: all } })],
  ['GET /channels', 200, 'token', () => ({ target: `/channels?token=${all}` })],
  ['GET /channels', 200, 'the session', () => ({ headers: { Cookie: `session=${all}` } })],
  ['GET /api/tools', 200, 'an administrator', () => ({ headers: ann })],
  ['GET /api/tools', 403, 'somebody else', () => ({ headers: nobody })],
];
