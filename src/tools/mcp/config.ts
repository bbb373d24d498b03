import { readFile } from 'node:fs/promises';
import { Ajv } from 'ajv';
import { didYouMean } from '../../config/suggestion.ts';
import { type Environment, fill, MissingVariable } from '../placeholders.ts';
import type { ApprovalRule } from '../tool.ts';

interface Common {
  /** By which its tools are reached: `name.tool`. */
  readonly name: string;
  /** Of one call; undefined: the default of the gateway. 0: none. */
  readonly timeoutMs: number | undefined;
  /** Calls at the same time over all its tools. 0: any number. */
  readonly concurrency: number;
  readonly approval: ApprovalRule;
  /** Only these tools; undefined: all. */
  readonly tools: readonly string[] | undefined;
  /** Values that nobody may see in a log or an error. */
  readonly secrets: readonly string[];
}

export interface StdioServerConfig extends Common {
  readonly transport: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface HttpServerConfig extends Common {
  readonly transport: 'sse' | 'streamable-http';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** One MCP server, checked, with the environment already put in. */
export type McpServerConfig = StdioServerConfig | HttpServerConfig;
export type McpTransport = McpServerConfig['transport'];

export interface McpServersFile {
  /** Those that can be started, in the order of the file. */
  readonly servers: readonly McpServerConfig[];
  /** One sentence each for what is left out. */
  readonly problems: readonly string[];
  /** One sentence each for what is odd, but does no harm. */
  readonly warnings: readonly string[];
}

const NONE: McpServersFile = { servers: [], problems: [], warnings: [] };
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_SERVERS = 200;

const text = { type: 'string', minLength: 1, pattern: '^[^\\0]*$' };
const texts = { type: 'object', additionalProperties: { type: 'string', pattern: '^[^\\0]*$' } };
const FIELDS: Readonly<Record<string, { readonly schema: object; readonly expects: string }>> = {
  type: {
    schema: { enum: ['stdio', 'sse', 'streamable-http', 'http'] },
    expects: 'stdio, sse or streamable-http',
  },
  command: { schema: text, expects: 'a text that is not empty' },
  args: { schema: { type: 'array', items: { ...text, minLength: 0 }, maxItems: 1_000 }, expects: 'a list of texts' },
  env: { schema: texts, expects: 'an object of texts' },
  cwd: { schema: text, expects: 'a text that is not empty' },
  url: { schema: text, expects: 'a text that is not empty' },
  headers: { schema: texts, expects: 'an object of texts' },
  timeoutSeconds: {
    schema: { type: 'number', minimum: 0, maximum: 2_000_000 },
    expects: 'a number of seconds from 0 (no limit) to 2000000',
  },
  concurrency: {
    schema: { type: 'integer', minimum: 0, maximum: 10_000 },
    expects: 'a whole number from 0 (any number) to 10000',
  },
  approval: { schema: { enum: ['never', 'always'] }, expects: 'never or always' },
  tools: { schema: { type: 'array', items: text, maxItems: 1_000 }, expects: 'a list of names of tools' },
  disabled: { schema: { type: 'boolean' }, expects: 'true or false' },
};
const STDIO_ONLY = ['command', 'args', 'env', 'cwd'];
const HTTP_ONLY = ['url', 'headers'];

/** What a server of the file may hold, when it has passed the check. */
interface Written {
  readonly type?: 'stdio' | 'sse' | 'streamable-http' | 'http';
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutSeconds?: number;
  readonly concurrency?: number;
  readonly approval?: ApprovalRule;
  readonly tools?: readonly string[];
  readonly disabled?: boolean;
}

const validate = new Ajv({ allErrors: true }).compile<Written>({
  type: 'object',
  properties: Object.fromEntries(Object.entries(FIELDS).map(([field, { schema }]) => [field, schema])),
});

/** Something is wrong with one server; the message goes on after its name. */
class Wrong extends Error {}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const checkFields = (entry: unknown): Written => {
  if (!isObject(entry)) throw new Wrong('must be an object.');
  if (validate(entry)) return entry;
  // Values are never shown: any of them may be a secret.
  const fields = new Set((validate.errors ?? []).map(({ instancePath }) => instancePath.split('/')[1] ?? ''));
  throw new Wrong(
    [...fields]
      .map((field) => `${field} must be ${FIELDS[field]?.expects}`)
      .join(', and ')
      .concat('.'),
  );
};

const transportOf = ({ type, command, url }: Written): McpTransport => {
  if (type) return type === 'http' ? 'streamable-http' : type;
  if (command !== undefined && url !== undefined) throw new Wrong('has both command and url: say which by type.');
  return url === undefined ? 'stdio' : 'streamable-http';
};

/** Puts the environment into the fields of one server, and remembers what must stay hidden. */
class Filling {
  readonly secrets: string[] = [];
  private readonly env: Environment;

  constructor(env: Environment) {
    this.env = env;
  }

  text(field: string, value: string): string {
    try {
      const filled = fill(value, this.env);
      this.secrets.push(...filled.values);
      return filled.text;
    } catch (error) {
      if (error instanceof MissingVariable) {
        throw new Wrong(`${field} needs the environment variable ${error.variable}, which is not set.`);
      }
      throw error;
    }
  }

  /** All of these are secrets, wherever they come from. */
  hidden(field: string, values: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    const filled = Object.entries(values).map(([key, value]) => [key, this.text(`${field}.${key}`, value)] as const);
    this.secrets.push(...filled.map(([, value]) => value));
    return Object.fromEntries(filled);
  }
}

const checkUrl = (url: string): void => {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new Wrong('url must be an http or https address.');
  }
  if (!/^https?:$/.test(parsed.protocol)) throw new Wrong('url must be an http or https address.');
  if (parsed.username !== '' || parsed.password !== '') {
    throw new Wrong('url must not contain a user or a password: send them in headers.');
  }
};

const checkHeaders = (headers: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]]);
    } catch {
      throw new Wrong(`headers.${name} cannot be sent as a header.`);
    }
  }
};

const readServer = (name: string, entry: unknown, env: Environment): McpServerConfig | undefined => {
  if (!NAME.test(name)) throw new Wrong('the name may hold letters, digits, _ and -, at most 64 of them.');
  const written = checkFields(entry);
  const transport = transportOf(written);
  for (const field of transport === 'stdio' ? HTTP_ONLY : STDIO_ONLY) {
    if (field in written) throw new Wrong(`${field} does not go with type ${transport}.`);
  }
  if (written.disabled) return undefined;
  const { timeoutSeconds, concurrency = 0, approval = 'never', tools } = written;
  const filling = new Filling(env);
  const timeoutMs = timeoutSeconds === undefined ? undefined : Math.round(timeoutSeconds * 1_000);
  const common = { name, timeoutMs, concurrency, approval, tools, secrets: filling.secrets };
  if (transport === 'stdio') {
    if (written.command === undefined) throw new Wrong('command is missing.');
    return {
      ...common,
      transport,
      command: filling.text('command', written.command),
      args: (written.args ?? []).map((arg, i) => filling.text(`args[${i}]`, arg)),
      env: filling.hidden('env', written.env),
      cwd: written.cwd === undefined ? undefined : filling.text('cwd', written.cwd),
    };
  }
  if (written.url === undefined) throw new Wrong('url is missing.');
  const url = filling.text('url', written.url);
  const headers = filling.hidden('headers', written.headers);
  checkUrl(url);
  checkHeaders(headers);
  return { ...common, transport, url, headers };
};

/** Judges the text of a file. One server that is wrong is told of and left out; the others work. */
export const parseMcpServers = (content: string, env: Environment): McpServersFile => {
  let file: unknown;
  try {
    file = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch {
    // Without the parser's words: they quote the file, and a secret may stand there.
    return { ...NONE, problems: ['The file of MCP servers is not JSON.'] };
  }
  const entries = isObject(file) ? file.mcpServers : undefined;
  if (!isObject(entries)) {
    return { ...NONE, problems: ['The file of MCP servers must be an object with an object "mcpServers".'] };
  }
  const servers: McpServerConfig[] = [];
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const called = `MCP server "${name.slice(0, 64)}"`;
    if (servers.length >= MAX_SERVERS) {
      problems.push(`${called}: there are more than ${MAX_SERVERS} servers.`);
      continue;
    }
    try {
      const server = readServer(name, entry, env);
      if (server) servers.push(server);
      for (const field of Object.keys(entry as object)) {
        if (!(field in FIELDS)) {
          warnings.push(
            `${called}: ${field.slice(0, 64)} is not known${didYouMean(field, Object.keys(FIELDS)) || '.'}`,
          );
        }
      }
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      problems.push(`${called}: ${error.message}`);
    }
  }
  return { servers, problems, warnings };
};

/** Reads the file of MCP servers. Never throws: a gateway without tools is still a gateway. */
export const readMcpServers = async (path: string, env: Environment = process.env): Promise<McpServersFile> => {
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { ...NONE, warnings: [`There is no file of MCP servers at ${path}.`] };
    return { ...NONE, problems: [`The file of MCP servers at ${path} cannot be read (${code}).`] };
  }
  return parseMcpServers(content, env);
};
