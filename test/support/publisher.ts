import { setTimeout as sleep } from 'node:timers/promises';
import { tokenFor } from './gateway.ts';
import { running } from './running.ts';

/** Publishes one event; resolves to its id. */
export const post = async (
  url: string,
  event: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const answer = await fetch(`${url}/events`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${tokenFor()}`, ...headers },
    body: JSON.stringify(event),
  });
  const body = (await answer.json()) as { id: string };
  if (answer.status !== 201) throw new Error(`${answer.status}: ${JSON.stringify(body)}`);
  return body.id;
};

/** Publishes 1, 2, 3, ... to a channel, one every few milliseconds, until it is stopped. */
export class Counter {
  published = 0;
  private stopped = false;
  private readonly done: Promise<void>;

  constructor(url: () => string, channel: string) {
    running.add(this);
    this.done = this.run(url, channel);
    this.done.catch(() => {}); // told by stop()
  }

  /** All that was published, in order. */
  get all(): number[] {
    return Array.from({ length: this.published }, (_, i) => i + 1);
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.stopped = true;
    await this.done;
  }

  private async run(url: () => string, channel: string): Promise<void> {
    while (!this.stopped) {
      await post(url(), { channel, data: this.published + 1 });
      this.published++;
      await sleep(5);
    }
  }
}
