/** Where something is written. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly document: number;
  readonly line: number;
  readonly column: number;
}

export const KINDS = ['Agent', 'Task', 'Workflow'] as const;
export type Kind = (typeof KINDS)[number];

/** What every manifest has. */
export interface Identity {
  readonly name: string;
  /** `agent://<namespace>/<name>`, for agents as for the rest. */
  readonly uri: string;
  readonly namespace: string;
  readonly apiVersion: string;
  readonly version?: string;
  readonly description?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly place: Place;
  /** The whole name of its file: what references are resolved against. */
  readonly absolute: string;
}

/** By kind and name a manifest is known; the file it stands in may change. */
export interface ManifestName {
  readonly kind: Kind;
  readonly name: string;
}

export const keyOf = ({ kind, name }: ManifestName): string => `${kind}/${name}`;
