/**
 * Whether something of a channel was lost between a position and what is still kept. Exact: a channel that was merely
 * quiet never raises a false alarm, because every event names its predecessor.
 *
 * `after`  the number up to which the follower has everything of this channel
 * `first`  the first event after it that is kept and not too old, if there is one
 * `last`   the number of the channel's last event ever, or the highest forgotten one if the store no longer knows the name
 */
export const missed = (after: number, first: { readonly prev: number } | undefined, last: number): boolean =>
  (first ? first.prev : last) > after;
