import { Ajv } from 'ajv';
import { formatsIn } from './formats.ts';
import { isSettingPath, SETTING_PATHS, type SettingPath, settingAt } from './settings.ts';
import type { Given, Source } from './source.ts';

const LONGEST_SHOWN = 60;

const shown = (value: unknown): string => {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > LONGEST_SHOWN ? `${written.slice(0, LONGEST_SHOWN)}...` : written;
};

const sentence = (path: SettingPath, given: Given, item: number | undefined): string => {
  const { expects, secret } = settingAt(path);
  const name = item === undefined ? path : `${path}[${item}]`;
  const where = item === undefined ? given.where : (given.whereItem?.(item) ?? given.where);
  const value = item === undefined ? given.value : (given.value as unknown[])[item];
  const wanted = item === undefined ? expects : expects.replace(/^a list .*?, each /, '');
  return `${name} must be ${wanted}${secret ? '' : `, not ${shown(value)}`} (${where}).`;
};

export interface Wrong {
  readonly path: SettingPath;
  readonly problem: string;
}

/** Judges what a source gives; one sentence per wrong value. Files are looked for from the directory. */
export const makeCheck = (directory: string): ((source: Source) => Wrong[]) => {
  const ajv = new Ajv({ allErrors: true, formats: formatsIn(directory) });
  const validate = ajv.compile({
    type: 'object',
    properties: Object.fromEntries(SETTING_PATHS.map((path) => [path, settingAt(path).schema])),
  });
  return ({ given }) => {
    if (validate(Object.fromEntries([...given].map(([path, { value }]) => [path, value])))) return [];
    const wrong = new Map<string, Wrong>();
    for (const { instancePath, message, params } of validate.errors ?? []) {
      const [, path = '', item, ...parts] = instancePath.split('/');
      const found = isSettingPath(path) ? given.get(path) : undefined;
      if (!found || !isSettingPath(path)) continue;
      if (settingAt(path).structured) {
        const place = [path, ...(item === undefined ? [] : [item]), ...parts].join('.');
        const named = params.additionalProperty ?? params.propertyName;
        const extra = named === undefined ? '' : ` (${JSON.stringify(named)})`;
        wrong.set(instancePath, { path, problem: `${place} ${message}${extra} (${found.where}).` });
        continue;
      }
      // Several rules may be broken at once; the sentence names them all.
      const problem = sentence(path, found, item === undefined ? undefined : Number(item));
      wrong.set(instancePath, { path, problem });
    }
    return [...wrong.values()];
  };
};
