/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;
export type JsonObject = Readonly<Record<string, unknown>>;

/** What a tool gives back, in the blocks of MCP: everything else can be said in them. Binary data is base64. */
export type ToolContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource';
      readonly uri: string;
      readonly mimeType?: string;
      readonly text?: string;
      readonly blob?: string;
    }
  | { readonly type: 'link'; readonly uri: string; readonly name: string; readonly mimeType?: string };

export interface ToolResult {
  readonly content: readonly ToolContent[];
  /** As the tool's output schema describes it, where it has one. */
  readonly structured?: unknown;
  /** The tool ran and says that it failed: something for a model to read, not a fault of ours. */
  readonly isError: boolean;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** What a call knows of who asked for it. */
export interface ToolContext {
  /** Aborted when nobody wants the result any more, or its time is over. */
  readonly signal: AbortSignal;
  readonly principal: string;
  readonly progress: (update: Progress) => void;
  readonly secrets: Readonly<Record<string, string>>;
}

export interface ToolSource {
  readonly kind: 'mcp' | 'http' | 'module';
  /** The server, or the file. */
  readonly name: string;
}

/** `always`: somebody has to agree before each call. */
export type ApprovalRule = 'never' | 'always';

/** Something that can be called, wherever it comes from. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
  readonly outputSchema?: Schema;
  readonly source: ToolSource;
  /** 0: none. */
  readonly timeoutMs: number;
  /** Calls at the same time; those beyond it wait their turn. 0: any number. */
  readonly concurrency: number;
  readonly approval: ApprovalRule;
  /** The input has been checked. Throws a `ToolError` or anything else when the call itself fails. */
  call(input: JsonObject, context: ToolContext): Promise<ToolResult>;
}

/** Where tools come from, and may come and go. */
export interface ToolProvider {
  readonly source: ToolSource;
  tools(): readonly Tool[];
  /** Calls at the same time over all its tools. 0: any number. */
  readonly concurrency: number;
  /** Called when `tools` gives something else than before. */
  onChange(changed: () => void): void;
}

/**
 * `not_found`      there is no such tool
 * `invalid_input`  the input does not fit the tool's schema
 * `busy`           too many calls wait already
 * `timeout`        it took longer than it may
 * `cancelled`      nobody wanted the result any more
 * `unavailable`    what runs the tool is away; the call was not made, or what became of it is not known
 * `failed`         the tool threw
 * `too_large`      the result is larger than it may be
 */
export type ToolErrorCode =
  | 'not_found'
  | 'invalid_input'
  | 'busy'
  | 'timeout'
  | 'cancelled'
  | 'unavailable'
  | 'failed'
  | 'too_large';

export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly code: ToolErrorCode;
  constructor(code: ToolErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** A result that is one text. */
export const textResult = (text: string, isError = false): ToolResult => ({
  content: [{ type: 'text', text }],
  isError,
});
