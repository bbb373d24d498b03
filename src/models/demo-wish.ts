import { findingsIn, inventArguments, wrongArguments } from './demo-arguments.ts';
import { objectIn, parseJson } from './json.ts';
import type { ToolSpec } from './model.ts';
import type { ModelErrorCode } from './model-error.ts';

export interface WantedCall {
  readonly name: string;
  /** Not JSON if that is what was asked for. */
  readonly arguments: string;
}

/** What a message asks of the demo model; docs/DEMO-MODEL.md is the list of all that can be asked. */
export interface Wish {
  /** The calls of the first turn, of the second, ... */
  readonly steps: readonly (readonly WantedCall[])[];
  /** The last step again and again. */
  readonly endless: boolean;
  readonly think: boolean;
  readonly waitMs: number;
  readonly refuse: boolean;
  readonly say?: string;
  readonly longWords?: number;
  readonly stop?: { readonly reason: 'length' | 'content_filter'; readonly words: number };
  readonly fail?: { readonly with: number | ModelErrorCode; readonly afterWords?: number };
}

const MAX_TEXT = 100_000;
const MAX_CALLS = 20;
export const MAX_LONG_WORDS = 100_000;
const MAX_WAIT_SECONDS = 600;
const STOP_WORDS = 5;

const CODES: Readonly<Record<string, ModelErrorCode>> = {
  unavailable: 'unavailable',
  timeout: 'timeout',
  rate_limited: 'rate_limited',
  invalid_request: 'invalid_request',
  context_length: 'context_length',
  content_filter: 'content_filter',
  auth: 'auth',
  not_found: 'not_found',
  bad_answer: 'bad_answer',
  too_large: 'too_large',
};

/** Where a JSON object that begins at `start` ends; if it never does, the end of the line. */
const endOfObject = (text: string, start: number): number => {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === '\\') i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{') depth++;
    else if (char === '}' && --depth === 0) return i + 1;
  }
  const line = text.indexOf('\n', start);
  return line < 0 ? text.length : line;
};

/** A message, read from left to right for tools that it names. What was read is blanked out: it is no further wish. */
class ToolScan {
  readonly steps: WantedCall[][] = [[]];
  endless = false;
  text: string;
  private readonly tools: readonly ToolSpec[];
  private count = 0;
  private at = 0;

  constructor(text: string, tools: readonly ToolSpec[]) {
    this.text = text;
    this.tools = [...tools].sort((a, b) => b.name.length - a.name.length); // the longest name that fits is meant
  }

  read(): void {
    const lead = /\b(then\s+)?(use|call|keep\s+using)\s+/gi;
    for (let match = lead.exec(this.text); match; match = lead.exec(this.text)) {
      this.at = lead.lastIndex;
      const [, then, verb = ''] = match;
      if (this.item(then !== undefined)) {
        this.endless ||= /^keep/i.test(verb);
        while (this.skip(/\s*(?:,\s*and\s|,|\sand\s)\s*(?:(?:use|call)\s+)?/y)) if (!this.item(false)) break;
      }
      lead.lastIndex = this.at;
    }
  }

  private skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.test(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private item(then: boolean): boolean {
    const before = this.at;
    this.skip(/(?:the\s+)?(?:tool\s+)?[`"']?/iy);
    const rest = this.text.slice(this.at);
    const tool = this.tools.find(({ name }) => {
      const same = rest.slice(0, name.length).toLowerCase() === name.toLowerCase();
      return same && !/^(?:[\w-]|\.\w)/.test(rest.slice(name.length));
    });
    if (!tool || this.count >= MAX_CALLS) {
      this.at = before;
      return false;
    }
    this.at += tool.name.length;
    this.skip(/[`"']?(?:\s+tool\b)?/iy);
    const wanted = this.arguments(tool);
    this.count++;
    if (then && this.steps.at(-1)?.length) this.steps.push([]);
    this.steps.at(-1)?.push({ name: tool.name, arguments: wanted });
    return true;
  }

  private arguments(tool: ToolSpec): string {
    if (this.skip(/\s+with\s+bad\s+arguments\b/iy)) return '{"broken": tru';
    if (this.skip(/\s+with\s+wrong\s+arguments\b/iy)) return JSON.stringify(wrongArguments(tool.parameters));
    const start = this.at;
    if (this.skip(/\s*(?:with\s*|:\s*)?(?=\{)/iy)) {
      const end = endOfObject(this.text, this.at);
      const given = this.text.slice(this.at, end);
      this.text = this.text.slice(0, start) + ' '.repeat(end - start) + this.text.slice(end);
      this.at = end;
      return objectIn(parseJson(given)) ? JSON.stringify(parseJson(given)) : given;
    }
    // Up to where something else is asked for: these words are this tool's.
    const own = /[\s\S]*?(?=\b(?:use|call|keep using|then)\b|$)/iy;
    own.lastIndex = this.at;
    return JSON.stringify(inventArguments(tool.parameters, findingsIn(own.exec(this.text)?.[0] ?? '')));
  }
}

const failIn = (text: string): Pick<Wish, 'fail'> => {
  const [, what = '', after] = /\bfail with (\d{3}|[a-z_]+)(?: after (\d{1,6}) words?)?/i.exec(text) ?? [];
  const status = Number(what);
  const code = Object.hasOwn(CODES, what.toLowerCase()) ? CODES[what.toLowerCase()] : undefined;
  const failure = status >= 400 && status < 600 ? status : code;
  if (failure === undefined) return {};
  return { fail: { with: failure, ...(after !== undefined && { afterWords: Number(after) }) } };
};

const stopIn = (text: string): Pick<Wish, 'stop'> => {
  const [, what, words] = /\bstop at (length|filter)(?: after (\d{1,6}) words?)?/i.exec(text) ?? [];
  if (what === undefined) return {};
  const reason = what.toLowerCase() === 'length' ? 'length' : 'content_filter';
  return { stop: { reason, words: words === undefined ? STOP_WORDS : Number(words) } };
};

export const wishIn = (message: string, tools: readonly ToolSpec[]): Wish => {
  const [, asked = '', say] = /^([\s\S]*?)(?:\bsay exactly:\s*([\s\S]+))?$/i.exec(message.slice(0, MAX_TEXT)) ?? [];
  const scan = new ToolScan(asked, tools);
  scan.read();
  const { text, endless } = scan;
  const [, long] = /\blong answer(?: of)? (\d{1,6})\b/i.exec(text) ?? [];
  const [, wait = '0'] = /\bwait (\d{1,4}(?:\.\d{1,3})?) seconds?\b/i.exec(text) ?? [];
  return {
    steps: scan.steps.filter((step) => step.length > 0),
    endless,
    think: /\bthink (?:first|step by step)\b/i.test(text),
    waitMs: Math.min(Number(wait), MAX_WAIT_SECONDS) * 1_000,
    refuse: /\brefuse this request\b/i.test(text),
    ...(say !== undefined && { say }),
    ...(long !== undefined && { longWords: Math.min(Number(long), MAX_LONG_WORDS) }),
    ...stopIn(text),
    ...failIn(text),
  };
};
