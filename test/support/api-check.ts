import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { ApiDocument, MediaType, Operation, Parameter, Response, Schema } from '../../src/ops/openapi.ts';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The document leaves clients room for fields to come. Here there is none: a field that it does not tell of is a field
 * that nobody has described.
 */
export const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed);
  if (!isObject(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]));
  const open = isObject(value.properties) && value.type === 'object' && !('additionalProperties' in value);
  return open ? { ...copy, additionalProperties: false } : copy;
};

/** A request that was made and its answer. */
export interface Exchange {
  readonly method: string;
  /** As the document has it. */
  readonly route: string;
  /** As it was sent, with its query. */
  readonly target: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody?: unknown;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Frame {
  event?: string;
  id?: string;
  retry?: string;
  data?: string;
}

/** Whole frames of a stream; comments are left out. */
export const framesOf = (text: string): Frame[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => frame.split('\n').filter((line) => line !== '' && !line.startsWith(':')))
    .filter((lines) => lines.length > 0)
    .map((lines) => Object.fromEntries(lines.map((line) => line.split(/: ?(.*)/s, 2))) as Frame);

const typeOf = (header: string | null): string => (header ?? '').split(';', 1)[0]?.trim() ?? '';

/** Headers that are nobody's parameters: HTTP's own and credentials. */
const PLAIN_HEADERS = new Set([
  'accept',
  'authorization',
  'x-api-key',
  'apikey',
  'cookie',
  'origin',
  'x-forwarded-for',
]);

/** Holds what was asked and answered against what the document says. */
export class ApiCheck {
  readonly document: ApiDocument;
  private readonly ajv = new Ajv2020({ strict: true, allErrors: true, strictRequired: false });
  private readonly root: Schema;
  private readonly compiled = new Map<string, ValidateFunction>();

  constructor(document: ApiDocument) {
    this.document = document;
    formats.default(this.ajv);
    this.ajv.addKeyword('components'); // where references lead; see `faults`
    this.root = closed(document.components.schemas) as Schema;
  }

  /** What is wrong with a value; empty if nothing is. */
  faults(schema: unknown, value: unknown): string[] {
    const key = JSON.stringify(schema);
    let validate = this.compiled.get(key);
    if (!validate) {
      // Where the document's own references lead, in a schema that stands alone.
      validate = this.ajv.compile({ components: { schemas: this.root }, ...(closed(schema) as Schema) });
      this.compiled.set(key, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '(whole)'} ${message} ${JSON.stringify(params)}`,
    );
  }

  resolved<T>(value: T | { readonly $ref: string }): T {
    if (!isObject(value) || typeof value.$ref !== 'string') return value as T;
    let found: unknown = this.document;
    for (const name of value.$ref.slice(2).split('/')) found = (found as Record<string, unknown> | undefined)?.[name];
    if (found === undefined) throw new Error(`${value.$ref} leads nowhere`);
    return found as T;
  }

  /** `GET /path` of all that is described, sorted. */
  get operations(): string[] {
    const { paths } = this.document;
    return Object.entries(paths)
      .flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`))
      .sort();
  }

  operation(method: string, route: string): Operation {
    const found = this.document.paths[route]?.[method.toLowerCase()];
    if (!found) throw new Error(`the document has no ${method} ${route}`);
    return found as Operation;
  }

  /** What an exchange shows to be wrong with the document, or with the gateway. */
  exchange(made: Exchange): string[] {
    const answer = this.answerFaults(made);
    return made.status < 400 ? [...this.requestFaults(made), ...answer] : answer;
  }

  private answerFaults({ method, route, status, headers, text }: Exchange): string[] {
    const described = this.operation(method, route).responses[status];
    if (!described) return [`the status ${status} is not described: ${text.slice(0, 200)}`];
    const response = this.resolved<Response>(described);
    const faults = Object.entries(response.headers ?? {}).flatMap(([name, header]) =>
      this.faults(this.resolved(header).schema, headers.get(name)).map((fault) => `${name}: ${fault}`),
    );
    if (!response.content) return text === '' ? faults : [...faults, 'there is a body and none is described'];
    const type = typeOf(headers.get('content-type'));
    const media = response.content[type];
    if (!media) return [...faults, `the content type ${JSON.stringify(type)} is not described`];
    return [...faults, ...this.bodyFaults(type, media, text)];
  }

  bodyFaults(type: string, media: MediaType, text: string): string[] {
    if (type === 'application/json') return this.faults(media.schema, JSON.parse(text));
    const faults = this.faults(media.schema, text);
    const item = media['x-itemSchema'];
    if (!item) return faults;
    const frames = framesOf(text);
    if (Array.isArray(item.oneOf)) return [...faults, ...this.piecesFaults(item, frames)];
    return [...faults, ...frames.flatMap((frame) => this.frameFaults(item, frame))];
  }

  /** Where what is sent comes in pieces: what they are put together to is described with the last of them. */
  private piecesFaults(item: Schema, frames: readonly Frame[]): string[] {
    const faults = frames.flatMap((frame) => this.faults(item, frame));
    if (frames.at(-1)?.event !== 'end') return faults;
    const kinds = item.oneOf as { properties: { event: { const: string }; data: { contentSchema: Schema } } }[];
    const last = kinds.find(({ properties }) => properties.event.const === 'end');
    if (!last) return [...faults, 'no frame "end" is described'];
    const pieces = frames.filter(({ event }) => event === 'chunk' || event === 'end').map(({ data }) => data);
    return [...faults, ...this.faults(last.properties.data.contentSchema, JSON.parse(pieces.join('')))];
  }

  private frameFaults(item: Schema, frame: Frame): string[] {
    const faults = this.faults(item, frame);
    if (frame.data === undefined) return faults;
    const { data } = item.properties as { data: { contentSchema: Schema } };
    const value = JSON.parse(frame.data) as { type: string };
    if (frame.event !== undefined && frame.event !== value.type) faults.push(`event: ${frame.event} is not its type`);
    return [...faults, ...this.faults(data.contentSchema, value).map((fault) => `${frame.data}: ${fault}`)];
  }

  private requestFaults({ method, route, target, requestHeaders, requestBody }: Exchange): string[] {
    const { parameters = [], requestBody: body } = this.operation(method, route);
    const known = parameters.map((parameter) => this.resolved<Parameter>(parameter));
    const [path = '', query = ''] = target.split('?', 2);
    const names = [...route.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const values = new RegExp(`^${route.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(path)?.slice(1) ?? [];
    const given: [Parameter['in'], string, string][] = [
      ...names.map((name, i): [Parameter['in'], string, string] => ['path', name, values[i] ?? '']),
      ...[...new URLSearchParams(query)].map(([n, v]): [Parameter['in'], string, string] => ['query', n, v]),
      ...Object.entries(requestHeaders).map(([n, v]): [Parameter['in'], string, string] => ['header', n, v]),
    ];
    const faults = given.flatMap(([where, name, value]) => this.parameterFaults(known, where, name, value));
    for (const { in: where, name, required } of known) {
      if (required && !given.some(([at, one]) => at === where && one === name)) faults.push(`${name} was not given`);
    }
    if (body?.required === false && requestBody === undefined) return faults;
    if (body === undefined) return requestBody === undefined ? faults : [...faults, 'no body is described'];
    const { schema } = body.content['application/json'] as MediaType;
    return [...faults, ...this.faults(schema, requestBody).map((fault) => `request: ${fault}`)];
  }

  private parameterFaults(known: readonly Parameter[], where: Parameter['in'], name: string, value: string): string[] {
    const found = known.find((one) => one.in === where && one.name.toLowerCase() === name.toLowerCase());
    if (!found) {
      const schemes = Object.values(this.document.components.securitySchemes);
      const credential = schemes.some(
        (scheme) => scheme.type === 'apiKey' && scheme.in === where && scheme.name === name,
      );
      if (credential || (where === 'header' && PLAIN_HEADERS.has(name.toLowerCase()))) return [];
      return [`the ${where} parameter ${name} is not described`];
    }
    const values = found.schema.type === 'array' ? value.split(',') : value;
    return this.faults(found.schema, values).map((fault) => `${name}: ${fault}`);
  }
}
