import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { fill } from '../tools/placeholders.ts';
import { ChatBackend } from './chat-backend.ts';
import { DemoModel } from './demo-model.ts';
import { type ModelObserver, Models, type NamedBackend } from './models.ts';

export interface OpenModelsOptions {
  readonly settings: Pick<Config, 'models'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly observe?: ModelObserver;
}

/** The backend that `models.baseUrl` names: it serves what no other one does. */
const MAIN = 'default';

/** The models of the settings. Throws a `ConfigError`. */
export const openModels = ({ settings: { models }, env, observe }: OpenModelsOptions): Models => {
  const problems: string[] = [];
  const idleMs = models.streamTimeoutSeconds * 1_000;
  const backends: NamedBackend[] = [];
  for (const { name, baseUrl, apiKey, headers = {}, models: served } of models.backends) {
    try {
      const filled = (text: string): string => fill(text, env).text;
      const backend = new ChatBackend({
        baseUrl,
        idleMs,
        headers: Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, filled(value)])),
        ...(apiKey !== undefined && { apiKey: filled(apiKey) }),
      });
      if (name === MAIN || backends.some((other) => other.name === name)) throw new Error('the name is taken');
      backends.push({ name, backend, ...(served && { models: served }) });
    } catch (error) {
      problems.push(`models.backends: ${name}: ${error instanceof Error ? error.message : String(error)}.`);
    }
  }
  if (models.baseUrl !== undefined) {
    const { baseUrl, apiKey } = models;
    const backend = new ChatBackend({ baseUrl, idleMs, ...(apiKey !== undefined && { apiKey }) });
    backends.push({ name: MAIN, backend });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const { demoWordsPerSecond } = models;
  return new Models({
    backends,
    demo: new DemoModel({ wordMs: demoWordsPerSecond === 0 ? 0 : 1_000 / demoWordsPerSecond }),
    ...(observe && { observe }),
  });
};
