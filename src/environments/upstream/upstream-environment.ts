import { MAX_OUTPUT_BYTES, type UpstreamEnvironmentSettings } from '../../config/structures.ts';
import { fill } from '../../tools/placeholders.ts';
import type { JsonObject } from '../../tools/tool.ts';
import {
  type Environment,
  EnvironmentError,
  type Episode,
  type EpisodeRequest,
  type Split,
  type TaskChoice,
  type ToolSpec,
} from '../environment.ts';
import { countIn, splitsIn, taskIn, tasksIn, toolsIn } from './answers.ts';
import { CALL_RETRIES, DEFAULT_TIMES, REQUEST_RETRIES, type UpstreamOptions, type UpstreamTimes } from './options.ts';
import { OrsClient } from './ors-client.ts';
import { createEpisode, createSession } from './session.ts';
import { UpstreamEpisode } from './upstream-episode.ts';

/** Aborted some time after another one: for what should not be cut off in the middle. */
const after = (signal: AbortSignal, ms: number) => {
  const later = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => later.abort(signal.reason), ms);
  };
  if (signal.aborted) begin();
  else signal.addEventListener('abort', begin, { once: true });
  const end = (): void => {
    signal.removeEventListener('abort', begin);
    clearTimeout(timer);
  };
  return { signal: later.signal, end };
};

/** An environment of another ORS server. The constructor throws a sentence if the settings cannot be used. */
export class UpstreamEnvironment implements Environment {
  readonly name: string;
  readonly kind = 'upstream';
  private readonly environment: string;
  private readonly path: string;
  private readonly options: UpstreamOptions;
  private readonly times: UpstreamTimes;
  private readonly now: () => number;
  private readonly client: OrsClient;
  private readonly closing = new AbortController();

  constructor(settings: UpstreamEnvironmentSettings, options: UpstreamOptions = {}) {
    const { name, upstream, environment = name, headers = {} } = settings;
    const { env = {}, random, requestRetries: retries = REQUEST_RETRIES } = options;
    const filled = Object.entries(headers).map(([key, value]) => [key, fill(value, env)] as const);
    this.name = name.toLowerCase();
    this.environment = environment;
    this.path = `/${encodeURIComponent(environment)}`;
    this.options = options;
    this.times = { ...DEFAULT_TIMES, ...options.times };
    this.now = options.now ?? (() => performance.now());
    const { connectMs, requestMs } = this.times;
    this.client = new OrsClient({
      ...{ baseUrl: upstream, connectMs, requestMs, retries, now: this.now, ...(random && { random }) },
      headers: Object.fromEntries(filled.map(([key, { text }]) => [key, text])),
      secrets: filled.flatMap(([, { values }]) => values),
    });
  }

  async splits(): Promise<readonly Split[]> {
    return splitsIn(await this.get('splits'));
  }

  async tools(): Promise<readonly ToolSpec[]> {
    return toolsIn(await this.get('tools'));
  }

  async tasks(split: string): Promise<readonly JsonObject[]> {
    return tasksIn(await this.post('tasks', { split }));
  }

  async count(split: string): Promise<number> {
    return countIn(await this.post('num_tasks', { split }));
  }

  async task(split: string, index: number): Promise<JsonObject> {
    return taskIn(await this.post('task', { split, index }));
  }

  async range(split: string, start: number, stop: number): Promise<readonly JsonObject[]> {
    return tasksIn(await this.post('task_range', { split, start, stop }));
  }

  /** A task of one's own is judged by the upstream alone, when the episode is opened. */
  async check(choice: TaskChoice): Promise<void> {
    if ('split' in choice) await this.task(choice.split, choice.index);
  }

  async open({ choice, secrets }: EpisodeRequest, signal: AbortSignal): Promise<Episode> {
    const { client, path, environment, times, now } = this;
    const { callRetries: retries = CALL_RETRIES, maxResultBytes = MAX_OUTPUT_BYTES, warn, random } = this.options;
    const sid = await createSession(client, secrets, signal);
    const common = { client, path, sid, times, retries, maxResultBytes, now };
    const episode = new UpstreamEpisode({ ...common, ...(warn && { warn }), ...(random && { random }) });
    // A deletion that overtakes the creation would leave an episode behind.
    const patience = after(signal, times.closeMs);
    try {
      signal.throwIfAborted();
      await createEpisode(client, { sid, environment, choice, secrets, signal: patience.signal });
      signal.throwIfAborted();
      await episode.ready(signal);
      signal.throwIfAborted();
      return episode;
    } catch (error) {
      await episode.close();
      throw signal.aborted ? signal.reason : error;
    } finally {
      patience.end();
    }
  }

  async close(): Promise<void> {
    this.closing.abort(new EnvironmentError('unavailable', 'The gateway stops.'));
    await this.client.close();
  }

  private async get(what: string): Promise<string> {
    const { signal } = this.closing;
    return (await this.client.ask({ method: 'GET', path: `${this.path}/${what}`, signal })).text;
  }

  private async post(what: string, body: JsonObject): Promise<string> {
    const { signal } = this.closing;
    return (await this.client.ask({ method: 'POST', path: `${this.path}/${what}`, body, signal })).text;
  }
}
