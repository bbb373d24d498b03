import { randomUUID } from 'node:crypto';
import type { AgentGate, Place } from '../../agents/agent-gate.ts';
import {
  CapabilityFailed,
  type CapabilityParts,
  type CapabilityStep,
  runCapability,
} from '../../agents/capability-run.ts';
import { JobError } from '../../jobs/errors.ts';
import type { Jobs } from '../../jobs/jobs.ts';
import type { Job } from '../../jobs/writer.ts';
import type { Offered } from '../../manifests/catalogue.ts';
import { Problem } from '../problem.ts';
import { aboutOf, aboutText, capabilityKind, errorEvent, progressEvent, resultEvent } from './capability-event.ts';

export interface Invocation extends Offered {
  readonly input: Readonly<Record<string, unknown>>;
  readonly principal: string;
  readonly correlationId?: string;
  /** As it was asked for. */
  readonly timeoutSeconds?: number;
  readonly idempotency?: { readonly key: string; readonly fingerprint: string };
  /** Called when it is over here, or was begun by somebody else. */
  readonly finished?: () => void;
}

export interface InvocationStarted {
  readonly id: string;
  readonly correlationId: string;
  /** How long it may take. */
  readonly timeoutMs: number;
}

const DEFAULT_SECONDS = 60;
const MAX_SECONDS = 3_600;

const secondsOf = ({ agent, capability, timeoutSeconds }: Invocation): number => {
  const wanted = timeoutSeconds ?? capability.timeoutSeconds ?? agent.timeoutSeconds ?? DEFAULT_SECONDS;
  return Math.min(Math.max(1, wanted), MAX_SECONDS);
};

/** What a job could not be started for, in the words of this protocol. */
const problemOfJob = (error: JobError): Problem => {
  const soon = { headers: { 'Retry-After': '1' } };
  if (error.code === 'conflict') return new Problem('CONFLICT', error.message);
  if (error.code === 'limit' || error.code === 'busy') return new Problem('RATE_LIMIT_EXCEEDED', error.message, soon);
  return new Problem('UNAVAILABLE', error.message, soon);
};

const REFUSED = {
  rate: (name: string) => `The agent ${name} takes no more requests this minute.`,
  queue: (name: string) => `Too many requests are waiting for the agent ${name}.`,
} as const;

const payloadOf = (step: CapabilityStep): Readonly<Record<string, unknown>> => {
  if ('delta' in step) return step;
  const { progress: current, total, message } = step.progress;
  const percent = total !== undefined && total > 0 ? Math.min(100, Math.max(0, (current / total) * 100)) : undefined;
  return {
    progress: { ...(percent !== undefined && { percent }), current, ...(total !== undefined && { total }) },
    ...(message !== undefined && { message }),
  };
};

/** Invocations of capabilities, as jobs. */
export class Invocations {
  private readonly jobs: Jobs;
  private readonly gate: AgentGate;
  private readonly parts: CapabilityParts;

  constructor(jobs: Jobs, gate: AgentGate, parts: CapabilityParts) {
    this.jobs = jobs;
    this.gate = gate;
    this.parts = parts;
    jobs.declare(capabilityKind);
  }

  /** The input has been checked. Throws a `Problem`, or a `LogError`; nothing was started then. */
  async start(invocation: Invocation): Promise<InvocationStarted> {
    const { agent, capability, principal, idempotency } = invocation;
    const correlationId = invocation.correlationId ?? randomUUID();
    const timeoutMs = secondsOf(invocation) * 1_000;
    const admission = await this.gate.enter(agent);
    if (!admission.allowed) {
      throw new Problem('RATE_LIMIT_EXCEEDED', REFUSED[admission.reason](agent.name), {
        headers: { 'Retry-After': String(admission.retryAfterSeconds) },
      });
    }
    const { place } = admission;
    try {
      const about = aboutText({ capability: capability.name, agentId: agent.uri, correlationId });
      const wanted = { kind: capabilityKind, principal, about, ...(idempotency && { idempotency }) };
      const { id, created } = await this.jobs.start(wanted, (job) => this.work(job, invocation, place, timeoutMs));
      if (created) return { id, correlationId, timeoutMs };
      place.leave();
      invocation.finished?.();
      // Its frames carry the one that the first request was given.
      const known = await this.jobs.find(id, principal);
      return { id, correlationId: known ? aboutOf(known).correlationId : correlationId, timeoutMs };
    } catch (error) {
      place.leave();
      throw error instanceof JobError ? problemOfJob(error) : error;
    }
  }

  private async work(job: Job, invocation: Invocation, place: Place, timeoutMs: number): Promise<void> {
    const { agent, capability, input, principal } = invocation;
    const late = new AbortController();
    const stop = (): void => late.abort(job.signal.reason);
    job.signal.addEventListener('abort', stop, { once: true });
    let timer: NodeJS.Timeout | undefined;
    const slow = new CapabilityFailed(`${capability.name} took longer than ${timeoutMs / 1_000} s.`, { timeout: true });
    try {
      await place.turn(job.signal);
      timer = setTimeout(() => late.abort(slow), timeoutMs);
      const step = (one: CapabilityStep): Promise<void> => job.emit(progressEvent(job, payloadOf(one)));
      const run = { agent, capability, input, principal, signal: late.signal, step };
      const result = await runCapability(run, this.parts);
      await job.end('completed', resultEvent(job, result));
    } catch (error) {
      if (!(error instanceof CapabilityFailed)) throw error; // a cancel, or a fault of ours
      const { message, timeout, retryable } = error;
      await job.end('failed', errorEvent(job, { code: timeout ? 'TIMEOUT' : 'CAPABILITY_ERROR', message, retryable }));
    } finally {
      clearTimeout(timer);
      job.signal.removeEventListener('abort', stop);
      place.leave();
      invocation.finished?.();
    }
  }
}
