import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Authenticator } from '../../auth/authenticate.ts';
import type { Config } from '../../config/config.ts';
import type { SessionDirectory } from '../../environments/directory.ts';
import type { EpisodeLog } from '../../environments/episode-log.ts';
import { type Hosted, Sessions, type SessionsOptions } from '../../environments/sessions.ts';
import type { Jobs } from '../../jobs/jobs.ts';
import type { OrsCounts } from '../../ops/metrics.ts';
import type { CloseReason } from '../../sse/closing.ts';
import type { Drainable } from '../../sse/drainable.ts';
import type { TimerWheel } from '../../sse/timer-wheel.ts';
import { messageOf } from '../../tools/message-of.ts';
import { Asks } from './asks.ts';
import { Calls } from './calls.ts';
import { orsRoutes } from './routes.ts';

export interface OrsParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly replica: string;
  readonly version: string;
  readonly authenticator: Authenticator;
  readonly hosted: readonly Hosted[];
  readonly directory: SessionDirectory;
  readonly jobs: Jobs;
  readonly wheel: TimerWheel;
  readonly counts: OrsCounts;
  readonly episodes: EpisodeLog | undefined;
  readonly acquire: SessionsOptions['acquire'];
  readonly opened: (stream: Drainable) => void;
  readonly closed: (stream: Drainable, reason: CloseReason) => void;
}

export interface Ors {
  readonly router: Router;
  readonly sessions: Sessions;
  /** Every session gets its teardown; then environments and the episode log are closed. */
  close(): Promise<void>;
}

/** The rooms of ORS, put together. */
export const openOrs = (parts: OrsParts): Ors => {
  const { config, logger, replica, hosted, directory, jobs, counts, episodes } = parts;
  const { ors, limits } = config;
  const failed = (message: string, error: unknown): void => logger.error({ err: error }, message);
  const sessions = new Sessions({
    ...{ directory, replica, hosted, failed },
    idleMs: ors.idleSeconds * 1_000,
    replicaState: (owner) => jobs.replicaState(owner),
    recovering: () => jobs.recovering(),
    acquire: parts.acquire,
    observe: {
      created: (session, request) => episodes?.began(session, request),
      setUp: (session, ms, error) => {
        const { environment, sid } = session;
        counts.setUp(environment.name, ms / 1_000, error === undefined);
        episodes?.setUp(session, ms, error === undefined ? undefined : session.setupFailure);
        if (error !== undefined && !session.ended) {
          logger.warn({ sid, environment: environment.name, reason: session.setupFailure }, 'A setup has failed.');
        }
      },
      called: (session, report) => {
        counts.called(session.environment.name, report.end, report.ms / 1_000);
        episodes?.called(session, report);
      },
      ended: (session, end) => {
        counts.ended(session.environment.name, end);
        episodes?.ended(session, end);
        logger.debug({ sid: session.sid, environment: session.environment.name, end }, 'A session has ended.');
      },
      tornDown: (session, ms, error) => {
        const { environment, sid } = session;
        counts.tornDown(environment.name, ms / 1_000, error === undefined);
        if (error !== undefined) {
          const reason = session.conceal(messageOf(error));
          logger.warn({ sid, environment: environment.name, reason }, 'A teardown has failed.');
        }
      },
    },
  });
  jobs.onLost(() => void sessions.sweep());
  const setupWaitMs = ors.setupWaitSeconds * 1_000;
  const asks = new Asks({ jobs, sessions, setupWaitMs });
  const calls = new Calls({
    ...{ jobs, sessions, directory, setupWaitMs, failed },
    lingerMs: ors.lingerSeconds * 1_000,
    wheel: parts.wheel,
    slowMs: limits.slowReaderSeconds * 1_000,
    opened: parts.opened,
    closed: parts.closed,
  });
  const router = orsRoutes({
    ...{ hosted, sessions, asks, calls },
    authenticator: parts.authenticator,
    open: ors.public,
    checkEnv: ors.checkEnv,
    version: parts.version,
    buildSha: ors.buildSha,
  });
  return {
    router,
    sessions,
    close: async () => {
      await sessions.close();
      await Promise.all(hosted.map(({ environment }) => environment.close()));
      await episodes?.close();
    },
  };
};
