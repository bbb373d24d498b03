import { randomUUID } from 'node:crypto';
import type { Episode, EpisodeCall, EpisodeRequest } from '../../../src/environments/environment.ts';
import type { UpstreamOptions } from '../../../src/environments/upstream/options.ts';
import { UpstreamEnvironment } from '../../../src/environments/upstream/upstream-environment.ts';
import type { OrsServer } from '../../support/ors-server.ts';
import { running } from '../../support/running.ts';

const AT_ONCE = { retries: 3, firstDelayMs: 0, longestDelayMs: 0 };

/** The environment `lab` of a server; nothing waits between two attempts. */
export const upstream = (
  server: Pick<OrsServer, 'url'>,
  options: UpstreamOptions = {},
  settings: Partial<ConstructorParameters<typeof UpstreamEnvironment>[0]> = {},
): UpstreamEnvironment => {
  const environment = new UpstreamEnvironment(
    { name: 'Lab', upstream: server.url, ...settings },
    { requestRetries: AT_ONCE, callRetries: AT_ONCE, ...options },
  );
  running.add({ stop: () => environment.close() });
  return environment;
};

export const never = (): AbortSignal => new AbortController().signal;

export const wish = (change: Partial<EpisodeRequest> = {}): EpisodeRequest => ({
  ...{ sid: 'ours', principal: 'somebody', choice: { split: 'train', index: 0 }, secrets: {} },
  ...change,
});

export const open = (environment: UpstreamEnvironment): Promise<Episode> => environment.open(wish(), never());

export const echo = (text: string, change: Partial<EpisodeCall> = {}): EpisodeCall => ({
  ...{ name: 'echo', input: { text }, taskId: randomUUID(), signal: never() },
  ...change,
});

/** Something that is waited for, and given from outside. */
export const gate = <T = void>() => {
  let open!: (value: T) => void;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

export const until = async (met: () => boolean): Promise<void> => {
  while (!met()) await new Promise((resolve) => setTimeout(resolve, 2));
};
