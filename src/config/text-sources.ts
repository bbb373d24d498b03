import { flagOf, SETTING_PATHS, type SettingPath, settingAt, variableOf } from './settings.ts';
import type { Given, Source } from './source.ts';
import { didYouMean } from './suggestion.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a command's parser found, by the flag's name in camel case; names that are no setting's are the command's own. */
export type Flags = Readonly<Record<string, unknown>>;

/** Ours, but no settings of the daemon. */
const OTHER_VARIABLES = ['SLUICE_CONFIG', 'SLUICE_URL', 'SLUICE_TOKEN'];

/** An empty variable is one that is not set: compose files and charts leave them behind. */
export const readEnvironment = (env: Environment): Source => {
  const given = new Map<SettingPath, Given>();
  for (const path of SETTING_PATHS) {
    const variable = variableOf(path);
    const written = variable && env[variable];
    if (written?.trim())
      given.set(path, { value: settingAt(path).read(written), where: `environment variable ${variable}` });
  }
  return { given, problems: [] };
};

/** Kubernetes puts the addresses of every Service into the environment, those of one named sluice under our prefix. */
const isServiceLink = (name: string, value: string | undefined): boolean =>
  /_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$/.test(name) ||
  (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value ?? ''));

/** Sentences about variables that nobody reads: no reason not to start, since another version may know them. */
export const unknownVariables = (env: Environment): string[] => {
  const known = [...SETTING_PATHS.flatMap((path) => variableOf(path) ?? []), ...OTHER_VARIABLES];
  return Object.entries(env)
    .filter(([name, value]) => name.startsWith('SLUICE_') && !known.includes(name) && !isServiceLink(name, value))
    .map(([name]) => `The environment variable ${name} is no setting${didYouMean(name, known) || '.'}`);
};

export interface FlagOption {
  /** As commander declares it: `--redis-key-prefix <value>`. */
  readonly flags: string;
  readonly description: string;
  /** Its name in `Flags`. */
  readonly name: string;
}

const camelCase = (flag: string): string =>
  flag.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

const described = (path: SettingPath, flag: string): FlagOption => ({
  flags: `${flag} <value>`,
  description: settingAt(path).describe,
  name: camelCase(flag),
});

export const FILE_FLAG: FlagOption = {
  flags: '--config <file>',
  description: 'The settings file.',
  name: 'config',
};

/** Every flag of the daemon, for a command to declare. */
export const flagOptions = (): FlagOption[] => [
  FILE_FLAG,
  ...SETTING_PATHS.flatMap((path) => {
    const flag = flagOf(path);
    return flag ? [described(path, flag)] : [];
  }),
];

export const readFlags = (flags: Flags): Source => {
  const given = new Map<SettingPath, Given>();
  for (const path of SETTING_PATHS) {
    const flag = flagOf(path);
    const written = flag && Object.hasOwn(flags, camelCase(flag)) ? flags[camelCase(flag)] : undefined;
    if (written === undefined) continue;
    const value = typeof written === 'string' ? settingAt(path).read(written) : written;
    given.set(path, { value, where: `flag ${flag}` });
  }
  return { given, problems: [] };
};
