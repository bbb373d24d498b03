import { type Finding, inOrder } from './finding.ts';
import { keyOf, type ManifestName } from './identity.ts';
import type { JudgedDocument, JudgedFile } from './judgement.ts';
import type { Manifest } from './manifest.ts';

/** A manifest that is served. */
export interface Entry {
  readonly manifest: Manifest;
  readonly fingerprint: string;
}

export interface Assembly {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly findings: readonly Finding[];
  /** Served as they were before, because what stands there now cannot be. */
  readonly kept: readonly ManifestName[];
}

export interface Read {
  /** In the order in which they were found. */
  readonly files: readonly JudgedFile[];
  /** What is wrong with files and folders themselves. */
  readonly findings: readonly Finding[];
  /** Whether a file that was there before could not be looked at now, which does not mean that it is gone. */
  readonly isUnseen: (absolute: string) => boolean;
}

interface Candidate {
  readonly file: JudgedFile;
  readonly document: JudgedDocument;
  readonly manifest: Manifest;
}

const isError = ({ severity }: Finding): boolean => severity === 'error';

/** Of several with one name: the one that is served already, else the first that was found. */
const chosen = (candidates: readonly Candidate[], before: Entry | undefined): Candidate => {
  const holder = candidates.find(({ manifest }) => manifest.absolute === before?.manifest.absolute);
  return holder ?? (candidates[0] as Candidate);
};

const duplicate = (one: Candidate, other: { readonly file: string; readonly line: number }): Finding => {
  const { kind, name } = one.manifest;
  const { path } = one.file.file;
  const there = other.file === path ? `line ${other.line}` : `${other.file}, line ${other.line}`;
  return {
    ...{ file: path, document: one.document.number, line: one.document.line, column: one.document.column },
    ...{ pointer: '/metadata/name', layer: 1, severity: 'error' },
    message: `There is a second ${kind} called ${name}; the other one is in ${there}. Only that one is served.`,
  };
};

/**
 * What is served from now on, of what was read and what was served before. A manifest that has become wrong stays as it was:
 * as long as its file has errors in it nothing of the file goes away, and one that stands somewhere else now, but wrongly,
 * stays too. What is gone without a trace is gone.
 */
export const assemble = (read: Read, before: ReadonlyMap<string, Entry>): Assembly => {
  const findings: Finding[] = [...read.findings];
  const candidates = new Map<string, Candidate[]>();
  const wrong = new Set<string>();
  const broken = new Set<string>();
  for (const file of read.files) {
    findings.push(...file.findings);
    if (file.findings.some(isError)) broken.add(file.file.absolute);
    for (const document of file.documents) {
      const { kind, name, manifest } = document;
      if (manifest) {
        const key = keyOf(manifest);
        candidates.set(key, [...(candidates.get(key) ?? []), { file, document, manifest }]);
      } else if (kind !== undefined && name !== undefined) {
        wrong.add(keyOf({ kind, name }));
      }
    }
  }

  const entries = new Map<string, Entry>();
  const kept: ManifestName[] = [];
  for (const [key, old] of before) {
    const { manifest } = old;
    const stays =
      broken.has(manifest.absolute) || read.isUnseen(manifest.absolute) || (wrong.has(key) && !candidates.has(key));
    const renewed = candidates.get(key)?.some((one) => one.manifest.absolute === manifest.absolute) ?? false;
    if (!stays || renewed) continue;
    entries.set(key, old);
    kept.push({ kind: manifest.kind, name: manifest.name });
  }
  for (const [key, several] of candidates) {
    const old = entries.get(key);
    const winner = old ? undefined : chosen(several, before.get(key));
    if (winner) entries.set(key, { manifest: winner.manifest, fingerprint: winner.document.fingerprint });
    const holder = winner ? { file: winner.file.file.path, line: winner.document.line } : old?.manifest.place;
    for (const one of several) if (one !== winner && holder) findings.push(duplicate(one, holder));
  }
  return { entries: new Map([...entries].sort(([a], [b]) => (a < b ? -1 : 1))), findings: inOrder(findings), kept };
};

export interface Changes {
  readonly added: readonly ManifestName[];
  readonly changed: readonly ManifestName[];
  readonly removed: readonly ManifestName[];
}

const nameOf = ({ manifest: { kind, name } }: Entry): ManifestName => ({ kind, name });

export const changesBetween = (before: ReadonlyMap<string, Entry>, now: ReadonlyMap<string, Entry>): Changes => ({
  added: [...now].filter(([key]) => !before.has(key)).map(([, entry]) => nameOf(entry)),
  changed: [...now]
    .filter(([key, { fingerprint }]) => before.has(key) && before.get(key)?.fingerprint !== fingerprint)
    .map(([, entry]) => nameOf(entry)),
  removed: [...before].filter(([key]) => !now.has(key)).map(([, entry]) => nameOf(entry)),
});
