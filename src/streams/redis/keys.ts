/** All keys and topics of a partition share its hash tag, so that one cluster node holds them and one script may touch them. */
export class PartitionKeys {
  readonly meta: string;
  readonly last: string;
  /** In front of a channel's name: its stream, and the topic of its events. */
  readonly streams: string;
  /** Topic of all events of the partition. */
  readonly all: string;
  /** In front of everything. */
  readonly base: string;

  constructor(prefix: string, partition: number) {
    this.base = `${prefix}{${partition}}:`;
    this.meta = `${this.base}meta`;
    this.last = `${this.base}last`;
    this.streams = `${this.base}s:`;
    this.all = `${this.base}all`;
  }

  /** Whether a topic carries events of channels. */
  isChannels(topic: string): boolean {
    return topic === this.all || topic.startsWith(this.streams);
  }

  stream(channel: string): string {
    return this.streams + channel;
  }

  replica(id: string): string {
    return `${this.base}r:${id}`;
  }

  idempotency(name: string): string {
    return `${this.base}i:${name}`;
  }

  idempotencySet(principal: string): string {
    return `${this.base}ik:${principal}`;
  }
}
