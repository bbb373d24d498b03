import { type JsonObject, ToolError } from '../tool.ts';

const PLACE = /\{([A-Za-z_][A-Za-z0-9_-]*)\}/g;

/**
 * `https://host/path/{city}?units={units}`: places are filled with fields of the input, each as one piece that cannot
 * become more than a value. The host has none: an input must not choose whom we talk to.
 */
export class UrlTemplate {
  readonly fields: readonly string[];
  private readonly template: string;
  private readonly segments: number;

  /** Throws one sentence. */
  constructor(template: string) {
    this.template = template;
    this.fields = [...template.matchAll(PLACE)].map(([, name]) => name as string);
    const example = template.replace(PLACE, 'x');
    if (!/^https?:\/\/[^/?#]+/.test(example) || !URL.canParse(example)) {
      throw new Error('The URL must begin with http:// or https:// and name a host.');
    }
    if (/^[a-z]+:\/\/[^/?#]*[{}]/i.test(template)) throw new Error('The host of a URL cannot come from the input.');
    if (/[{}]/.test(example)) throw new Error('A place in a URL reads {name}.');
    const url = new URL(example);
    this.segments = segmentsOf(url);
    if (url.username !== '' || url.password !== '') throw new Error('A URL with credentials in it: use a header.');
  }

  /** The address for an input, and the fields that have no place in it. */
  fill(input: JsonObject): { readonly url: URL; readonly rest: JsonObject } {
    const url = new URL(this.template.replace(PLACE, (_, name: string) => encodeURIComponent(textOf(input[name]))));
    // `..` is not escaped by anything: it would lead out of the path that the operator has written.
    if (segmentsOf(url) !== this.segments) throw new ToolError('invalid_input', 'A part of a path cannot be . or ..');
    const used = new Set(this.fields);
    return { url, rest: Object.fromEntries(Object.entries(input).filter(([name]) => !used.has(name))) };
  }
}

const segmentsOf = (url: URL): number => url.pathname.split('/').length;

/** A value as it stands in a URL. */
export const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
};
