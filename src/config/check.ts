import { Ajv, type FuncKeywordDefinition } from 'ajv';
import { FORMAT_WORDS, formatsIn } from './formats.ts';
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

/** `anyOf` could say it too, but not in words that anybody understands. */
const HAS_ONE_OF: FuncKeywordDefinition = {
  keyword: 'hasOneOf',
  type: 'object',
  schemaType: 'array',
  errors: false,
  validate: (names: readonly string[], data: object) => names.some((name) => Object.hasOwn(data, name)),
  error: {
    message: ({ schema }) => `must have ${schema.slice(0, -1).join(', ')} or ${schema.at(-1)}`,
  },
};

export interface Wrong {
  readonly path: SettingPath;
  readonly problem: string;
}

/** Judges what a source gives; one sentence per wrong value. Files are looked for from the directory. */
export const makeCheck = (directory: string): ((source: Source) => Wrong[]) => {
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, formats: formatsIn(directory) });
  ajv.addKeyword(HAS_ONE_OF);
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
        const where = found.whereItem?.(Number(item)) ?? found.where;
        const named = params.additionalProperty ?? params.propertyName;
        const extra = named === undefined ? '' : ` (${JSON.stringify(named)})`;
        const words = FORMAT_WORDS[params.format as keyof typeof FORMAT_WORDS];
        const said = words === undefined ? `${message}${extra}` : `must be ${words}`;
        wrong.set(instancePath, { path, problem: `${place} ${said} (${where}).` });
        continue;
      }
      // Several rules may be broken at once; the sentence names them all.
      const problem = sentence(path, found, item === undefined ? undefined : Number(item));
      wrong.set(instancePath, { path, problem });
    }
    return [...wrong.values()];
  };
};
