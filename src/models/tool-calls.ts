import { countIn, listIn, objectIn, parseJson, textIn } from './json.ts';
import type { ToolEvent } from './model.ts';
import { ModelError } from './model-error.ts';

interface Call {
  readonly index: number;
  /** As the backend has named it; absent if it has not. */
  readonly given: string | undefined;
  readonly id: string;
  name: string;
  begun: boolean;
  /** The arguments so far. */
  text: string;
  /** Arguments that may turn out to be none: see `append`. */
  held: string;
}

interface Fragment {
  readonly key: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly text: string;
}

/** No model means more than that in one answer. */
const MAX_CALLS = 128;
const MAX_NAME = 256;

const argumentsIn = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
};

const fragmentIn = (value: unknown): Fragment | undefined => {
  const outer = objectIn(value);
  const inner = objectIn(outer?.function) ?? outer;
  if (!outer || !inner) return undefined;
  return {
    key: countIn(outer.index),
    id: textIn(outer.id)?.slice(0, MAX_NAME),
    name: textIn(inner.name)?.slice(0, MAX_NAME),
    text: argumentsIn(inner.arguments),
  };
};

/** Whether nothing can follow any more. Only asked where it looks so: parsing at every fragment would be quadratic. */
const isWhole = (text: string): boolean => text.trimEnd().endsWith('}') && objectIn(parseJson(text)) !== undefined;

const sameJson = (a: string, b: string): boolean =>
  a === b || JSON.stringify(parseJson(a)) === JSON.stringify(parseJson(b));

const opens = (text: string): boolean => text.trimStart().startsWith('{');

/**
 * The calls of one answer, put together from fragments. A backend may send a call in one piece, or in many that carry
 * the id and the name once or every time; it may leave out index or id, use one index for all, and repeat at the end
 * what it has already sent. Every call comes out once.
 */
export class ToolCalls {
  private readonly calls: Call[] = [];
  /** The latest call of an index. */
  private readonly byKey = new Map<number, Call>();
  private readonly byId = new Map<string, Call>();
  private legacy: Call | undefined;
  private readonly emit: (event: ToolEvent) => void;
  private readonly newId: () => string;

  constructor(emit: (event: ToolEvent) => void, newId: () => string) {
    this.emit = emit;
    this.newId = newId;
  }

  get size(): number {
    return this.calls.length;
  }

  /** The `tool_calls` of a delta. */
  add(fragments: unknown): void {
    const here = new Set<Call>();
    for (const value of listIn(fragments)) {
      const fragment = fragmentIn(value);
      if (!fragment) continue;
      const call = this.find(fragment, here) ?? this.open(fragment);
      here.add(call);
      this.take(call, fragment);
    }
  }

  /** The `function_call` of a delta, as it was before there were several. */
  addLegacy(value: unknown): void {
    const fragment = fragmentIn(value);
    if (!fragment || (!this.legacy && this.calls.length > 0)) return; // the same call, told in both ways
    this.legacy ??= this.open(fragment);
    this.take(this.legacy, fragment);
  }

  /** No more fragments will come. */
  end(): void {
    for (const call of this.calls) {
      if (!call.begun) throw new ModelError('bad_answer', "The model's backend sent a tool call without a name.");
      if (call.text.trim() === '') this.say(call, '{}'); // a tool without arguments still takes an object
      this.emit({ type: 'tool_call_end', index: call.index, id: call.id, name: call.name, arguments: call.text });
    }
  }

  private find({ key, id, name, text }: Fragment, here: ReadonlySet<Call>): Call | undefined {
    if (key !== undefined) {
      const call = this.byKey.get(key);
      return call && this.isAnother(call, { key, id, name, text }, here) ? undefined : call;
    }
    if (id !== undefined) return this.byId.get(id) ?? (name === undefined ? this.calls.at(-1) : undefined);
    const last = this.calls.at(-1);
    if (name === undefined || !last) return last;
    // A name alone: either it is repeated in every fragment, or this is a whole call without id and index.
    return last.name !== name || here.has(last) || this.follows(last, text) ? undefined : last;
  }

  /** Some backends give every call the index 0: another call begins where the last one is whole. */
  private isAnother(call: Call, { id, name, text }: Fragment, here: ReadonlySet<Call>): boolean {
    if (name === undefined || call.name === '') return false;
    if (id !== undefined && call.given !== undefined && id !== call.given) {
      return call.text + call.held === '' || isWhole(call.text + call.held);
    }
    if (id !== undefined) return false;
    return here.has(call) || name !== call.name || (opens(text) && this.follows(call, text));
  }

  /** Whether these are a further call's arguments, and not the call's own again. */
  private follows(call: Call, text: string): boolean {
    const known = call.text + call.held;
    return isWhole(known) && !sameJson(known, text);
  }

  private open({ key, id, name }: Fragment): Call {
    if (this.calls.length >= MAX_CALLS) {
      throw new ModelError('too_large', `The model has made more than ${MAX_CALLS} tool calls in one answer.`);
    }
    // An id that is taken would make two calls one for everybody who answers them.
    const own = id === undefined || this.byId.has(id);
    const call: Call = {
      index: this.calls.length,
      ...{ given: id, id: own ? this.newId() : id, name: name ?? '', begun: false, text: '', held: '' },
    };
    this.calls.push(call);
    if (key !== undefined) this.byKey.set(key, call);
    if (!own) this.byId.set(id, call);
    return call;
  }

  private take(call: Call, { name, text }: Fragment): void {
    if (call.name === '') call.name = name ?? '';
    if (!call.begun && call.name !== '') {
      call.begun = true;
      this.emit({ type: 'tool_call', index: call.index, id: call.id, name: call.name });
      if (call.text !== '') this.emit({ type: 'tool_arguments', index: call.index, delta: call.text });
    }
    this.append(call, text);
  }

  private append(call: Call, text: string): void {
    if (text === '') return;
    if (call.text === '') {
      // Some begin with an empty object in the place of the arguments that then come in fragments.
      const held = call.held + text;
      const bare = held.trim();
      if (bare === '{}' || bare === 'null' || bare === '') {
        call.held = held;
        return;
      }
      const placeholder = call.held.trim() !== '' && opens(text);
      this.say(call, placeholder ? text : held);
      call.held = '';
      return;
    }
    const repeated = opens(text) && isWhole(call.text) && sameJson(call.text, text);
    if (!repeated) this.say(call, text);
  }

  private say(call: Call, delta: string): void {
    call.text += delta;
    if (call.begun) this.emit({ type: 'tool_arguments', index: call.index, delta });
  }
}
