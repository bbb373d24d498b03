import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const load = (name: string): string => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');

/** The scripts as commands of a connection. ioredis sends the hash, and the text again when the server has lost it. */
export interface LimitCommands {
  sluiceAcquire(
    keys: 2,
    leases: string,
    counts: string,
    replica: string,
    mine: number,
    limit: number,
    keptMs: number,
  ): Promise<0 | 1>;
  sluiceHold(keys: 1, counts: string, replica: string, mine: number, keptMs: number): Promise<null>;
  sluiceRenew(keys: 1, leases: string, replica: string, leaseMs: number): Promise<0 | 1>;
}

const SCRIPTS = { sluiceAcquire: load('acquire'), sluiceHold: load('hold'), sluiceRenew: load('renew') };

const prepared = new WeakSet<Redis>();

export const withLimitScripts = (redis: Redis): Redis & LimitCommands => {
  if (!prepared.has(redis)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) redis.defineCommand(name, { lua });
    prepared.add(redis);
  }
  return redis as Redis & LimitCommands;
};
