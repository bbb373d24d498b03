import type { Environment } from '../tools/placeholders.ts';
import type { Agent, AgentTool } from './agent.ts';
import type { UnknownVersion } from './api-version.ts';
import { assemble, type Changes, changesBetween, type Entry } from './assembly.ts';
import { Catalogue } from './catalogue.ts';
import { type Finding, inOrder, ofFile } from './finding.ts';
import { FolderWatch } from './folder-watch.ts';
import type { ManifestName } from './identity.ts';
import { READING_LIMITS, type ReadingLimits } from './limits.ts';
import { ManifestReader } from './manifest-reader.ts';
import { OfficialSchemas } from './official-schemas.ts';
import { RESERVED, type Reserved } from './reserved.ts';
import { type Model, modelsOf, toolsOf } from './variables.ts';

export interface ManifestsOptions {
  /** Folders and files. */
  readonly paths: readonly string[];
  /** Of agents that name none. */
  readonly namespace: string;
  readonly env?: Environment;
  readonly reserved?: Reserved;
  /** Of the official schemas; without it the third layer is left out. */
  readonly schemaDirectory?: string;
  /** Whether what the official schema does not allow is an error. */
  readonly strict?: boolean;
  readonly unknownVersion?: UnknownVersion;
  readonly watch?: boolean;
  /** How long files must have been left alone before they are read again. */
  readonly quietMs?: number;
  readonly limits?: Partial<ReadingLimits>;
}

/** What a load has brought. */
export interface ManifestsChange extends Changes {
  /** Served as they were before, because what stands there now cannot be. */
  readonly kept: readonly ManifestName[];
  /** All there are now, not only new ones. */
  readonly findings: readonly Finding[];
}

export type ManifestsListener = (catalogue: Catalogue, change: ManifestsChange) => void;

const QUIET_MS = 300;
/** Changes that never end are looked at all the same after so many times the quiet. */
const LONGEST = 20;

/** The manifests of some folders and files, as they are now and as they change. */
export class Manifests {
  private readonly options: ManifestsOptions;
  private readonly reader: ManifestReader;
  private readonly schemaFindings: readonly Finding[];
  private readonly folders: FolderWatch | undefined;
  private readonly listeners = new Set<ManifestsListener>();
  private entries: ReadonlyMap<string, Entry> = new Map();
  private catalogue = new Catalogue([]);
  private found: readonly Finding[] = [];
  private notThere: readonly string[] = [];
  private fileCount = 0;
  private turn: Promise<void> = Promise.resolve();
  private closed = false;

  private constructor(options: ManifestsOptions, official: OfficialSchemas | undefined) {
    this.options = options;
    this.schemaFindings = official?.findings ?? [];
    this.reader = new ManifestReader(options.paths, {
      namespace: options.namespace,
      reserved: options.reserved ?? RESERVED,
      limits: { ...READING_LIMITS, ...options.limits },
      unknownVersion: options.unknownVersion ?? 'warn',
      strict: options.strict ?? false,
      ...(official && { official }),
    });
    const quietMs = options.quietMs ?? QUIET_MS;
    if (options.watch === false) return;
    this.folders = new FolderWatch({
      quietMs,
      longestMs: quietMs * LONGEST,
      changed: () => {
        // Half of it: timers and file times do not agree to the millisecond.
        this.inTurn(() => this.load(quietMs / 2)).catch((error: unknown) => this.failed(error));
      },
    });
  }

  /** Manifests that cannot be served are findings, never a reason to fail. */
  static async open(options: ManifestsOptions): Promise<Manifests> {
    const { schemaDirectory } = options;
    const official = schemaDirectory === undefined ? undefined : await OfficialSchemas.open(schemaDirectory);
    const manifests = new Manifests(options, official);
    await manifests.reload();
    return manifests;
  }

  /** What is served now. */
  get current(): Catalogue {
    return this.catalogue;
  }

  /** What is to be said of what stands there now, by file and line. */
  get findings(): readonly Finding[] {
    return this.found;
  }

  /** Of the given paths those that are not there. */
  get missing(): readonly string[] {
    return this.notThere;
  }

  get files(): number {
    return this.fileCount;
  }

  /** Called after every load that has changed what is served or what is found. Gives back how to end it. */
  onChange(listener: ManifestsListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Reads everything again, at once. */
  reload(): Promise<void> {
    return this.inTurn(() => this.load(0));
  }

  /** The models of an agent; empty if it names none. Throws an `AgentUnusable` if a variable is missing. */
  models(agent: Agent): readonly Model[] {
    return modelsOf(agent, this.options.env ?? {});
  }

  /** The tools of an agent. Throws an `AgentUnusable` if a variable is missing. */
  tools(agent: Agent): readonly AgentTool[] {
    return toolsOf(agent, this.options.env ?? {});
  }

  async close(): Promise<void> {
    this.closed = true;
    this.listeners.clear();
    this.folders?.close();
    await this.turn;
  }

  /** One load after the other: each is judged against what the one before it has left. */
  private inTurn(load: () => Promise<void>): Promise<void> {
    const mine = this.turn.then(() => (this.closed ? undefined : load()));
    this.turn = mine.catch(() => {});
    return mine;
  }

  private async load(youngestMs: number): Promise<void> {
    const reading = await this.reader.read(youngestMs);
    if (this.closed) return;
    const unwatched: Finding[] = [];
    const more = this.folders?.follow(reading.found.folders, (folder, code) => {
      const message = `The folder cannot be watched (${code}): changes in it are seen only when everything is loaded again.`;
      unwatched.push(ofFile(folder, message, 'warning'));
    });
    // What came between the reading and the watching has not been seen.
    if (more || reading.unsettled) this.folders?.wake();
    this.notThere = reading.found.missing;
    this.fileCount = reading.files.length;
    const assembly = assemble(reading, this.entries);
    this.swap(assembly.entries, inOrder([...this.schemaFindings, ...assembly.findings, ...unwatched]), assembly.kept);
  }

  /** A load that nobody waits for has thrown: a listener's doing, since manifests cannot. */
  private failed(error: unknown): void {
    const message = `Not all was done that follows from a change: ${error instanceof Error ? error.message : String(error)}.`;
    this.found = Object.freeze([...this.found, ofFile(this.options.paths[0] ?? '', message)]);
  }

  private swap(entries: ReadonlyMap<string, Entry>, findings: readonly Finding[], kept: readonly ManifestName[]): void {
    const changes = changesBetween(this.entries, entries);
    const same = Object.values(changes).every((names) => names.length === 0);
    const sameFindings = JSON.stringify(findings) === JSON.stringify(this.found);
    this.entries = entries;
    this.found = Object.freeze(findings);
    if (!same) this.catalogue = new Catalogue([...entries.values()].map(({ manifest }) => manifest));
    if (same && sameFindings) return;
    for (const listener of [...this.listeners]) listener(this.catalogue, { ...changes, kept, findings });
  }
}
