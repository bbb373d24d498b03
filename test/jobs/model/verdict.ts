import type { JobEvent } from '../../../src/jobs/job.ts';
import { listing } from '../replicas.ts';
import type { Client } from './client.ts';
import type { Started } from './world.ts';

/** Everything that should not have been; empty if the promises were kept. */
export const broken = (job: Started, lingerMs: number): string[] => {
  const found: string[] = [];
  const stream = new Map<number, JobEvent>();
  const disagreed = job.clients.flatMap((client) => (toldOfLoss(client) ? [] : agree(stream, client)));
  const final = [...stream.values()].find(({ end }) => end);
  for (const client of job.clients) {
    found.push(...judgeClient(job, client, final, lingerMs).map((what) => `${client.name}: ${what}`));
  }
  // Of a job that nobody can bring back, those who have left may have seen more than is left of it.
  if (!forgotten(job, lingerMs)) found.push(...disagreed, ...judgeStream(job, stream));
  found.push(...judgeAnswers(job));
  return found.map((what) => `${job.puppet.name}: ${what}`);
};

/** The stream is gone from the store and nobody is left to bring it back, or its owner came too late with it. */
const lost = ({ flushed, orphaned, puppet, owner, kind }: Started): boolean =>
  flushed && (orphaned || puppet.job === undefined || `fenced ${kind.name}` in owner.observed.counts);

const toldOfLoss = ({ heard }: Client): boolean =>
  heard.some((item) => 'reset' in item && item.reset.reason !== 'collapsed');

/** Nobody brings back what has ended a while ago. */
const forgotten = (job: Started, lingerMs: number): boolean => {
  const { puppet, cancelled, flushed, kind } = job;
  const over = puppet.ownEnd || cancelled || kind.name === 'brief';
  return lost(job) || (flushed && over && lingerMs < 1_000);
};

const judgeClient = (job: Started, client: Client, final: JobEvent | undefined, lingerMs: number): string[] => {
  const found: string[] = [];
  // A newcomer cannot know what was there before.
  const excused = forgotten(job, lingerMs) || (job.flushed && client.gone === 'for a newcomer');
  let next = client.after + 1;
  // Who begins behind the terminal event is told that it has ended, and nothing else.
  let terminal = client.after > 0 && client.after === final?.seq ? final.end : undefined;
  for (const item of client.heard) {
    if ('end' in item) {
      if (item.end !== terminal && !excused)
        found.push(`ended ${item.end} behind a terminal event that says ${terminal}`);
    } else if ('reset' in item) {
      const { reason, from } = item.reset;
      const folded = reason === 'collapsed' && job.kind.snapshot;
      if (!folded && !excused) found.push(`was reset to ${from}: ${reason}`);
      if (terminal && !excused) found.push(`was reset to ${from} behind the terminal event`);
      next = from;
      terminal = undefined;
    } else {
      const { seq, end } = item.event;
      if (terminal && !excused) found.push(`got ${seq} behind the terminal event`);
      if (seq !== next) found.push(`got ${seq} where ${next} comes next`);
      next = seq + 1;
      terminal = end;
    }
  }
  if (client.gone && !excused) found.push('was told that there is no such job');
  if (!client.gone && terminal === undefined && !excused) found.push('got no terminal event');
  return found;
};

/** Whoever has seen a number has seen the same under it. */
const agree = (stream: Map<number, JobEvent>, { name, heard }: Client): string[] => {
  const found: string[] = [];
  for (const item of heard) {
    if (!('event' in item)) continue;
    const { seq, data, end } = item.event;
    const known = stream.get(seq);
    if (known && (known.data !== data || known.end !== end))
      found.push(`${name}: ${data} where others have ${known.data}`);
    else stream.set(seq, item.event);
  }
  return found;
};

const judgeStream = (job: Started, stream: ReadonlyMap<number, JobEvent>): string[] => {
  const found: string[] = [];
  const { puppet, orphaned, flushed } = job;
  const last = Math.max(0, ...stream.keys());
  const ends = [...stream.values()].filter(({ end }) => end);
  if (ends.length > 1 || (ends[0] && ends[0].seq !== last)) found.push(`has ${ends.length} terminal events`);
  const [end] = ends;
  // The event that was one too many has no number of its own.
  const tooLarge = end?.data.startsWith('too_large') ?? false;
  const owners = end?.data.startsWith(`${puppet.name}.`) ?? false;
  for (const { seq, data } of stream.values()) {
    const emitted = puppet.emitted.get(seq);
    if (data === emitted) continue;
    // The gateway's own words: a note, then the end; instead of what a dead owner could not store any more.
    const words = !owners && seq > last - 2;
    if (!words) found.push(`${data.slice(0, 60)} at ${seq}, where the work has said ${emitted?.slice(0, 60)}`);
    else if (emitted !== undefined && !orphaned && !flushed && !tooLarge)
      found.push(`${data} instead of ${emitted.slice(0, 60)}`);
  }
  if (end && /owner_lost|store_lost/.test(end.data) && !orphaned && !flushed)
    found.push(`${end.data}, but its owner lives`);
  if (job.cancelled && !orphaned && !flushed && !puppet.ownEnd && end?.end !== 'cancelled' && !tooLarge) {
    found.push(`was cancelled and ended ${end?.end}`);
  }
  for (const { heard } of job.clients) {
    for (const item of heard) {
      if (!('reset' in item) || item.reset.snapshot === undefined) continue;
      const before = Array.from({ length: item.reset.from - 1 }, (_, i) => ({ data: puppet.emitted.get(i + 1) ?? '' }));
      if (item.reset.snapshot !== listing(undefined, before))
        found.push(`a snapshot before ${item.reset.from} is not what was said`);
    }
  }
  return found;
};

const judgeAnswers = ({ puppet, outcomes, flushed }: Started): string[] => {
  const found: string[] = [];
  for (const [question, answer] of puppet.questions) {
    const decided = outcomes.filter((each) => each.question === question && each.outcome === 'decided');
    if (decided.length > 1 && !flushed) found.push(`${question} was decided ${decided.length} times`);
    const approved = decided[0]?.approved;
    if (answer && !flushed && approved !== undefined && answer.approved !== approved)
      found.push(`${question} was answered otherwise`);
    if (flushed) continue;
    for (const each of outcomes) {
      if (each.question !== question || approved === undefined) continue;
      const wrong =
        each.outcome === 'same'
          ? each.approved !== approved
          : each.outcome === 'conflict' && each.approved === approved;
      if (wrong) found.push(`${question}: told ${each.outcome} for ${each.approved}`);
    }
  }
  return found;
};
