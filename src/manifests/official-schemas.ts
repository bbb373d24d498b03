import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { type Finding, ofFile } from './finding.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { objectOf } from './plain.ts';
import { pathOf, within } from './pointer.ts';

const FILE = /^ossa-v?(\d+\.\d+\.\d+)\.schema\.json$/;

/** Those of one document; a schema of many alternatives says the same in many ways. */
const MOST = 20;

/** Words about alternatives that all failed; what each lacks is told beside them. */
const SILENT: ReadonlySet<string> = new Set(['if', 'anyOf', 'oneOf', 'allOf']);

const sentence = ({ instancePath, keyword, params, message = 'is wrong' }: ErrorObject): string => {
  const path = pathOf(instancePath) || 'The manifest';
  if (keyword === 'required') return `${pathOf(within(instancePath, String(params.missingProperty)))} is missing`;
  if (keyword === 'additionalProperties') {
    return `${pathOf(within(instancePath, String(params.additionalProperty)))} is not known there`;
  }
  if (keyword === 'enum') return `${path} must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  return `${path} ${message}`;
};

/** The schemas of the specification as an operator has put them into a folder. */
export class OfficialSchemas {
  readonly findings: readonly Finding[];
  private readonly byVersion: ReadonlyMap<string, ValidateFunction>;

  private constructor(byVersion: ReadonlyMap<string, ValidateFunction>, findings: readonly Finding[]) {
    this.byVersion = byVersion;
    this.findings = findings;
  }

  static async open(folder: string): Promise<OfficialSchemas> {
    const byVersion = new Map<string, ValidateFunction>();
    const findings: Finding[] = [];
    const wrong = (path: string, message: string): void => {
      findings.push({ ...ofFile(path, message), layer: 3 });
    };
    const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      wrong(folder, `The folder of the official schemas cannot be read (${error.code}).`);
      return [];
    });
    for (const name of names.sort()) {
      const version = FILE.exec(name)?.[1];
      if (version === undefined) continue;
      const path = join(folder, name);
      try {
        const schema: unknown = JSON.parse(await readFile(path, 'utf8'));
        // One instance each: several schemas bear the same id.
        const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false, logger: false });
        byVersion.set(version, ajv.compile(objectOf(schema)));
      } catch (error) {
        wrong(path, `The schema cannot be used: ${(error as Error).message}.`);
      }
    }
    if (byVersion.size === 0 && findings.length === 0) {
      wrong(folder, 'There is no schema in the folder; they are called ossa-0.3.2.schema.json, for instance.');
    }
    return new OfficialSchemas(byVersion, findings);
  }

  get versions(): readonly string[] {
    return [...this.byVersion.keys()];
  }

  /** The third layer. */
  check(document: ManifestDocument, version: string, strict: boolean): void {
    if (this.byVersion.size === 0) return; // that has been said, once for all
    const validate = this.byVersion.get(version);
    const severity = strict ? 'error' : 'warning';
    if (!validate) {
      const message = `The manifest is not held against the official schema: that of OSSA ${version} is not there.`;
      document.report(3, severity, '/apiVersion', message);
      return;
    }
    if (validate(document.value)) return;
    const told = new Set<string>();
    const errors = validate.errors ?? [];
    const plain = errors.filter(({ keyword }) => !SILENT.has(keyword));
    for (const error of plain.length > 0 ? plain : errors) {
      const message = `OSSA ${version}: ${sentence(error)}.`;
      if (told.size >= MOST || told.has(message)) continue;
      told.add(message);
      const { keyword, instancePath, params } = error;
      const extra =
        keyword === 'additionalProperties' ? within(instancePath, String(params.additionalProperty)) : undefined;
      document.report(3, severity, extra ?? instancePath, message, extra !== undefined || keyword === 'required');
    }
  }
}
