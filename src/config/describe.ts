import type { Config } from './config.ts';
import { SETTING_PATHS, settingAt } from './settings.ts';

const valueAt = (config: Config, path: string): unknown =>
  path.split('.').reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], config);

/** Every setting that has a value, by its path, fit for a log: of a secret only that it is there. */
export const describe = (config: Config): Readonly<Record<string, unknown>> => {
  const shown: Record<string, unknown> = {};
  for (const path of SETTING_PATHS) {
    const { secret, show, structured } = settingAt(path);
    const value = valueAt(config, path);
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    // Its parts may hold secrets that nobody has marked as such.
    if (structured) shown[path] = Object.keys(value as object);
    else if (!secret) shown[path] = value;
    else shown[path] = show && typeof value === 'string' ? show(value) : '***';
  }
  return shown;
};
