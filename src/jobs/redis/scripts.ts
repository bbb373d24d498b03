import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const load = (name: string): string => readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8');

type Arguments = readonly (string | number)[];

/** An entry of a stream as Redis gives it. */
export type RawEntry = [id: string, fields: string[]];

/** The scripts as commands of a connection. ioredis sends the hash, and the text again when the server has lost it. */
export interface JobCommands {
  sluiceJobCreate(
    keys: 7,
    ...args: Arguments
  ): Promise<['created', string] | ['known', string] | ['conflict'] | ['busy']>;
  sluiceJobDiscard(keys: 7, ...args: Arguments): Promise<0 | 1>;
  sluiceJobEmit(keys: 4, ...args: Arguments): Promise<'stored' | 'fenced' | 'lost'>;
  sluiceJobRestore(keys: 4, ...args: Arguments): Promise<'stored' | 'fenced'>;
  sluiceJobRead(keys: 2, ...args: Arguments): Promise<[hash: string[], entries: RawEntry[]]>;
  sluiceJobCancel(keys: 1, ...args: Arguments): Promise<string | null>;
  sluiceJobApprove(keys: 1, ...args: Arguments): Promise<'decided' | 'same' | 'conflict' | null>;
  sluiceJobReap(keys: 3, ...args: Arguments): Promise<'reaped' | 'over' | 'grown'>;
  sluiceJobBury(keys: 3, ...args: Arguments): Promise<1>;
  sluiceJobLease(keys: 1, ...args: Arguments): Promise<0 | 1>;
}

const SCRIPTS = {
  sluiceJobCreate: load('create'),
  sluiceJobDiscard: load('discard'),
  sluiceJobEmit: load('emit'),
  sluiceJobRestore: load('restore'),
  sluiceJobRead: load('read'),
  sluiceJobCancel: load('cancel'),
  sluiceJobApprove: load('approve'),
  sluiceJobReap: load('reap'),
  sluiceJobBury: load('bury'),
  sluiceJobLease: load('lease'),
};

const prepared = new WeakSet<Redis>();

export const withJobScripts = (redis: Redis): Redis & JobCommands => {
  if (!prepared.has(redis)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) redis.defineCommand(name, { lua });
    prepared.add(redis);
  }
  return redis as Redis & JobCommands;
};
