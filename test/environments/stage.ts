import { randomUUID } from 'node:crypto';
import { MemoryDirectory } from '../../src/environments/memory-directory.ts';
import { defineEnvironment } from '../../src/environments/module/define-environment.ts';
import { ModuleEnvironment } from '../../src/environments/module/module-environment.ts';
import type { Session } from '../../src/environments/session.ts';
import { type Hosted, Sessions, type SessionsOptions } from '../../src/environments/sessions.ts';

/** A promise that the test settles. */
export class Gate<T = void> {
  readonly promise: Promise<T>;
  open: (value: T) => void = () => {};
  fail: (error: Error) => void = () => {};

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.open = resolve;
      this.fail = reject;
    });
    this.promise.catch(() => {});
  }
}

/** An environment whose setup, tool and teardown wait for the test, and are counted. */
export class Stage {
  readonly log: string[] = [];
  setup: Gate = new Gate();
  tool: Gate<unknown> = new Gate<unknown>();
  teardown: Gate = new Gate();
  readonly environment: ModuleEnvironment;

  constructor(name = 'stage', other: Readonly<Record<string, unknown>> = {}) {
    this.teardown.open();
    this.environment = new ModuleEnvironment(
      defineEnvironment({
        name,
        splits: ['train'],
        tasks: { count: () => 3, get: (_, index) => ({ index }) },
        tools: [
          { name: 'echo', description: 'Says it again.', run: ({ text }) => String(text) },
          {
            name: 'wait',
            description: 'Waits for the test.',
            run: async (_, { signal, secrets }) => {
              this.log.push('call');
              signal.addEventListener('abort', () => this.log.push('told to stop'), { once: true });
              const answer = await this.tool.promise;
              if (answer instanceof Error) throw new Error(`${answer.message} ${Object.values(secrets).join()}`);
              return answer as string;
            },
          },
        ],
        prompt: ({ task }) => `Task ${task.index}`,
        setup: async ({ secrets, signal }) => {
          this.log.push('setup');
          signal.addEventListener('abort', () => this.log.push('setup told to stop'), { once: true });
          try {
            await this.setup.promise;
          } catch (error) {
            throw new Error(`${(error as Error).message} ${Object.values(secrets).join()}`);
          }
        },
        teardown: async () => {
          this.log.push('teardown');
          await this.teardown.promise;
        },
        ...other,
      }),
    );
  }

  hosted(limits: Partial<Hosted['limits'] & Omit<Hosted, 'limits' | 'environment'>> = {}): Hosted {
    const { maxSessions = 0, maxQueued = 0, maxCalls = 16, callTimeoutMs = 0, maxOutputBytes = 1_000_000 } = limits;
    return {
      environment: this.environment,
      maxSessions,
      maxQueued,
      limits: { maxCalls, callTimeoutMs, maxOutputBytes },
    };
  }
}

/** What happened to the sessions of a replica. */
export class Watched {
  readonly seen: string[] = [];
  readonly reports: unknown[] = [];
  readonly observe: SessionsOptions['observe'] = {
    created: () => this.seen.push('created'),
    setUp: (_, __, error) => this.seen.push(error === undefined ? 'set up' : 'setup failed'),
    called: (_, report) => this.reports.push(report),
    ended: (_, end) => this.seen.push(end),
    tornDown: (_, __, error) => this.seen.push(error === undefined ? 'torn down' : 'teardown failed'),
  };
}

export class Replica {
  readonly watched = new Watched();
  readonly sessions: Sessions;
  readonly name = randomUUID();
  readonly failures: unknown[] = [];

  constructor(hosted: readonly Hosted[], options: Partial<SessionsOptions> = {}) {
    this.sessions = new Sessions({
      directory: new MemoryDirectory(),
      replica: this.name,
      hosted,
      idleMs: 900_000,
      replicaState: async () => 'alive',
      recovering: async () => false,
      acquire: async () => () => {},
      observe: this.watched.observe,
      failed: (message, error) => this.failures.push([message, error]),
      ...options,
    });
  }

  async create(hosted: Hosted, sid = 's', principal = 'ann', secrets: Record<string, string> = {}): Promise<Session> {
    await this.sessions.create(hosted, { sid, principal, choice: { split: 'train', index: 0 }, secrets });
    return this.sessions.local(principal, sid) as Session;
  }
}

/** Everything that can go on without time has gone on. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
