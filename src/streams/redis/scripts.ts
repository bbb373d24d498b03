import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const load = (name: string): string => readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8');

/** The scripts as commands of a connection. ioredis sends the hash, and the text again when the server has lost it. */
export interface ScriptCommands {
  sluiceAppend(keys: number, ...args: (string | number)[]): Promise<[epoch: string, ids: string[]]>;
  sluiceMark(
    keys: 2,
    meta: string,
    last: string,
    topic: string,
    token: string,
    fresh: string,
    broken: string,
  ): Promise<[epoch: string, ms: string, seq: string, now: string, run: string]>;
}

export type ScriptedRedis = Redis & ScriptCommands;

const SCRIPTS = { sluiceAppend: load('append'), sluiceMark: load('mark') };

export const withScripts = (redis: Redis): ScriptedRedis => {
  for (const [name, lua] of Object.entries(SCRIPTS)) redis.defineCommand(name, { lua });
  return redis as ScriptedRedis;
};
