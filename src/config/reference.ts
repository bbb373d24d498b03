import { DEFAULT_FILE } from './file-source.ts';
import { isDerived } from './setting.ts';
import { SETTING_PATHS, type SettingPath, settingAt, variableOf } from './settings.ts';

const INTRODUCTION = `# Configuration

<!-- Written by \`npm run docs\` from src/config/settings.ts: change it there. -->

Settings come from flags, environment variables and a YAML file, in this order: a flag wins over a variable, a variable over
the file, the file over the default. The file is \`${DEFAULT_FILE}\` in the working directory, if there is one, or the one that
\`--config\` or \`SLUICE_CONFIG\` names. In it settings are nested by their dots:

\`\`\`yaml
port: 8080
redis:
  url: redis://localhost:6379
cors:
  origins: [https://app.example.com]
\`\`\`

- A flag is a setting's name with dashes: \`redis.keyPrefix\` is \`--redis-key-prefix\`. Secrets have no flag.
- In variables and flags the items of a list are separated by commas. An empty variable counts as not set.
- Relative file names start at the working directory.
- Wrong settings stop the start, with one sentence for each. Variables that begin with \`SLUICE_\` and are no setting give a
  warning.
`;

const cell = (content: string): string => content.replaceAll('|', '\\|').replaceAll('<', '&lt;');

const fallback = (path: SettingPath): string => {
  const value = settingAt(path).default;
  if (isDerived(value)) return value.words;
  if (value === undefined || settingAt(path).structured || (Array.isArray(value) && value.length === 0)) return '';
  return `\`${String(value)}\``;
};

const row = (path: SettingPath): string => {
  const { describe, expects, secret } = settingAt(path);
  const variable = variableOf(path);
  const cells = [
    `\`${path}\``,
    variable === undefined ? 'only in the file' : `\`${variable}\``,
    expects,
    fallback(path),
    describe + (secret ? ' Never printed.' : ''),
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
};

const HEAD = '| setting | variable | value | default | |\n|---|---|---|---|---|';

/** docs/CONFIGURATION.md. */
export const referencePage = (): string => {
  const sections = new Map<string, SettingPath[]>();
  for (const path of SETTING_PATHS) {
    const section = path.includes('.') ? path.slice(0, path.indexOf('.')) : '';
    sections.set(section, [...(sections.get(section) ?? []), path]);
  }
  const tables = [...sections].map(([section, paths]) => {
    const title = section === '' ? 'The daemon' : `\`${section}\``;
    return `## ${title}\n\n${HEAD}\n${paths.map(row).join('\n')}\n`;
  });
  return [INTRODUCTION, ...tables].join('\n');
};
