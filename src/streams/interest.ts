import { matchesPattern } from './channel-name.ts';
import type { Encoder } from './entry.ts';
import { Group } from './group.ts';

/** What somebody wants to follow. */
export interface Wanted {
  readonly names: readonly string[];
  readonly patterns?: readonly string[];
  /** A channel that a pattern finds counts only if one of these matches too; named ones were checked before. */
  readonly granted?: readonly string[];
  /** What patterns never find. */
  readonly hidden?: readonly string[];
}

const keyOf = ({ names, patterns = [], granted = [], hidden = [] }: Wanted): string => {
  const lists = patterns.length > 0 ? [names, patterns, granted, hidden] : [names];
  return JSON.stringify(lists.map((list) => [...new Set(list)].sort()));
};

/** The same wish of any number of followers. */
export class Interest {
  readonly key: string;
  readonly patterns: readonly string[];
  /** The partitions in which there is something to follow. */
  readonly lanes: readonly number[];
  /** The followers that are live, by the bytes they take. */
  readonly groups = new Map<Encoder, Group>();
  followers = 0;
  private readonly granted: readonly string[];
  private readonly hidden: readonly string[];
  private readonly nameSet: ReadonlySet<string>;
  private readonly namesByLane = new Map<number, string[]>();

  constructor(wanted: Wanted, partitions: number, partitionOf: (channel: string) => number) {
    this.key = keyOf(wanted);
    this.nameSet = new Set(wanted.names);
    this.patterns = [...new Set(wanted.patterns ?? [])];
    this.granted = wanted.granted ?? ['#'];
    this.hidden = wanted.hidden ?? [];
    for (const name of this.nameSet) {
      const lane = partitionOf(name);
      this.namesByLane.set(lane, [...(this.namesByLane.get(lane) ?? []), name]);
    }
    this.lanes = Array.from({ length: partitions }, (_, i) => i).filter(
      (i) => this.patterns.length > 0 || this.namesByLane.has(i),
    );
  }

  static keyOf(wanted: Wanted): string {
    return keyOf(wanted);
  }

  namesIn(lane: number): readonly string[] {
    return this.namesByLane.get(lane) ?? [];
  }

  allNames(): Iterable<string> {
    return this.nameSet;
  }

  hasName(channel: string): boolean {
    return this.nameSet.has(channel);
  }

  /** What a notice about a whole partition names: patterns as they were asked for, since the names behind them may be lost. */
  channelsIn(lane: number): string[] {
    return [...this.namesIn(lane), ...this.patterns];
  }

  /** Whether a pattern of this interest finds a channel. */
  finds(channel: string): boolean {
    return (
      this.patterns.some((pattern) => matchesPattern(pattern, channel)) &&
      this.granted.some((pattern) => matchesPattern(pattern, channel)) &&
      !this.hidden.some((pattern) => matchesPattern(pattern, channel))
    );
  }

  group(encoder: Encoder): Group {
    let group = this.groups.get(encoder);
    if (!group) {
      group = new Group(encoder);
      this.groups.set(encoder, group);
    }
    return group;
  }
}
