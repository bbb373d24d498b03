import type { OrsClient } from './ors-client.ts';

/** Tells an upstream that an episode is still wanted, and learns from it when there is none any more. */
export class KeepAlive {
  private readonly client: OrsClient;
  private readonly sid: string;
  private readonly intervalMs: number;
  private readonly lost: () => void;
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;

  constructor(client: OrsClient, sid: string, intervalMs: number, lost: () => void) {
    this.client = client;
    this.sid = sid;
    this.intervalMs = intervalMs;
    this.lost = lost;
    this.schedule();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.stopping.abort();
  }

  private schedule(): void {
    if (this.stopping.signal.aborted) return;
    this.timer = setTimeout(() => void this.ping().then(() => this.schedule()), this.intervalMs);
    this.timer.unref();
  }

  /** Never throws: a ping that fails is made up for by the next one. */
  private async ping(): Promise<void> {
    const { client, sid, stopping } = this;
    const request = { method: 'POST', path: '/ping', sid, signal: stopping.signal } as const;
    const status = await client.send(request).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status !== 404 && status !== 410) return;
    this.stop();
    this.lost();
  }
}
