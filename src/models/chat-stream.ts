import { randomUUID } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceMessage, type EventSourceParser } from 'eventsource-parser';
import { backendError, complaintIn, complaintInBody } from './backend-error.ts';
import { choiceIn, type Finish, finishIn, saidInDelta, usageIn } from './chat-chunk.ts';
import { countIn, type JsonObject, objectIn, parseJson, textIn } from './json.ts';
import type { ModelEvent, Usage } from './model.ts';
import { ModelError } from './model-error.ts';
import { ToolCalls } from './tool-calls.ts';

export interface ChatStreamOptions {
  /** The one that was asked for, should the backend not say which one answers. */
  readonly model: string;
  readonly emit: (event: ModelEvent) => void;
  /** What must not appear in an error. */
  readonly secrets?: readonly string[];
  /** Of one line, in characters. Default 4 Mi. */
  readonly maxLine?: number;
  /** Of the whole body. Default 64 MiB. */
  readonly maxBytes?: number;
  readonly newId?: () => string;
  /** In milliseconds. */
  readonly now?: () => number;
}

const MAX_LINE = 4 * 2 ** 20;
const MAX_BYTES = 64 * 2 ** 20;
const MAX_NAME = 256;

type Form = 'unknown' | 'events' | 'document';

const cutOff = (): ModelError =>
  new ModelError('unavailable', "The model's backend broke off in the middle of its answer.");

/**
 * The body of an answer, in whatever pieces it arrives, as model events. A backend that was asked for a stream may still
 * answer with one document: its first character tells which it is, since not all name the type of what they send.
 */
export class ChatStream {
  private readonly options: ChatStreamOptions;
  private readonly calls: ToolCalls;
  private readonly decoder = new StringDecoder('utf8');
  private readonly parser: EventSourceParser;
  private form: Form = 'unknown';
  private document: string[] = [];
  private bytes = 0;
  private head: { id?: string; model?: string; created?: number } = {};
  private started = false;
  private said = false;
  private heard = false;
  private usage: Usage | undefined;
  private finish: Finish | undefined;
  private ending = false;
  private over = false;

  constructor(options: ChatStreamOptions) {
    this.options = options;
    this.calls = new ToolCalls((event) => this.give(event), options.newId ?? (() => `call_${randomUUID()}`));
    this.parser = createParser({
      onEvent: (event) => this.event(event),
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') throw this.tooLarge('a line');
      },
      maxBufferSize: options.maxLine ?? MAX_LINE,
    });
  }

  /** The finish is given out; whatever else comes means nothing. */
  get done(): boolean {
    return this.over;
  }

  /** The backend has said why it ends: all that may come is the usage, and not every backend closes then. */
  get complete(): boolean {
    return this.finish !== undefined;
  }

  /** Throws a `ModelError` when the body is none of a model, or says that something went wrong. */
  feed(bytes: Buffer): void {
    if (this.over) return;
    this.bytes += bytes.length;
    if (this.bytes > (this.options.maxBytes ?? MAX_BYTES)) throw this.tooLarge('an answer');
    const text = this.decoder.write(bytes);
    if (this.form === 'events') this.parser.feed(text);
    else if (text !== '') this.open(text);
  }

  /** Nothing more comes, or nothing more can: gives out the end of the answer, or throws if it has none. */
  end({ cut = false } = {}): void {
    if (this.over) return;
    this.ending = true;
    if (this.form === 'document') this.readDocument(cut);
    else if (this.form === 'events') this.parser.feed('\n\n'); // the last event may lack its empty line
    if (this.over) return;
    if (!this.finish) throw this.heard || cut ? cutOff() : this.empty();
    this.conclude(this.finish);
  }

  /** The first characters, up to one that tells what this is. */
  private open(text: string): void {
    const known = this.form === 'document' ? text : text.replace(/^[\uFEFF\s]+/, '');
    if (known === '') return;
    if (this.form === 'unknown') {
      if (known.startsWith('<')) throw this.bad('a web page');
      this.form = known.startsWith('{') || known.startsWith('[') ? 'document' : 'events';
    }
    if (this.form === 'document') this.document.push(known);
    else this.parser.feed(known);
  }

  private readDocument(cut: boolean): void {
    const parsed = parseJson(this.document.join(''));
    this.document = [];
    if (parsed === undefined) throw cut ? cutOff() : this.bad('something that is not JSON');
    this.chunk(parsed);
    if (this.finish || !this.heard) return;
    this.finish = { reason: 'stop' }; // whole as it is, even if it does not say why it ends
  }

  private event({ event, data }: EventSourceMessage): void {
    if (this.over) return;
    if (event === 'error') throw this.failure(complaintInBody(data));
    const text = data.trim();
    if (text === '[DONE]') {
      if (!this.heard) throw this.empty();
      this.conclude(this.finish ?? { reason: 'stop' });
    } else if (text.startsWith('{')) this.lines(text);
  }

  private lines(text: string): void {
    const parsed = parseJson(text);
    if (parsed !== undefined) {
      this.chunk(parsed);
      return;
    }
    // Backends that do not end an event with an empty line: many of them look like one.
    const lines = text.split('\n');
    if (lines.length > 1) for (const data of lines) this.event({ data });
    else if (!this.ending) throw this.bad('something that is not JSON'); // what is cut in the middle is told at the end
  }

  private chunk(value: unknown): void {
    const complaint = complaintIn(value);
    if (complaint) throw this.failure(complaint);
    const chunk = objectIn(value);
    if (!chunk) return;
    const choice = choiceIn(chunk);
    this.usage = usageIn(chunk, choice) ?? this.usage; // told once, or again and again with rising counts
    this.know(chunk);
    if (!choice) return;
    const broken = complaintIn(choice);
    if (broken) throw this.failure(broken);
    this.heard = true;
    const delta = objectIn(choice.delta);
    const message = objectIn(choice.message);
    if (delta) this.delta(delta);
    // A whole message is the answer itself, or repeats what has been streamed.
    else if (message && !this.said && this.calls.size === 0) this.delta(message);
    this.finish = finishIn(choice) ?? this.finish;
  }

  /** Who answers. Some leave it empty in their first chunk. */
  private know({ id, model, created }: JsonObject): void {
    if (this.started) return;
    const known = { id: textIn(id)?.slice(0, MAX_NAME), model: textIn(model)?.slice(0, MAX_NAME) };
    const at = countIn(created);
    if (known.id !== undefined) this.head.id ??= known.id;
    if (known.model !== undefined) this.head.model ??= known.model;
    if (at !== undefined && at > 0) this.head.created ??= at;
  }

  private delta(delta: JsonObject): void {
    const { text, reasoning } = saidInDelta(delta);
    if (reasoning !== '') this.give({ type: 'reasoning', delta: reasoning });
    if (text !== '') this.give({ type: 'text', delta: text });
    const refusal = textIn(delta.refusal);
    if (refusal !== undefined) this.give({ type: 'refusal', delta: refusal });
    if (delta.tool_calls) this.calls.add(delta.tool_calls);
    if (delta.function_call) this.calls.addLegacy(delta.function_call);
  }

  /** The start waits for something to start with: what fails before it can still be asked elsewhere. */
  private give(event: ModelEvent): void {
    if (!this.started) {
      this.started = true;
      const { now = Date.now } = this.options;
      const { id = `chatcmpl-${randomUUID()}`, created = Math.floor(now() / 1_000) } = this.head;
      this.options.emit({ type: 'start', id, model: this.model, created });
    }
    this.said = true;
    this.options.emit(event);
  }

  private get model(): string {
    return this.head.model ?? this.options.model;
  }

  private conclude({ reason, detail }: Finish): void {
    if (reason === 'error') throw this.failure({ words: [] });
    this.calls.end();
    if (this.usage) this.give({ type: 'usage', ...this.usage });
    const called = this.calls.size > 0;
    // Some say "stop" although they want a tool, and an answer that only says so would be waited for without end.
    const meant = reason === 'stop' && called ? 'tool_calls' : reason === 'tool_calls' && !called ? 'stop' : reason;
    this.give({ type: 'finish', reason: meant, model: this.model, ...(detail !== undefined && { detail }) });
    this.over = true;
  }

  private failure(complaint: Parameters<typeof backendError>[0]): ModelError {
    return backendError(complaint, { secrets: this.options.secrets ?? [] });
  }

  private empty(): ModelError {
    return new ModelError('bad_answer', "The model's backend gave an empty answer.");
  }

  private bad(what: string): ModelError {
    return new ModelError('bad_answer', `The model's backend answered with ${what} instead of a model's answer.`);
  }

  private tooLarge(what: string): ModelError {
    return new ModelError('too_large', `The model's backend sent ${what} that is larger than allowed.`);
  }
}
