import { maySubscribe, type Principal } from '../../auth/principal.ts';
import { hasWildcard, isChannelName, isChannelPattern, matchesPattern } from '../../streams/channel-name.ts';
import { Problem, quoted } from '../problem.ts';

export interface WantedChannels {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
  /** All of them as they were asked for. */
  readonly channels: readonly string[];
}

/** What the gateway says of itself is for those who run it. */
const GATEWAY = 'gateway.#';

/** What patterns never find for a principal. */
export const hiddenFrom = ({ scopes }: Principal): readonly string[] => (scopes.has('admin') ? [] : [GATEWAY]);

export const mayFollow = (principal: Principal, name: string): boolean =>
  maySubscribe(principal, name) && !hiddenFrom(principal).some((pattern) => matchesPattern(pattern, name));

const HINT = 'In a URL "#" is written "%23" or "**".';

const why = (channel: string): string => {
  const segments = channel.split('.');
  if (segments.includes('')) return ` It has an empty segment. ${HINT}`;
  return segments.slice(0, -1).some((one) => one === '#' || one === '**') ? ' "#" can only be the last segment.' : '';
};

/** The parameter `channels`: names and patterns with commas between them. `declared`: what is meant by none. */
export const parseWanted = (
  text: string | undefined,
  most: number,
  declared: readonly string[],
  principal: Principal,
): WantedChannels => {
  if (text === undefined && declared.length > 0) {
    const names = declared.filter((name) => mayFollow(principal, name));
    if (names.length === 0) throw new Problem('FORBIDDEN', 'Your token does not let you follow any channel here.');
    return { names, patterns: [], channels: names };
  }
  if (text === undefined || text === '') {
    const hint = text === '' ? ` ${HINT}` : ''; // a browser keeps what follows a bare "#" to itself
    throw new Problem('PROTOCOL_ERROR', `Name the channels to follow: /events?channels=a,b.${hint}`);
  }
  const channels = [...new Set(text.split(',').map((part) => part.replace(/(^|\.)\*\*$/, '$1#')))];
  if (most > 0 && channels.length > most) {
    throw new Problem('PROTOCOL_ERROR', `A stream may follow ${most} channels, not ${channels.length}.`);
  }
  for (const channel of channels) {
    if (isChannelPattern(channel)) continue;
    throw new Problem('PROTOCOL_ERROR', `${quoted(channel)} is neither a channel nor a pattern.${why(channel)}`);
  }
  return {
    channels,
    names: channels.filter((channel) => !hasWildcard(channel) && isChannelName(channel)),
    patterns: channels.filter(hasWildcard),
  };
};

/** Named channels that the token may not see are refused; patterns find only what it may. */
export const checkWanted = ({ names }: WantedChannels, principal: Principal): void => {
  const forbidden = names.filter((name) => !mayFollow(principal, name));
  if (forbidden.length === 0) return;
  throw new Problem('FORBIDDEN', `Your token does not let you follow ${forbidden.join(', ')}.`, {
    details: { channels: forbidden },
  });
};
