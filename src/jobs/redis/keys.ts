/** A partition's keys and topics for jobs. All share its hash tag, so that one script may touch them. */
export class JobKeys {
  readonly owners: string;
  readonly inboxes: string;
  /** In front of a replica's id: its own topic. */
  readonly replicas: string;
  private readonly base: string;

  /** `base` is the partition's, hash tag included. */
  constructor(base: string) {
    this.base = base;
    this.owners = `${base}owners`;
    this.inboxes = `${base}inbox:`;
    this.replicas = `${base}r:`;
  }

  job(id: string): string {
    return `${this.base}j:${id}`;
  }

  /** The stream, and the topic of its events. */
  log(id: string): string {
    return `${this.base}j:${id}:l`;
  }

  jobs(owner: string): string {
    return `${this.base}jobs:${owner}`;
  }

  inbox(owner: string): string {
    return this.inboxes + owner;
  }

  key(name: string): string {
    return `${this.base}jk:${name}`;
  }

  keysOf(principal: string): string {
    return `${this.base}jks:${principal}`;
  }

  lease(owner: string): string {
    return `${this.base}lease:${owner}`;
  }
}
