/** What a model is asked and what it answers. Nothing here knows which backend serves it, or who asks. */

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export interface ImagePart {
  readonly type: 'image_url';
  /** An address or a `data:` URL. */
  readonly image_url: { readonly url: string; readonly detail?: string };
}

/** Whatever else a backend may understand: audio, files. Passed on as it is. */
export interface OtherPart {
  readonly type: 'input_audio' | 'file' | 'video_url' | 'refusal';
  readonly [field: string]: unknown;
}

export type ContentPart = TextPart | ImagePart | OtherPart;
export type Content = string | readonly ContentPart[];

/** A call that an assistant's message holds: the model made it in an earlier turn. */
export interface PastToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message in the form of Chat Completions. */
export type ModelMessage =
  | { readonly role: 'system' | 'developer' | 'user'; readonly content: Content; readonly name?: string }
  | {
      readonly role: 'assistant';
      readonly content?: Content | null;
      readonly tool_calls?: readonly PastToolCall[];
      readonly refusal?: string | null;
      /** Some backends want to have their reasoning back while tools are being called. */
      readonly reasoning_content?: string;
      readonly name?: string;
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: Content };

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** A tool as a model sees it: what can be called, not how. */
export interface ToolSpec {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Schema;
  readonly strict?: boolean;
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

export type ResponseFormat =
  | { readonly type: 'text' | 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly json_schema: {
        readonly name: string;
        readonly schema?: Schema;
        readonly description?: string;
        readonly strict?: boolean;
      };
    };

export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly ModelMessage[];
  readonly tools?: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly temperature?: number;
  readonly topP?: number;
  /** Of the answer, reasoning included. */
  readonly maxTokens?: number;
  readonly stop?: string | readonly string[];
  /** `low`, `medium`, `high`, or whatever else the backend knows. */
  readonly reasoningEffort?: string;
  readonly responseFormat?: ResponseFormat;
  readonly seed?: number;
  readonly user?: string;
  /** Further fields for the backend, sent as they are. None can replace a field that is named above. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly total: number;
  /** Part of the input that the backend had seen before. */
  readonly cached?: number;
  /** Part of the output that was reasoning. */
  readonly reasoning?: number;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface StartEvent {
  readonly type: 'start';
  readonly id: string;
  /** The one that answers, which need not have the name that was asked for. */
  readonly model: string;
  /** In seconds. */
  readonly created: number;
}

/** `index` counts the calls of an answer from 0, in the order in which they begin. */
export type ToolEvent =
  | { readonly type: 'tool_call'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'tool_arguments'; readonly index: number; readonly delta: string }
  | {
      readonly type: 'tool_call_end';
      readonly index: number;
      readonly id: string;
      readonly name: string;
      /** All of the call's deltas. JSON if the model got it right and the answer was not cut off. */
      readonly arguments: string;
    };

export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: FinishReason;
  readonly model: string;
  /** The backend's own word for it, if it is one that nobody knows. */
  readonly detail?: string;
}

/**
 * An answer as it comes. Always in this order: one `start`; deltas, none of them empty; one `tool_call_end` for every
 * `tool_call`; at most one `usage`; one `finish`. Or the iteration throws a `ModelError`, at any point before `finish`.
 */
export type ModelEvent =
  | StartEvent
  | { readonly type: 'text' | 'reasoning' | 'refusal'; readonly delta: string }
  | ToolEvent
  | ({ readonly type: 'usage' } & Usage)
  | FinishEvent;

export interface StreamOptions {
  /** Aborted: the backend's connection is closed and the iteration throws a `ModelError` with the code `cancelled`. */
  readonly signal?: AbortSignal;
}

export interface ModelInfo {
  readonly id: string;
  /** In seconds; absent if the backend does not say. */
  readonly created?: number;
  readonly ownedBy?: string;
}

/** Whatever answers for some models. */
export interface ModelBackend {
  /** Nothing happens before the first event is asked for; leaving the loop ends the request. */
  stream(request: ModelRequest, options?: StreamOptions): AsyncIterableIterator<ModelEvent>;
  /** The models it has. Throws a `ModelError`. */
  models(options?: StreamOptions): Promise<readonly ModelInfo[]>;
  close(): void;
}

/** The text of a message, without whatever else it holds. */
export const textOf = (content: Content | null | undefined): string => {
  if (typeof content === 'string') return content;
  return (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
};
