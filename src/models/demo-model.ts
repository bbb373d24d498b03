import { randomUUID } from 'node:crypto';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { backendError } from './backend-error.ts';
import { findingsIn, inventValue } from './demo-arguments.ts';
import { type WantedCall, type Wish, wishIn } from './demo-wish.ts';
import type {
  FinishReason,
  ModelBackend,
  ModelEvent,
  ModelInfo,
  ModelMessage,
  ModelRequest,
  StreamOptions,
} from './model.ts';
import { textOf } from './model.ts';
import { cancelled, ModelError } from './model-error.ts';

export interface DemoModelOptions {
  /** Between two words, and two fragments of arguments. 0: at once. Default 20. */
  readonly wordMs?: number;
  /** Rejects when the signal is aborted. */
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Ids are the only thing in an answer that is not the same every time. */
  readonly newId?: () => string;
  /** In milliseconds. */
  readonly now?: () => number;
}

/** The name in every answer, whatever name was asked for. */
export const DEMO_MODEL = 'sluice-demo';

const MAX_QUOTE = 500;
const MAX_RESULT = 2_000;
const MAX_PIECE = 1_000;
const FRAGMENT = 16;
/** At full speed a long answer must still let others have their turn. */
const AT_ONCE = 256;
const RETRY_AFTER_MS = 1_000;
const FILLER =
  'This is a long answer and it goes on for as many words as you have asked for so that you can watch it come'.split(
    ' ',
  );

const wordsIn = (text: string): number => text.match(/\S+/g)?.length ?? 0;

/** The words of a text, each with the space behind it: together they are the text. */
const piecesOf = (text: string): string[] => text.match(new RegExp(`\\S{1,${MAX_PIECE}}\\s*|\\s+`, 'g')) ?? [];

const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}...` : text);

/** What has happened since the user last spoke. */
interface Turn {
  readonly asked: string;
  readonly images: number;
  /** How many times tools were called since. */
  readonly step: number;
  readonly results: readonly { readonly name: string; readonly text: string }[];
}

const turnOf = (messages: readonly ModelMessage[]): Turn => {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const content = messages[last]?.content ?? '';
  const since = messages.slice(last + 1);
  const names = new Map<string, string>();
  let step = 0;
  for (const message of since) {
    if (message.role !== 'assistant' || !message.tool_calls?.length) continue;
    step++;
    for (const call of message.tool_calls) names.set(call.id, call.function.name);
  }
  const results = since.flatMap((message) =>
    message.role === 'tool'
      ? [{ name: names.get(message.tool_call_id) ?? 'A tool', text: textOf(message.content) }]
      : [],
  );
  const images = typeof content === 'string' ? 0 : content.filter(({ type }) => type === 'image_url').length;
  return { asked: textOf(content), images, step, results };
};

/** The calls of this turn; none: it is time to answer. */
const callsNow = ({ steps, endless }: Wish, { step, asked }: Turn, request: ModelRequest): readonly WantedCall[] => {
  const { tools = [], toolChoice = 'auto', parallelToolCalls = true } = request;
  if (toolChoice === 'none') return [];
  const all = parallelToolCalls ? steps : steps.flatMap((calls) => calls.map((call) => [call]));
  const now = all[step] ?? (endless ? all.at(-1) : undefined) ?? [];
  const only = typeof toolChoice === 'object' ? toolChoice.name : undefined;
  const allowed = only === undefined ? now : now.filter(({ name }) => name === only);
  if (allowed.length > 0 || step > 0 || toolChoice === 'auto') return allowed;
  const forced = only === undefined ? tools[0] : tools.find(({ name }) => name === only);
  if (!forced) return [];
  return wishIn(`use ${forced.name} ${asked}`, [forced]).steps[0]?.slice(0, 1) ?? [];
};

const answerTo = (wish: Wish, { asked, images, results }: Turn, request: ModelRequest): string => {
  if (wish.say !== undefined) return wish.say;
  const quoted = results.map(({ name, text }) => `${name} answered: ${shortened(text, MAX_RESULT)}`);
  const seen = images === 0 ? '' : ` You also sent ${images === 1 ? 'an image' : `${images} images`}.`;
  const about = asked === '' ? 'You sent no text.' : `You asked: "${shortened(asked, MAX_QUOTE)}"`;
  const plain = `I am ${DEMO_MODEL}, a built-in model for trying things out. ${about}${seen}`;
  const text = quoted.length > 0 ? quoted.join('\n') : plain;
  const format = request.responseFormat;
  if (format?.type === 'json_schema') return JSON.stringify(inventValue(format.json_schema.schema, findingsIn(asked)));
  if (format?.type === 'json_object') return JSON.stringify({ answer: text });
  if (wish.longWords === undefined) return text;
  const filler = Array.from({ length: wish.longWords }, (_, i) => FILLER[i % FILLER.length]).join(' ');
  return quoted.length > 0 ? `${text}\n${filler}` : filler;
};

const thoughtsOn = ({ asked, results }: Turn, calls: readonly WantedCall[], effort: string | undefined): string => {
  const next = calls.length > 0 ? `I will call ${calls.map(({ name }) => name).join(' and ')}.` : 'I can answer now.';
  const all = [
    `The user asks: "${shortened(asked, 100)}"`,
    `There ${results.length === 1 ? 'is 1 result' : `are ${results.length} results`} of tools so far.`,
    next,
  ];
  return (effort === 'low' || effort === 'minimal' ? all.slice(-1) : all).join(' ');
};

const inputOf = ({ messages }: ModelRequest): number =>
  messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
    return sum + wordsIn(textOf(message.content)) + calls.reduce((n, call) => n + wordsIn(call.function.arguments), 0);
  }, 0);

const untilStop = (text: string, stop: ModelRequest['stop']): string => {
  const ends = [stop ?? []].flat().map((word) => (word === '' ? -1 : text.indexOf(word)));
  return text.slice(0, Math.min(text.length, ...ends.filter((at) => at >= 0)));
};

/** A model that needs no backend: the same question gets the same answer, by the rules of docs/DEMO-MODEL.md. */
export class DemoModel implements ModelBackend {
  private readonly options: DemoModelOptions;

  constructor(options: DemoModelOptions = {}) {
    this.options = options;
  }

  async *stream(request: ModelRequest, { signal }: StreamOptions = {}): AsyncGenerator<ModelEvent, void, undefined> {
    const { newId = randomUUID, now = Date.now } = this.options;
    const turnNow = turnOf(request.messages);
    const wish = wishIn(turnNow.asked, request.tools ?? []);
    const calls = callsNow(wish, turnNow, request);
    const failure = calls.length > 0 ? undefined : wish.fail;
    if (turnNow.step === 0 && wish.waitMs > 0) await this.pause(wish.waitMs, signal);
    if (signal?.aborted) throw cancelled();
    if (failure && failure.afterWords === undefined) throw this.failure(failure.with);

    yield { type: 'start', id: `chatcmpl-${newId()}`, model: DEMO_MODEL, created: Math.floor(now() / 1_000) };
    const room = request.maxTokens ?? Number.POSITIVE_INFINITY;
    const effort = request.reasoningEffort;
    const thinks = wish.think || (effort !== undefined && effort !== 'none');
    const thoughts = thinks ? piecesOf(thoughtsOn(turnNow, calls, effort)).slice(0, room) : [];
    yield* this.speak('reasoning', thoughts, signal);

    let reason: FinishReason = 'tool_calls';
    let said = 0;
    if (calls.length > 0) {
      yield* this.call(calls, signal);
      said = calls.reduce((sum, call) => sum + wordsIn(call.arguments), 0);
    } else {
      const text = wish.refuse ? 'I will not answer that.' : untilStop(answerTo(wish, turnNow, request), request.stop);
      const pieces = piecesOf(text);
      const fits = Math.max(0, room - thoughts.length);
      const most = Math.min(fits, failure?.afterWords ?? fits, wish.stop?.words ?? fits);
      const kept = pieces.slice(0, most);
      yield* this.speak(wish.refuse ? 'refusal' : 'text', kept, signal);
      if (failure) throw this.failure(failure.with);
      reason =
        wish.stop && most === wish.stop.words ? wish.stop.reason : kept.length < pieces.length ? 'length' : 'stop';
      said = kept.length;
    }
    const output = thoughts.length + said;
    const input = inputOf(request);
    const reasoning = thoughts.length > 0 ? { reasoning: thoughts.length } : {};
    yield { type: 'usage', input, output, total: input + output, ...reasoning };
    yield { type: 'finish', reason, model: DEMO_MODEL };
  }

  models(): Promise<readonly ModelInfo[]> {
    return Promise.resolve([{ id: DEMO_MODEL, ownedBy: 'sluice' }]);
  }

  close(): void {}

  private async *speak(
    type: 'text' | 'reasoning' | 'refusal',
    pieces: readonly string[],
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    for (const [i, delta] of pieces.entries()) {
      await this.pace(i, signal);
      yield { type, delta };
    }
  }

  private async *call(
    calls: readonly WantedCall[],
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const { newId = randomUUID } = this.options;
    const made = calls.map((call, index) => ({ ...call, index, id: `call_${newId()}` }));
    for (const { index, id, name, arguments: text } of made) {
      yield { type: 'tool_call', index, id, name };
      for (let at = 0; at < text.length; at += FRAGMENT) {
        await this.pace(at / FRAGMENT, signal);
        yield { type: 'tool_arguments', index, delta: text.slice(at, at + FRAGMENT) };
      }
    }
    for (const call of made) yield { type: 'tool_call_end', ...call };
  }

  private failure(kind: NonNullable<Wish['fail']>['with']): ModelError {
    const message = 'The demo model was asked to fail.';
    if (typeof kind === 'string') return new ModelError(kind, message);
    const later = kind === 429 || kind === 503 ? { retryAfterMs: RETRY_AFTER_MS } : {};
    return backendError({ message, words: [] }, { status: kind, secrets: [], ...later });
  }

  private async pace(i: number, signal: AbortSignal | undefined): Promise<void> {
    const { wordMs = 20 } = this.options;
    if (wordMs > 0) await this.pause(wordMs, signal);
    else if (i % AT_ONCE === AT_ONCE - 1) await turn();
    if (signal?.aborted) throw cancelled();
  }

  private async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { sleep = (time, on) => wait(time, undefined, on ? { signal: on } : {}) } = this.options;
    try {
      await sleep(ms, signal);
    } catch (error) {
      throw signal?.aborted ? cancelled() : error;
    }
  }
}
