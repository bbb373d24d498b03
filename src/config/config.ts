import { makeCheck } from './check.ts';
import { ConfigError } from './config-error.ts';
import { readFileSource } from './file-source.ts';
import { brokenRules, hasKey, listensOnLoopback } from './rules.ts';
import { type Facts, isDerived } from './setting.ts';
import { SETTING_PATHS, type SettingPath, type SettingValues, settingAt } from './settings.ts';
import type { Given, Source } from './source.ts';
import { type Environment, type Flags, readEnvironment, readFlags, unknownVariables } from './text-sources.ts';

/** Everything that was set, checked and completed; frozen through and through. */
export interface Config extends SettingValues {
  /** False: the daemon makes a random key, and only this machine can connect. */
  readonly keyConfigured: boolean;
  /** No key is configured or only this machine can connect: what may be open by default is. */
  readonly openByDefault: boolean;
}

export interface ConfigSources {
  readonly env?: Environment;
  readonly flags?: Flags;
  /** From where files are looked for; the working directory if absent. */
  readonly directory?: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Sentences for the log. */
  readonly warnings: readonly string[];
}

const nest = (values: ReadonlyMap<string, unknown>): Record<string, unknown> => {
  const root: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const names = path.split('.');
    const last = names.pop() as string;
    let section = root;
    for (const name of names) {
      section[name] ??= {};
      section = section[name] as Record<string, unknown>;
    }
    section[last] = value;
  }
  return root;
};

const freeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) freeze(part);
  }
  return value;
};

/** Values by the first source that gives one; the rest are defaults, first those that depend on nothing. */
const complete = (given: ReadonlyMap<SettingPath, Given>, directory: string): SettingValues => {
  const values = new Map<SettingPath, unknown>();
  for (const path of SETTING_PATHS) {
    const setting = settingAt(path);
    const found = given.get(path);
    if (found) values.set(path, setting.resolve ? setting.resolve(found.value, directory) : found.value);
    else if (!isDerived(setting.default)) values.set(path, setting.default);
    else values.set(path, undefined);
  }
  const known = nest(values) as unknown as SettingValues;
  const facts: Facts = {
    keyConfigured: hasKey(known),
    loopback: listensOnLoopback(known),
    https: known.publicUrl?.startsWith('https:') ?? false,
    crossSite: known.auth.cookie.sameSite === 'none',
  };
  for (const path of SETTING_PATHS) {
    const fallback = settingAt(path).default;
    if (!given.has(path) && isDerived(fallback)) values.set(path, fallback.from(facts));
  }
  return nest(values) as unknown as SettingValues;
};

const fileNamedBy = ({ env = {}, flags = {} }: ConfigSources): { path: string; by: string } | undefined => {
  if (typeof flags.config === 'string') return { path: flags.config, by: 'flag --config' };
  return env.SLUICE_CONFIG ? { path: env.SLUICE_CONFIG, by: 'environment variable SLUICE_CONFIG' } : undefined;
};

/** Flags win over the environment, the environment over the file, the file over the defaults. Throws a `ConfigError`. */
export const loadConfig = (sources: ConfigSources = {}): LoadedConfig => {
  const { env = process.env, flags = {}, directory = process.cwd() } = sources;
  const check = makeCheck(directory);
  const inOrder: Source[] = [
    readFlags(flags),
    readEnvironment(env),
    readFileSource(directory, fileNamedBy({ env, flags })),
  ];
  // What is wrong is wrong even where a stronger source hides it: it would come back the day that one is taken away.
  const wrong = inOrder.flatMap(check);
  const problems = [...inOrder.flatMap((source) => source.problems), ...wrong.map(({ problem }) => problem)];

  const refused = new Set(wrong.map(({ path }) => path));
  const given = new Map(inOrder.toReversed().flatMap((source) => [...source.given]));
  for (const path of refused) given.delete(path);
  const values = complete(given, directory);
  // In a file that was not understood the very setting may stand that a rule would miss.
  if (inOrder.every((source) => source.problems.length === 0)) {
    problems.push(...brokenRules(values, (path) => given.get(path)?.where, refused));
  }
  if (problems.length > 0) throw new ConfigError(problems);

  const keyConfigured = hasKey(values);
  const openByDefault = !keyConfigured || listensOnLoopback(values);
  return { config: freeze({ ...values, keyConfigured, openByDefault }), warnings: unknownVariables(env) };
};
