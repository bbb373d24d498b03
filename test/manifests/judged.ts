import type { Agent } from '../../src/manifests/agent.ts';
import type { Finding } from '../../src/manifests/finding.ts';
import { Judge, type JudgeOptions } from '../../src/manifests/judgement.ts';
import { READING_LIMITS } from '../../src/manifests/limits.ts';
import type { Manifest } from '../../src/manifests/manifest.ts';
import { RESERVED } from '../../src/manifests/reserved.ts';

export interface Judged {
  readonly manifests: readonly Manifest[];
  readonly findings: readonly Finding[];
  /** `line:column severity message`, as short as it can be told apart. */
  readonly told: readonly string[];
}

export interface JudgedOptions extends Partial<JudgeOptions> {
  readonly path?: string;
}

const ordinary: JudgeOptions = {
  ...{ namespace: 'default', reserved: RESERVED, limits: READING_LIMITS, unknownVersion: 'warn', strict: false },
};

let judge: Judge | undefined;

/** One for all that ask for nothing special: it takes its time to make. */
const judgeFor = (options: Partial<JudgeOptions>): Judge => {
  if (Object.keys(options).length > 0) return new Judge({ ...ordinary, ...options });
  judge ??= new Judge(ordinary);
  return judge;
};

/** What becomes of the text of a file. */
export const judged = (text: string | Uint8Array, { path = 'a.ossa.yaml', ...options }: JudgedOptions = {}): Judged => {
  const file = { path, absolute: `/manifests/${path}`, root: '/manifests' };
  const { documents, findings } = judgeFor(options).file(file, typeof text === 'string' ? Buffer.from(text) : text);
  return {
    manifests: documents.flatMap(({ manifest }) => manifest ?? []),
    findings,
    told: findings.map(({ line, column, severity, message }) => `${line}:${column} ${severity} ${message}`),
  };
};

const indented = (text: string): string =>
  text
    .trim()
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');

/** A manifest of which only the spec matters; it begins in line 6. */
export const manifestWith = (kind: string, name: string, spec: string, more = ''): string =>
  `apiVersion: ossa/v0.3.2\nkind: ${kind}\nmetadata:\n  name: ${name}\nspec:\n${indented(spec)}\n${more}`;

export const agentWith = (spec: string, more = ''): string => manifestWith('Agent', 'worker', spec, more);

/** An agent about which nothing is said. */
export const agentOf = (spec: string, more = '', options: JudgedOptions = {}): Agent => {
  const { manifests, told } = judged(agentWith(spec, more), options);
  expect(told).toEqual([]);
  return manifests[0] as Agent;
};
