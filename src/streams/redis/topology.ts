import { Redis } from 'ioredis';
import { within } from './link.ts';
import { ANSWER_MS, connectionOptions, type RedisNode, type RedisSettings } from './settings.ts';

type Slots = [from: number, to: number, master: [host: string | null, port: number, ...unknown[]], ...unknown[]][];

/** Which node of the cluster is the master of a key, asked anew each time: links ask only when they have lost theirs. */
export const findMaster = async (settings: RedisSettings, key: string): Promise<RedisNode> => {
  let failure: unknown;
  for (const node of settings.nodes) {
    const redis = new Redis(connectionOptions(settings, node, 'sluice-topology'));
    redis.on('error', () => {});
    try {
      await within(ANSWER_MS, redis.connect(), `Connecting to ${node.host}:${node.port}`);
      const [slot, slots] = await within(
        ANSWER_MS,
        Promise.all([redis.cluster('KEYSLOT', key), redis.cluster('SLOTS') as Promise<unknown> as Promise<Slots>]),
        'Asking for the cluster slots',
      );
      const owner = slots.find(([from, to]) => slot >= from && slot <= to);
      if (!owner) throw new Error(`No node of the cluster serves slot ${slot}.`);
      const [host, port] = owner[2];
      return { host: host || node.host, port }; // empty: the node does not know its own address
    } catch (error) {
      failure = error;
    } finally {
      redis.disconnect();
    }
  }
  throw failure;
};
