import { statSync } from 'node:fs';
import type { UnknownVersion } from '../manifests/api-version.ts';
import type { Finding } from '../manifests/finding.ts';
import { Manifests } from '../manifests/manifests.ts';

export interface ValidateOptions {
  readonly strict?: boolean;
  readonly output?: 'text' | 'json';
  readonly ossaSchema?: string;
  readonly unknownVersion?: UnknownVersion;
}

/** 0: nothing is wrong. 1: something is. 3: something that was named is not there. (2: what was asked for is not understood.) */
export type ValidateCode = 0 | 1 | 3;

export interface Summary {
  readonly files: number;
  readonly agents: number;
  readonly workflows: number;
  readonly tasks: number;
  readonly errors: number;
  readonly warnings: number;
  /** Of the named paths those that are not there. */
  readonly missing: readonly string[];
}

type Paint = (code: number, text: string) => string;

const RED = 31;
const YELLOW = 33;
const GREEN = 32;
const BOLD = 1;
const DIM = 2;

/** What the layers are called for people. */
const LAYERS = { 1: 'text and envelope', 2: 'what is served', 3: 'official schema' } as const;

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

const findingLines = ({ file, line, column, severity, message, layer }: Finding, paint: Paint): string[] => [
  `${paint(BOLD, `${file}:${line}:${column}`)} ${paint(severity === 'error' ? RED : YELLOW, severity)} ${paint(DIM, `(layer ${layer}: ${LAYERS[layer]})`)}`,
  `  ${message}`,
];

const summaryLine = (summary: Summary, paint: Paint): string => {
  const { files, agents, workflows, tasks, errors, warnings } = summary;
  const verdict = errors > 0 ? paint(RED, counted(errors, 'error')) : paint(GREEN, 'no errors');
  const good = [counted(agents, 'agent'), counted(workflows, 'workflow'), counted(tasks, 'task')].join(', ');
  return `${counted(files, 'file')}, of which can be served: ${good}. ${verdict}, ${counted(warnings, 'warning')}.`;
};

const exists = (path: string): boolean => {
  try {
    statSync(path);
    return true;
  } catch {
    return false;
  }
};

/** Checks manifests as a gateway would, serves nothing, and gives back how the process should end. */
export const validate = async (
  paths: readonly string[],
  { strict = false, output = 'text', ossaSchema, unknownVersion = 'warn' }: ValidateOptions,
  print: (line: string) => void,
  colours: boolean,
): Promise<ValidateCode> => {
  const manifests = await Manifests.open({
    ...{ paths, namespace: 'default', strict, unknownVersion, watch: false },
    ...(ossaSchema !== undefined && { schemaDirectory: ossaSchema }),
  });
  const { findings, current, files } = manifests;
  const missing = [...manifests.missing, ...(ossaSchema !== undefined && !exists(ossaSchema) ? [ossaSchema] : [])];
  await manifests.close();
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const summary: Summary = {
    ...{ files, agents: current.agents().length, workflows: current.workflows().length },
    ...{ tasks: current.tasks().length, errors, warnings: findings.length - errors, missing },
  };
  if (output === 'json') {
    print(JSON.stringify({ findings, summary }, null, 2));
  } else {
    const paint: Paint = (code, text) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text);
    for (const finding of findings) for (const line of findingLines(finding, paint)) print(line);
    print(summaryLine(summary, paint));
  }
  return missing.length > 0 ? 3 : errors > 0 ? 1 : 0;
};
