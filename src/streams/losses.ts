import { missed } from './missed.ts';

/** What a follower that catches up has lost, told once each. */
export class Losses {
  /** Per channel, the number up to which a loss has been told already. */
  private readonly told = new Map<string, number>();
  /** Partitions that start over after a notice, which covers whatever is not kept of them at the first look. */
  private readonly covered = new Set<number>();

  /** Whether something of the channel after a number is lost that was not told before; it counts as told from now on. */
  find(channel: string, after: number, first: { readonly prev: number } | undefined, last: number): boolean {
    const known = Math.max(after, this.told.get(channel) ?? 0);
    if (!missed(known, first, last)) return false;
    this.told.set(channel, first ? first.prev : last);
    return true;
  }

  /** A notice about the whole partition is given: it starts over, with other numbers perhaps. */
  startOver(partition: number): void {
    this.told.clear(); // numbers of another epoch may be far beyond those to come
    this.covered.add(partition);
  }

  /** Whether the notice about the whole partition covers what was just found; it does so once. */
  takeCover(partition: number): boolean {
    return this.covered.delete(partition);
  }

  /** The follower is level with everything. */
  clear(): void {
    this.told.clear();
    this.covered.clear();
  }
}
