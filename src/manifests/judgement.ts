import { createHash } from 'node:crypto';
import { readAgent } from './agent-reader.ts';
import { AGENT_SCHEMA } from './agent-schema.ts';
import { KNOWN_VERSIONS, type UnknownVersion } from './api-version.ts';
import { type Envelope, readEnvelope } from './envelope.ts';
import { type Finding, ofFile } from './finding.ts';
import type { Identity, Kind } from './identity.ts';
import type { ReadingLimits } from './limits.ts';
import type { Manifest } from './manifest.ts';
import { ManifestDocument } from './manifest-document.ts';
import type { ManifestFile } from './manifest-files.ts';
import { METADATA_SCHEMA } from './metadata-schema.ts';
import type { OfficialSchemas } from './official-schemas.ts';
import { frozen, given, isObject, objectOf, textOf } from './plain.ts';
import type { Reserved } from './reserved.ts';
import { Shape } from './shape.ts';
import { SourceText } from './source-text.ts';
import { readTask } from './task-reader.ts';
import { TASK_SCHEMA } from './task-schema.ts';
import { readWorkflow } from './workflow-reader.ts';
import { WORKFLOW_SCHEMA } from './workflow-schema.ts';

/** A document of a file, judged. */
export interface JudgedDocument {
  readonly number: number;
  /** Known also of a document that is wrong, if only that much of it could be read. */
  readonly kind: Kind | undefined;
  readonly name: string | undefined;
  /** There if nothing is wrong. */
  readonly manifest: Manifest | undefined;
  /** Where it says what it is called. */
  readonly line: number;
  readonly column: number;
  /** The same if and only if it says the same, in the same file. */
  readonly fingerprint: string;
}

export interface JudgedFile {
  readonly file: ManifestFile;
  readonly documents: readonly JudgedDocument[];
  readonly findings: readonly Finding[];
}

export interface JudgeOptions {
  readonly namespace: string;
  readonly reserved: Reserved;
  readonly limits: ReadingLimits;
  readonly unknownVersion: UnknownVersion;
  readonly strict: boolean;
  readonly official?: OfficialSchemas;
}

const fingerprintOf = (file: ManifestFile, value: unknown): string =>
  createHash('sha256')
    .update(file.absolute)
    .update('\0')
    .update(JSON.stringify(value) ?? '')
    .digest('base64');

/** Judges files one by one: everything that can be said of a manifest without knowing the others. */
export class Judge {
  private readonly options: JudgeOptions;
  private readonly metadata = new Shape(METADATA_SCHEMA);
  private readonly shapes: Readonly<Record<Kind, Shape>> = {
    Agent: new Shape(AGENT_SCHEMA),
    Task: new Shape(TASK_SCHEMA),
    Workflow: new Shape(WORKFLOW_SCHEMA),
  };

  constructor(options: JudgeOptions) {
    this.options = options;
  }

  /** Whatever the bytes are: nothing is thrown. */
  file(file: ManifestFile, bytes: Uint8Array): JudgedFile {
    const { limits } = this.options;
    if (bytes.length > limits.fileBytes) {
      const message = `The file is larger than ${limits.fileBytes} bytes and is not read.`;
      return { file, documents: [], findings: [ofFile(file.path, message)] };
    }
    const text = new SourceText(bytes, limits, /\.json$/i.test(file.path));
    const findings: Finding[] = text.faults.map(({ offset, pointer, message }) => ({
      ...ofFile(file.path, message),
      ...text.placeOf(offset),
      pointer,
    }));
    const documents: JudgedDocument[] = [];
    for (const [i, source] of text.documents.entries()) {
      if (source.value === null && source.faults.length === 0) continue; // nothing between two lines of dashes
      const document = new ManifestDocument(file, i + 1, text, source, limits.findings);
      if (source.faults.length > 0) document.reportFaults();
      documents.push(this.document(document, source.faults.length > 0));
      document.conclude();
      findings.push(...document.findings);
    }
    if (documents.length === 0 && findings.length === 0) {
      findings.push(
        text.blank
          ? ofFile(file.path, 'The file is empty.')
          : ofFile(file.path, 'The file holds no manifest.', 'warning'),
      );
    }
    return { file, documents, findings };
  }

  private document(document: ManifestDocument, unreadable: boolean): JudgedDocument {
    const { value, number, file } = document;
    const { line, column } = document.place('/metadata/name');
    const facts = { number, line, column, fingerprint: fingerprintOf(file, value) };
    if (unreadable) {
      const { kind, metadata } = objectOf(value);
      const known = kind === 'Agent' || kind === 'Task' || kind === 'Workflow' ? kind : undefined;
      return { ...facts, kind: known, name: textOf(objectOf(metadata).name), manifest: undefined };
    }
    const { unknownVersion, official, strict } = this.options;
    const knownVersions = [...new Set([...KNOWN_VERSIONS, ...(official?.versions ?? [])])];
    const envelope = readEnvelope(document, { unknownVersion, knownVersions });
    const manifest = this.manifest(document, envelope);
    if (official && envelope.schemaVersion !== undefined) official.check(document, envelope.schemaVersion, strict);
    return {
      ...facts,
      kind: envelope.kind,
      name: envelope.name,
      manifest: document.failed || !manifest ? undefined : frozen(manifest),
    };
  }

  /** The second layer. It goes on after errors, so that all of them are told at once. */
  private manifest(document: ManifestDocument, { kind, name, apiVersion }: Envelope): Manifest | undefined {
    if (kind === undefined || !isObject(objectOf(document.value).spec)) return undefined;
    this.metadata.check(document);
    this.shapes[kind].check(document);
    const identity = this.identity(document, name ?? '', apiVersion ?? '');
    if (kind === 'Workflow') return readWorkflow(document, identity);
    if (kind === 'Task') return readTask(document, identity);
    return readAgent(document, identity, this.options.reserved);
  }

  private identity(document: ManifestDocument, name: string, apiVersion: string): Identity {
    const { version, description, namespace: own, labels } = objectOf(objectOf(document.value).metadata);
    const namespace = textOf(own) ?? this.options.namespace;
    return given({
      ...{ name, namespace, apiVersion, uri: `agent://${namespace}/${name}` },
      ...{ version: textOf(version), description: textOf(description) },
      labels: Object.fromEntries(Object.entries(objectOf(labels)).map(([label, value]) => [label, String(value)])),
      place: document.place('/metadata/name'),
      absolute: document.file.absolute,
    });
  }
}
