import type { DestinationStream } from 'pino';

const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'ERROR',
  60: 'FATAL',
};

const HIDDEN = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

const words = (record: Record<string, unknown>): string => {
  let text = '';
  for (const key of Object.keys(record)) {
    if (HIDDEN.has(key)) continue;
    const value = record[key];
    text += ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`;
  }
  return text;
};

/** Lines for people in front of another destination. A line that is not ours passes as it is. */
export const prettyLines = (destination: DestinationStream): DestinationStream => ({
  write(line: string) {
    let record: Record<string, unknown>;
    try {
      record = JSON.parse(line) as Record<string, unknown>;
    } catch {
      destination.write(line);
      return;
    }
    const time = new Date(Number(record.time)).toISOString().slice(11, 23);
    const level = (LEVELS[Number(record.level)] ?? String(record.level)).padEnd(5);
    const stack = (record.err as { stack?: unknown } | undefined)?.stack;
    const below = typeof stack === 'string' ? `\n${stack}` : '';
    destination.write(`${time} ${level} ${String(record.msg ?? '')}${words(record)}${below}\n`);
  },
});
