import type { Redis } from 'ioredis';
import type { SharedCounts } from './shared-counts.ts';

interface Increment {
  rlflxIncr(args: readonly string[]): Promise<unknown>;
}

/**
 * The library keeps one connection for ever, ours come and go: this stands between. It throws while Redis is away, and the
 * library then asks its local counts.
 */
export const limiterStore = (counts: SharedCounts) => {
  const prepared = new WeakSet<Redis>();
  let script: { lua: string; numberOfKeys?: number } | undefined;
  return {
    defineCommand(_: 'rlflxIncr', definition: { lua: string; numberOfKeys?: number }): void {
      script = definition;
    },
    async rlflxIncr(args: readonly string[]): Promise<unknown> {
      const answer = await counts.ask((connection) => {
        if (script && !prepared.has(connection)) {
          connection.defineCommand('rlflxIncr', script);
          prepared.add(connection);
        }
        return (connection as Redis & Increment).rlflxIncr(args);
      });
      if (answer === undefined) throw new Error('Redis is away.');
      return answer;
    },
  };
};
