import { listIn, objectIn, parseJson, textIn } from '../../models/json.ts';
import { EnvironmentError, invalidIndex, invalidSplit, notListed } from '../environment.ts';

/** Of what an upstream says about a failure, so much is passed on. */
const MAX_DETAIL_BYTES = 16_384;

/** The beginning of a text, whole characters only. */
export const capped = (text: string, maxBytes = MAX_DETAIL_BYTES): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })}…`;
};

/** A fault in a body, without the value itself: it may be a secret. */
const faultIn = (value: unknown): string => {
  const { loc, msg } = objectIn(value) ?? {};
  return `${listIn(loc).join('.')}: ${textIn(msg) ?? 'is wrong'}`;
};

/** What an answer says in `detail`; empty if it says nothing, as the page of a proxy does. */
export const detailIn = (text: string): string => {
  const detail = objectIn(parseJson(text))?.detail;
  return capped(Array.isArray(detail) ? detail.map(faultIn).join('; ') : (textIn(detail) ?? ''));
};

export interface Refusal {
  readonly status: number;
  readonly detail: string;
  /** Whether it was about an episode, which the upstream must know. */
  readonly episode: boolean;
}

/** Passing troubles: a request that only asks may be asked again. */
export const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

export const gone = (): EnvironmentError => new EnvironmentError('gone', 'The upstream has lost the episode.');

export const away = (why: string, cause?: unknown): EnvironmentError =>
  new EnvironmentError('unavailable', `The upstream cannot be reached (${why}).`, cause);

const KNOWN: readonly (readonly [RegExp, (detail: string) => EnvironmentError])[] = [
  [/^invalid split\b/i, invalidSplit],
  [/^invalid index\b/i, invalidIndex],
  [/^list_tasks is not supported\b/i, notListed],
  [/\bnot (supported|implemented)\b/i, (detail) => new EnvironmentError('unsupported', detail)],
];

/** What an answer other than 2xx means. */
export const refusalOf = ({ status, detail, episode }: Refusal): EnvironmentError => {
  const said = detail === '' ? '.' : `: ${detail}`;
  if (status === 410 || (status === 404 && episode)) return gone();
  if (status === 429) return new EnvironmentError('busy', `The upstream is busy${said}`);
  if (AWAY.has(status)) return away(`it answered ${status}`);
  if (status === 501) return new EnvironmentError('unsupported', `The upstream cannot do that${said}`);
  if (status === 400 || status === 422) {
    const known = KNOWN.find(([words]) => words.test(detail));
    if (known) return known[1](detail);
  }
  const failed = (sentence: string) => new EnvironmentError('failed', sentence);
  if (status === 401 || status === 403) {
    return failed(`The upstream refuses the gateway's credentials (${status})${said}`);
  }
  // The reference redirects what does not begin with one of its environments.
  if (status >= 300 && status < 400) {
    return failed(`The upstream answered with a redirect (${status}): it has no such environment, or another address.`);
  }
  if (status === 404) return failed(`The upstream has no such environment, or does not speak ORS (404)${said}`);
  return failed(`The upstream answered ${status}${said}`);
};
