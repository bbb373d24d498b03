import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TestDirectory {
  readonly path: string;
  /** Gives the whole name back. */
  write(name: string, content: string): string;
  remove(): void;
}

export const makeDirectory = (): TestDirectory => {
  const path = mkdtempSync(join(tmpdir(), 'sluice-'));
  return {
    path,
    write(name, content) {
      const file = join(path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
};
