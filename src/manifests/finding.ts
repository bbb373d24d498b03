/** 1: the text and its envelope. 2: what the gateway serves. 3: the official schema. */
export type Layer = 1 | 2 | 3;

/** An error keeps its manifest from being served, a warning does not. */
export type Severity = 'error' | 'warning';

/** Something that a person should know about a manifest. */
export interface Finding {
  readonly file: string;
  /** From 1; 0 if it is about the file as a whole. */
  readonly document: number;
  /** From 1, as editors count. */
  readonly line: number;
  readonly column: number;
  /** JSON pointer; empty for the whole document. */
  readonly pointer: string;
  readonly layer: Layer;
  readonly severity: Severity;
  /** Whole sentences. */
  readonly message: string;
}

/** What is true of a file, or of a folder, and of no place in it. */
export const ofFile = (file: string, message: string, severity: Severity = 'error'): Finding => ({
  ...{ file, document: 0, line: 1, column: 1, pointer: '', layer: 1, severity, message },
});

export const inOrder = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort(
    (a, b) =>
      (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.line - b.line || a.column - b.column || a.layer - b.layer,
  );

const LONGEST_SHOWN = 60;

/** A value as a sentence quotes it. */
export const shown = (value: unknown): string => {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > LONGEST_SHOWN ? `${written.slice(0, LONGEST_SHOWN)}...` : written;
};
