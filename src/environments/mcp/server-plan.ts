import type { McpEnvironmentSettings } from '../../config/structures.ts';
import { type McpServerConfig, parseMcpServers } from '../../tools/mcp/config.ts';
import { EnvironmentError } from '../environment.ts';

type Texts = Readonly<Record<string, string>>;

const PLACE = /\$\{secrets\.([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
const SPOKEN_OF = '${secrets.';
/** Where secrets may be put: arguments are seen by everybody on the machine, addresses end up in logs. */
const SECRET_FIELDS = ['env', 'headers'];

export interface ServerPlanOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly warn?: (message: string) => void;
}

/** How the server of an episode is started: the same for all of them but for the secrets of the session. */
export class ServerPlan {
  /** Whether a session's secrets make a difference. */
  readonly usesSecrets: boolean;
  private readonly name: string;
  private readonly config: McpServerConfig;

  /** Throws one sentence. */
  constructor({ name, mcp, tools }: McpEnvironmentSettings, { env, warn }: ServerPlanOptions) {
    for (const [field, value] of Object.entries(mcp)) {
      if (SECRET_FIELDS.includes(field) || !JSON.stringify(value)?.includes(SPOKEN_OF)) continue;
      throw new Error(`mcp.${field} must not hold secrets of the session: only env and headers may.`);
    }
    if (mcp.disabled === true) throw new Error('mcp.disabled cannot be used here.');
    if (mcp.approval === 'always') throw new Error('mcp.approval cannot be used here: nobody is there to agree.');
    if (tools && mcp.tools !== undefined) throw new Error('tools and mcp.tools say the same: only one may be there.');
    this.name = name;
    const key = name.replaceAll('.', '-');
    const entry = tools ? { ...mcp, tools } : mcp;
    const { servers, problems, warnings } = parseMcpServers(JSON.stringify({ mcpServers: { [key]: entry } }), env);
    for (const warning of warnings) warn?.(`Environment ${name}: ${warning}`);
    const [config] = servers;
    if (!config) throw new Error(problems.join(' '));
    this.config = config;
    this.usesSecrets = JSON.stringify(this.texts).includes(SPOKEN_OF);
  }

  /** How long one call may take by the server's own settings, in ms. */
  get timeoutMs(): number | undefined {
    return this.config.timeoutMs;
  }

  get concurrency(): number {
    return this.config.concurrency;
  }

  /** Without secrets, as for nobody's session, those that are missing are empty. */
  configFor(secrets: Texts | undefined): McpServerConfig {
    if (!this.usesSecrets) return this.config;
    const hidden: string[] = [];
    const filled = Object.entries(this.texts).map(([field, text]) => {
      // In one go: what a client has sent is never searched for places again.
      const value = text.replace(PLACE, (_, secret: string, otherwise: string | undefined) => {
        const given = this.secret(secret, otherwise, secrets);
        hidden.push(given);
        return given;
      });
      this.refuseUnusable(field, value);
      return [field, value] as const;
    });
    const texts = Object.fromEntries(filled);
    const all = [...this.config.secrets, ...hidden, ...Object.values(texts)];
    return this.config.transport === 'stdio'
      ? { ...this.config, env: texts, secrets: all }
      : { ...this.config, headers: texts, secrets: all };
  }

  private get texts(): Texts {
    return this.config.transport === 'stdio' ? this.config.env : this.config.headers;
  }

  private secret(name: string, otherwise: string | undefined, secrets: Texts | undefined): string {
    const given = secrets && Object.hasOwn(secrets, name) ? secrets[name] : undefined;
    if (given !== undefined && (given !== '' || otherwise === undefined)) return given;
    if (otherwise !== undefined) return otherwise;
    if (!secrets) return '';
    throw new EnvironmentError('failed', `The environment ${this.name} needs the secret ${name}.`);
  }

  /** The errors of Node would repeat the value. */
  private refuseUnusable(field: string, value: string): void {
    try {
      if (this.config.transport !== 'stdio') new Headers([[field, value]]);
      else if (value.includes('\0')) throw new Error();
    } catch {
      throw new EnvironmentError('failed', `A secret of the session has characters that ${field} cannot hold.`);
    }
  }
}
