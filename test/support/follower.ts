import { EventSource } from 'eventsource';
import { eventually } from '../streams/logs.ts';
import { running } from './running.ts';

/** An `EventSource` of numbers on one channel. */
export class Follower {
  /** Data of the messages, in their order. */
  readonly seen: number[] = [];
  /** Of each connection, whether it went on where the last one was. */
  readonly resumed: boolean[] = [];
  private readonly source: EventSource;

  private constructor(url: string) {
    running.add(this); // it would try again for ever
    this.source = new EventSource(url);
    this.source.onmessage = ({ data }) => {
      const { type, payload } = JSON.parse(data);
      if (type === 'connected') this.resumed.push(payload.resumed);
      else this.seen.push(payload.data);
    };
  }

  /** Resolves when it is connected. */
  static async open(url: string): Promise<Follower> {
    const follower = new Follower(url);
    await eventually(() => follower.resumed.length === 1, 3_000);
    return follower;
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.source.close();
  }
}
