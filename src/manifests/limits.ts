/** How much is read at most. Manifests are written by people: what is larger is a mistake, or meant to harm. */
export interface ReadingLimits {
  readonly fileBytes: number;
  readonly files: number;
  readonly folders: number;
  /** Over all files. */
  readonly documents: number;
  readonly documentsPerFile: number;
  /** Of maps and lists in each other. */
  readonly depth: number;
  /** Per document. */
  readonly aliases: number;
  /** Per document; what an alias stands for counts every time. */
  readonly values: number;
  /** Of the text of a file: words, commas, ends of lines and the like. */
  readonly tokens: number;
  /** Per document. */
  readonly findings: number;
}

export const READING_LIMITS: ReadingLimits = {
  fileBytes: 1_048_576,
  files: 10_000,
  folders: 10_000,
  documents: 20_000,
  documentsPerFile: 1_000,
  depth: 64,
  aliases: 100,
  values: 50_000,
  tokens: 300_000,
  findings: 50,
};
