import { JobCancelled, JobOver } from '../../../src/jobs/errors.ts';
import type { Decision } from '../../../src/jobs/job.ts';
import type { Job } from '../../../src/jobs/writer.ts';
import type { Way } from './operations.ts';

/** Work that does what the test says, and remembers what it has put under which number. */
export class Puppet {
  readonly name: string;
  /** Does not listen when it is cancelled. */
  readonly deaf: boolean;
  readonly emitted = new Map<number, string>();
  /** What was asked, and the answer that has reached the work. */
  readonly questions = new Map<string, Decision | undefined>();
  /** It has ended the job itself, or wanted to. */
  ownEnd = false;
  job: Job | undefined;
  private said = 0;
  private release: () => void = () => {};
  private readonly released: Promise<void>;

  constructor(name: string, deaf: boolean) {
    this.name = name;
    this.deaf = deaf;
    this.released = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  readonly work = async (job: Job): Promise<void> => {
    if (this.job) throw new Error(`${this.name} was begun twice`);
    this.job = job;
    job.signal.addEventListener('abort', () => this.aborted(job));
    if (job.signal.aborted) this.aborted(job);
    await this.released;
  };

  async emit(count: number, way: Way): Promise<void> {
    const filling = way === 'fat' ? ' '.padEnd(150_000, 'x') : '';
    for (let i = 0; i < count; i++) {
      const emitted = this.say((data) => this.job?.emit((seq) => data(seq, filling)));
      if (way === 'steps') await emitted;
    }
  }

  async ask(): Promise<void> {
    const name = `q${this.questions.size + 1}`;
    this.questions.set(name, undefined);
    await this.say(async (data) => {
      const decision = await this.job?.ask(name, (seq) => data(seq, ` ${name}?`));
      if (decision) this.questions.set(name, decision);
    });
  }

  async end(): Promise<void> {
    this.ownEnd = true;
    await this.say((data) => this.job?.end('completed', (seq) => data(seq, ' done')));
    this.release();
  }

  /** The work returns, if it has not yet. */
  stop(): void {
    this.release();
  }

  private aborted(job: Job): void {
    if (job.signal.reason instanceof JobOver) this.release();
    else if (job.signal.reason instanceof JobCancelled && !this.deaf) {
      void this.say((data) => job.end('cancelled', (seq) => data(seq, ' stopped'))).then(this.release);
    }
  }

  /** No two events say the same: one that comes twice or under another number is seen. */
  private async say(speak: (data: (seq: number, more: string) => string) => Promise<void> | undefined): Promise<void> {
    try {
      await speak((seq, more) => {
        const data = `${this.name}.${seq}.${++this.said}${more}`;
        this.emitted.set(seq, data);
        return data;
      });
    } catch (error) {
      if (!(error instanceof JobOver || error instanceof JobCancelled)) throw error;
    }
  }
}
