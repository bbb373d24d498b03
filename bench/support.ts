import { readFileSync } from 'node:fs';

/** User and system CPU time of a process so far, in microseconds. */
export const cpuMicros = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000; // in clock ticks of 10 ms
};

export const percentile = (sorted: readonly number[], p: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;

/** p50 and p99 of some times in ms, as text. */
export const spread = (times: readonly number[]): string => {
  const sorted = [...times].sort((a, b) => a - b);
  return `p50 ${percentile(sorted, 0.5).toFixed(2)} ms, p99 ${percentile(sorted, 0.99).toFixed(2)} ms`;
};

export const rate = (count: number, ms: number): string => `${Math.round((count / ms) * 1000).toLocaleString('en')}/s`;

/** Memory that belongs to a process, its share of shared pages included. */
export const memoryKib = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]);
