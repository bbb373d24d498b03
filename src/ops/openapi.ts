/** The parts of OpenAPI 3.1 that the gateway uses to describe itself. */

/** A JSON Schema of the draft 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Ref {
  readonly $ref: string;
}

/** By the name that it has in the document. */
type Named<T> = Readonly<Record<string, T>>;

export interface MediaType {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Named<{ readonly summary?: string; readonly value: unknown }>;
  /** One frame of an event stream, as `itemSchema` of OpenAPI 3.2 has it; 3.1 has no word for it. */
  readonly 'x-itemSchema'?: Schema;
}

export interface Header {
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Response {
  readonly description: string;
  readonly headers?: Named<Header | Ref>;
  readonly content?: Named<MediaType>;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly description: string;
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
  readonly style?: 'form';
  readonly explode?: boolean;
}

export interface RequestBody {
  readonly description?: string;
  readonly required: boolean;
  readonly content: Named<MediaType>;
}

/** The schemes that a request satisfies together; an empty one: none is needed. */
export type SecurityRequirement = Named<readonly string[]>;

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** The alternatives; absent: those of the whole document; an empty list: none is needed. */
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly (Parameter | Ref)[];
  readonly requestBody?: RequestBody;
  readonly responses: Named<Response | Ref>;
}

export type Method = 'get' | 'put' | 'post' | 'delete' | 'patch';
export type PathItem = { readonly [method in Method]?: Operation };
export type Paths = Named<PathItem>;

export type SecurityScheme = { readonly description: string } & (
  | { readonly type: 'http'; readonly scheme: 'bearer'; readonly bearerFormat: string }
  | { readonly type: 'apiKey'; readonly in: 'header' | 'query' | 'cookie'; readonly name: string }
);

export interface Components {
  readonly schemas?: Named<Schema>;
  readonly parameters?: Named<Parameter>;
  readonly headers?: Named<Header>;
  readonly responses?: Named<Response>;
  readonly securitySchemes?: Named<SecurityScheme>;
}

/** A group of routes and what only it knows. */
export interface ApiPart {
  readonly tag?: { readonly name: string; readonly description: string };
  readonly paths?: Paths;
  readonly components?: Components;
}

export interface ApiDocument {
  readonly openapi: '3.1.1';
  readonly info: Named<unknown>;
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly SecurityRequirement[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Named<Named<unknown>>;
  readonly components: Required<Components>;
}

export const schemaRef = (name: string): Ref & Schema => ({ $ref: `#/components/schemas/${name}` });
export const parameterRef = (name: string): Ref => ({ $ref: `#/components/parameters/${name}` });
export const headerRef = (name: string): Ref => ({ $ref: `#/components/headers/${name}` });

/** JSON with an example. */
export const json = (schema: Schema, example: unknown): Named<MediaType> => ({
  'application/json': { schema, example },
});

/** An object whose properties are all there, those apart whose names end in "?". */
export const object = (properties: Named<Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !name.endsWith('?')),
  properties: Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name.replace(/\?$/, ''), schema])),
  ...more,
});

/** Something or `null`. */
export const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });

export const list = (items: Schema): Schema => ({ type: 'array', items });
export const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more });
export const time = (description: string): Schema => text(description, { format: 'date-time' });

const merged = <T>(what: string, all: readonly (Named<T> | undefined)[]): Record<string, T> => {
  const whole = new Map<string, T>();
  for (const [name, one] of all.flatMap((part) => Object.entries(part ?? {}))) {
    if (whole.has(name)) throw new Error(`OpenAPI: two parts describe the ${what} ${name}.`);
    whole.set(name, one);
  }
  return Object.fromEntries(whole);
};

const tagged = (item: PathItem, tag: string | undefined): Named<unknown> =>
  Object.fromEntries(
    Object.entries(item).map(([method, operation]) => [
      method,
      { ...(tag !== undefined && { tags: [tag] }), ...operation },
    ]),
  );

export interface DocumentOptions {
  readonly version: string;
  readonly parts: readonly ApiPart[];
  /** What a request needs unless its operation says otherwise. */
  readonly security: readonly SecurityRequirement[];
}

const DESCRIPTION = [
  'One gate for every event stream of an AI agent platform.',
  'Every GET answers HEAD as well. A path that is not listed is a 404 in the shape of its group.',
  'The endpoints that manifests declare for themselves behave as `/events` does; they come and go with the manifests and are not listed.',
].join('\n\n');

/** The document without its servers: those depend on where the gateway is found. */
export const openapiDocument = ({ version, parts, security }: DocumentOptions): Omit<ApiDocument, 'servers'> => {
  const all = parts.map(({ components = {} }) => components);
  return {
    openapi: '3.1.1',
    info: { title: 'Sluice', version, description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    security,
    tags: parts.flatMap(({ tag }) => tag ?? []),
    paths: merged(
      'path',
      parts.map(({ tag, paths = {} }) =>
        Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, tagged(item, tag?.name)])),
      ),
    ),
    components: {
      schemas: merged(
        'schema',
        all.map(({ schemas }) => schemas),
      ),
      parameters: merged(
        'parameter',
        all.map(({ parameters }) => parameters),
      ),
      headers: merged(
        'header',
        all.map(({ headers }) => headers),
      ),
      responses: merged(
        'response',
        all.map(({ responses }) => responses),
      ),
      securitySchemes: merged(
        'security scheme',
        all.map(({ securitySchemes }) => securitySchemes),
      ),
    },
  };
};
