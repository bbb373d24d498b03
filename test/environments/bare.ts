import type { Block, Environment, Episode, EpisodeRequest, Outcome } from '../../src/environments/environment.ts';
import type { JsonObject } from '../../src/tools/tool.ts';

/** An environment without a kind: what it gives is not looked at by anybody before the session does. */
export class BareEnvironment implements Environment {
  readonly name = 'bare';
  readonly kind = 'module';
  readonly log: string[] = [];
  /** What its episodes do. */
  opens: (signal: AbortSignal) => Promise<void> = async () => {};
  calls: Episode['call'] = async () => ({ ok: false, error: 'no' }) satisfies Outcome;
  prompts: (signal: AbortSignal) => Promise<readonly Block[]> = async () => [];
  limits: ((tool: string) => number | undefined) | undefined;

  async open(_: EpisodeRequest, signal: AbortSignal): Promise<Episode> {
    this.log.push('open');
    await this.opens(signal);
    const { limits } = this;
    return {
      tools: async () => [],
      prompt: (asked) => this.prompts(asked),
      call: (call) => this.calls(call),
      ...(limits && { timeLimitMs: limits }),
      close: async () => {
        this.log.push('close');
      },
    };
  }

  async splits(): Promise<[]> {
    return [];
  }
  async tools(): Promise<[]> {
    return [];
  }
  async tasks(): Promise<[]> {
    return [];
  }
  async count(): Promise<number> {
    return 0;
  }
  async task(): Promise<JsonObject> {
    return {};
  }
  async range(): Promise<[]> {
    return [];
  }
  async check(): Promise<void> {}
  async close(): Promise<void> {}
}
