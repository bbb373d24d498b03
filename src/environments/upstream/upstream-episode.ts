import type { Block, Episode, EpisodeCall, Outcome, ToolSpec } from '../environment.ts';
import { EnvironmentError } from '../environment.ts';
import { promptIn, toolsIn } from './answers.ts';
import { KeepAlive } from './keep-alive.ts';
import { gone } from './refusal.ts';
import { RelayedCall, type RelayedCallOptions } from './relayed-call.ts';

export interface UpstreamEpisodeOptions extends RelayedCallOptions {
  readonly warn?: (message: string) => void;
}

/** `/delete_session` has nothing to do. */
const GOODBYE_MS = 1_000;

/** An episode of an upstream: there it has an id of its own, and is wanted for as long as pings come. */
export class UpstreamEpisode implements Episode {
  private readonly options: UpstreamEpisodeOptions;
  private pings: KeepAlive | undefined;
  private first: readonly Block[] | undefined;
  private gone = false;

  constructor(options: UpstreamEpisodeOptions) {
    this.options = options;
  }

  /** Once it is created: keeps it alive, and waits for the setup. The upstream gives no prompt before it is over. */
  async ready(signal: AbortSignal): Promise<void> {
    const { client, sid, times } = this.options;
    this.pings = new KeepAlive(client, sid, times.pingMs, () => {
      this.gone = true;
    });
    this.first = promptIn(await this.get('prompt', signal, true));
  }

  async tools(signal: AbortSignal): Promise<readonly ToolSpec[]> {
    return toolsIn(await this.get('task_tools', signal));
  }

  async prompt(signal: AbortSignal): Promise<readonly Block[]> {
    const { first } = this;
    this.first = undefined;
    return first ?? promptIn(await this.get('prompt', signal));
  }

  async call(call: EpisodeCall): Promise<Outcome> {
    call.signal.throwIfAborted();
    return this.noticing(() => new RelayedCall(call, this.options).run());
  }

  async close(): Promise<void> {
    this.pings?.stop();
    const { closeMs } = this.options.times;
    await this.leave('/delete', closeMs);
    await this.leave('/delete_session', Math.min(closeMs, GOODBYE_MS));
  }

  private async get(what: string, signal: AbortSignal, patient = false): Promise<string> {
    const { client, path, sid } = this.options;
    const request = { method: 'GET', path: `${path}/${what}`, sid, signal, patient } as const;
    return this.noticing(async () => (await client.ask(request)).text);
  }

  /** Once the upstream has lost the episode nothing brings it back. */
  private async noticing<T>(ask: () => Promise<T>): Promise<T> {
    if (this.gone) throw gone();
    try {
      return await ask();
    } catch (error) {
      this.gone ||= error instanceof EnvironmentError && error.code === 'gone';
      throw error;
    }
  }

  private async leave(path: string, ms: number): Promise<void> {
    const { client, sid, warn } = this.options;
    try {
      await client.ask({ method: 'POST', path, sid, signal: AbortSignal.timeout(ms) });
    } catch (error) {
      if (error instanceof EnvironmentError && error.code === 'gone') return;
      const why = error instanceof EnvironmentError ? error.message : `It took longer than ${ms} ms.`;
      warn?.(`${path} of an upstream did not work. ${why}`);
    }
  }
}
