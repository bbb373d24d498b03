import type { Interest } from './interest.ts';
import { MAX_NAMES } from './log.ts';

/**
 * Every channel of a partition with its last number, while patterns are followed: a pattern's channels are not known in
 * advance, so the feed then carries all of them.
 *
 *     off      no pattern is followed
 *     wanted   the index is not loaded yet, or no longer to be trusted
 *     live     complete
 */
export class Wildcard {
  state: 'off' | 'wanted' | 'live' = 'off';
  followed = false;
  idleSince: number | undefined;
  readonly last = new Map<string, number>();
  /** The last number of every channel that is not listed is not beyond this. */
  forgot = 0;
  private followers = 0;
  private readonly foundBy = new Map<Interest, Set<string>>();

  want(interest: Interest): void {
    this.followers++;
    this.idleSince = undefined;
    if (this.state === 'off') this.state = 'wanted';
    if (this.foundBy.has(interest)) return;
    this.foundBy.set(interest, new Set([...this.last.keys()].filter((name) => interest.finds(name))));
  }

  unwant(interest: Interest, last: boolean, now: number): void {
    if (--this.followers === 0) this.idleSince = now;
    if (last) this.foundBy.delete(interest);
  }

  /** The channels that an interest's patterns find. */
  found(interest: Interest): Iterable<string> {
    return this.foundBy.get(interest) ?? [];
  }

  finders(channel: string): Interest[] {
    return [...this.foundBy.keys()].filter((interest) => interest.finds(channel));
  }

  lastOf(channel: string): number {
    return this.last.get(channel) ?? this.forgot;
  }

  saw(channel: string, seq: number): void {
    const known = this.last.get(channel);
    if (known !== undefined && known >= seq) return;
    this.last.set(channel, seq);
    if (known !== undefined) return;
    for (const [interest, found] of this.foundBy) if (interest.finds(channel)) found.add(channel);
    if (this.last.size > MAX_NAMES * 1.1) this.prune();
  }

  load(index: { readonly forgot: number; readonly last: ReadonlyMap<string, number> }): void {
    this.forgot = index.forgot;
    for (const [name, seq] of index.last) this.saw(name, seq);
    this.state = 'live';
  }

  /** What was known is void, but still wanted. */
  reset(followed: boolean): void {
    this.last.clear();
    for (const found of this.foundBy.values()) found.clear();
    this.followed = followed && this.followed;
    if (this.state === 'live') this.state = 'wanted';
  }

  drop(): void {
    this.reset(false);
    this.idleSince = undefined;
    this.state = 'off';
  }

  /** The store forgets names beyond its limit, and so must this list. */
  private prune(): void {
    const oldest = [...this.last].sort(([, a], [, b]) => a - b).slice(0, this.last.size - MAX_NAMES);
    for (const [name, seq] of oldest) {
      this.last.delete(name);
      for (const found of this.foundBy.values()) found.delete(name);
      this.forgot = Math.max(this.forgot, seq);
    }
  }
}
