import type { JobEvent } from '../../src/jobs/job.ts';
import type { Reset } from '../../src/jobs/reader.ts';

/** What a replica reports of somebody who follows a job there. */
export type Took =
  | { readonly what: 'events'; readonly events: readonly JobEvent[] }
  | { readonly what: 'reset'; readonly reset: Reset }
  | { readonly what: 'end'; readonly state: string };

/** Everything that somebody who follows a job on some replica has seen. */
export class Followed {
  readonly after: number;
  readonly events: JobEvent[] = [];
  readonly resets: Reset[] = [];
  /** How the stream ended. More than one if it ended twice, which must not happen. */
  readonly ends: string[] = [];
  /** When its end was known, on the clock of `performance.now`. */
  endedAt: number | undefined;

  constructor(after: number) {
    this.after = after;
  }

  get last(): number {
    return this.events.at(-1)?.seq ?? this.after;
  }

  get ended(): boolean {
    return this.endedAt !== undefined;
  }

  took(took: Took): void {
    if (took.what === 'events') this.events.push(...took.events);
    if (took.what === 'reset') this.resets.push(took.reset);
    if (took.what === 'end') {
      this.ends.push(took.state);
      this.endedAt ??= performance.now();
    }
  }
}
