import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { type EnvironmentSettings, MAX_OUTPUT_BYTES } from '../config/structures.ts';
import { RESERVED } from '../manifests/reserved.ts';
import { messageOf } from '../tools/message-of.ts';
import type { ImportModule } from '../tools/module/tool-module.ts';
import type { Environment } from './environment.ts';
import { McpEnvironment } from './mcp/mcp-environment.ts';
import { loadEnvironmentModule } from './module/environment-module.ts';
import type { Hosted } from './sessions.ts';
import { UpstreamEnvironment } from './upstream/upstream-environment.ts';

export interface OpenEnvironmentsOptions {
  readonly settings: Pick<Config, 'ors'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A sentence for the log. */
  readonly warn: (message: string) => void;
  /** What an MCP server has to say beside its answers. */
  readonly note?: (server: string, line: string) => void;
  readonly load?: ImportModule;
}

const openOne = async (
  settings: EnvironmentSettings,
  { env, warn, note, load }: OpenEnvironmentsOptions,
): Promise<readonly Environment[]> => {
  if ('module' in settings) {
    const { module, name } = settings;
    return loadEnvironmentModule(module, load, { warn, ...(name !== undefined && { name }) });
  }
  if ('mcp' in settings) {
    return [await McpEnvironment.create(settings, { env, warn, ...(note && { note }), ...(load && { load }) })];
  }
  return [new UpstreamEnvironment(settings, { env, warn })];
};

const hostedOf = (environment: Environment, settings: EnvironmentSettings, maxCalls: number): Hosted => {
  const { maxSessions = 0, maxQueued = maxSessions, callTimeoutSeconds = 0 } = settings;
  const { maxOutputBytes = MAX_OUTPUT_BYTES } = settings;
  const limits = { maxCalls, callTimeoutMs: callTimeoutSeconds * 1_000, maxOutputBytes };
  return { environment, maxSessions, maxQueued, limits };
};

/** Names that would be taken for something else. */
const collisions = (hosted: readonly Hosted[], prefix: string): string[] => {
  const problems: string[] = [];
  const paths = new Set([...RESERVED.segments].map((segment) => segment.toLowerCase()));
  const [, first = ''] = prefix.toLowerCase().split('/');
  if (paths.has(first)) problems.push(`ors.prefix: ${prefix} lies under a path of the gateway.`);
  const names = hosted.map(({ environment }) => environment.name);
  for (const name of new Set(names)) {
    if (paths.has(name)) {
      problems.push(`ors.environments: no environment can be called ${name}, which is a path of the gateway.`);
    }
    if (names.indexOf(name) !== names.lastIndexOf(name)) {
      problems.push(`ors.environments: two environments are called ${name}.`);
    }
  }
  return problems;
};

/** Every environment of the settings, in their order. Throws a `ConfigError`. */
export const openEnvironments = async (options: OpenEnvironmentsOptions): Promise<readonly Hosted[]> => {
  const { environments, maxCallsPerSession } = options.settings.ors;
  const problems: string[] = [];
  const opened = await Promise.all(
    environments.map(async (settings, i) => {
      try {
        const found = await openOne(settings, options);
        return found.map((environment) => hostedOf(environment, settings, maxCallsPerSession));
      } catch (error) {
        problems.push(`ors.environments.${i}: ${messageOf(error)}`);
        return [];
      }
    }),
  );
  const hosted = opened.flat();
  problems.push(...collisions(hosted, options.settings.ors.prefix));
  if (problems.length === 0) return hosted;
  await Promise.all(hosted.map(({ environment }) => environment.close()));
  throw new ConfigError(problems);
};
