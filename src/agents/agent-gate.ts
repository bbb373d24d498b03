import { aborted } from '../jobs/aborted.ts';
import type { Agent } from '../manifests/agent.ts';

/** Asks for one more request of an agent: within its rate, and with a place in line. */
export type Admission =
  | { readonly allowed: true; readonly place: Place }
  | { readonly allowed: false; readonly reason: 'rate' | 'queue'; readonly retryAfterSeconds: number };

/** A place in the line of an agent. */
export interface Place {
  /** Resolves when it is this one's turn; rejects with the signal's reason. */
  turn(signal: AbortSignal): Promise<void>;
  /** To be called once it is over, whether its turn came or not; more often does no harm. */
  leave(): void;
}

export interface AgentRates {
  /** One more request of an agent, over all replicas. */
  take(
    agent: string,
    perMinute: number,
    burst: number | undefined,
  ): Promise<{ readonly allowed: true } | { readonly allowed: false; readonly retryAfterSeconds: number }>;
}

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** So many wait for an agent; more would only grow old in line. */
const MAX_WAITING = 100;

/**
 * What manifests allow: requests per minute, and requests at the same time on this replica. Those beyond the second wait in
 * line, and are refused when the line is full.
 */
export class AgentGate {
  private readonly rates: AgentRates;
  private readonly lines = new Map<string, Line>();

  constructor(rates: AgentRates) {
    this.rates = rates;
  }

  /** Requests that run and that wait, by agent. */
  load(agent: string): { readonly running: number; readonly waiting: number } {
    const line = this.lines.get(agent);
    return { running: line?.running ?? 0, waiting: line?.waiting.length ?? 0 };
  }

  /** Over all agents. */
  totals(): { readonly active: number; readonly waiting: number } {
    const lines = [...this.lines.values()];
    return {
      active: lines.filter(({ running }) => running > 0).length,
      waiting: lines.reduce((sum, { waiting }) => sum + waiting.length, 0),
    };
  }

  async enter({ name, rateLimit, maxConcurrentRequests }: Agent): Promise<Admission> {
    const most = maxConcurrentRequests ?? Number.POSITIVE_INFINITY;
    const line = this.lines.get(name) ?? { running: 0, waiting: [] };
    this.lines.set(name, line);
    if (line.running >= most && line.waiting.length >= MAX_WAITING) {
      return { allowed: false, reason: 'queue', retryAfterSeconds: 1 };
    }
    if (rateLimit?.requestsPerMinute !== undefined) {
      const verdict = await this.rates.take(name, rateLimit.requestsPerMinute, rateLimit.burst);
      if (!verdict.allowed) return { allowed: false, reason: 'rate', retryAfterSeconds: verdict.retryAfterSeconds };
    }
    return { allowed: true, place: this.place(line, most) };
  }

  private place(line: Line, most: number): Place {
    let state: 'waiting' | 'running' | 'over' = line.running < most ? 'running' : 'waiting';
    let woken: () => void = () => {};
    if (state === 'running') line.running++;
    const turn = new Promise<void>((resolve) => {
      if (state === 'running') return resolve();
      woken = () => {
        state = 'running'; // the place was handed over
        resolve();
      };
      line.waiting.push(woken);
    });
    return {
      turn: async (signal) => {
        if (state === 'running') return;
        await Promise.race([turn, aborted(signal)]);
      },
      leave: () => {
        if (state === 'over') return;
        if (state === 'waiting') line.waiting.splice(line.waiting.indexOf(woken), 1);
        else if (state === 'running') {
          const next = line.waiting.shift();
          if (next) next();
          else line.running--;
        }
        state = 'over';
      },
    };
  }
}
