import { type FSWatcher, watch } from 'node:fs';
import { isManifestName } from './manifest-files.ts';

export interface FolderWatchOptions {
  /** It is quiet for so long before anybody is told. */
  readonly quietMs: number;
  /** Told at the latest after so long, even if it never gets quiet. */
  readonly longestMs: number;
  readonly changed: () => void;
}

/** The kubelet's own names: `..data` is swapped for another folder as a whole. */
const matters = (event: string, name: string): boolean => {
  if (name.startsWith('.') && !name.startsWith('..')) return false;
  if (name === 'node_modules' || name === 'dist') return false;
  // Anything that comes or goes may be a folder; what is merely written to matters only if it is a manifest.
  return event === 'rename' || isManifestName(name);
};

/**
 * Watches folders, not files: a watched file that is replaced, as editors and ConfigMaps do it, is watched in vain, while its
 * folder sees the replacement.
 */
export class FolderWatch {
  private readonly options: FolderWatchOptions;
  private readonly watchers = new Map<string, FSWatcher>();
  private names: ReadonlyMap<string, ReadonlySet<string> | undefined> = new Map();
  private timer: NodeJS.Timeout | undefined;
  private since: number | undefined;
  private closed = false;

  constructor(options: FolderWatchOptions) {
    this.options = options;
  }

  /**
   * From now on these folders, each with the names that matter in it. True if one of them is new: what happened in it before
   * this call has not been seen. `failed` gets the folders that cannot be watched.
   */
  follow(
    folders: ReadonlyMap<string, ReadonlySet<string> | undefined>,
    failed: (folder: string, code: string) => void,
  ): boolean {
    if (this.closed) return false;
    this.names = folders;
    for (const folder of [...this.watchers.keys()]) if (!folders.has(folder)) this.unfollow(folder);
    let more = false;
    for (const folder of folders.keys()) {
      if (this.watchers.has(folder)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, (event, name) => this.event(folder, event, name));
        watcher.on('error', () => this.unfollow(folder));
        this.watchers.set(folder, watcher);
        more = true;
      } catch (error) {
        failed(folder, (error as NodeJS.ErrnoException).code ?? String(error));
      }
    }
    return more;
  }

  /** Somebody knows of a change that no folder has told. */
  wake(): void {
    if (this.closed) return;
    const { quietMs, longestMs, changed } = this.options;
    const now = performance.now();
    this.since ??= now;
    clearTimeout(this.timer);
    const left = Math.max(0, this.since + longestMs - now);
    this.timer = setTimeout(
      () => {
        this.since = undefined;
        changed();
      },
      Math.min(quietMs, left),
    );
    this.timer.unref();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const folder of [...this.watchers.keys()]) this.unfollow(folder);
  }

  private event(folder: string, event: string, name: string | null): void {
    const names = this.names.get(folder);
    // A folder that is deleted and made again has another watch: this one tells its end, under the folder's own name.
    if (event === 'rename' && name !== null && folder.endsWith(`/${name}`)) this.unfollow(folder);
    else if (name !== null && !(names ? names.has(name) : matters(event, name))) return;
    this.wake();
  }

  private unfollow(folder: string): void {
    this.watchers.get(folder)?.close();
    this.watchers.delete(folder);
  }
}
