import type { SettingPath } from './settings.ts';

/** A value as one source gives it. */
export interface Given {
  readonly value: unknown;
  /** As a problem's sentence names it: "environment variable PORT". */
  readonly where: string;
  /** Of an item, if the source knows more than where the list is. */
  readonly whereItem?: (index: number) => string;
}

export interface Source {
  readonly given: ReadonlyMap<SettingPath, Given>;
  /** What is wrong with the source itself. */
  readonly problems: readonly string[];
}
