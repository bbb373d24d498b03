import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisPlace } from '../replicas.ts';
import type { Fault } from './operations.ts';

/** All at once: a copy of different moments is none that any server would ever have had. */
const COPY = `
local copy = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  table.insert(copy, { key, redis.call('DUMP', key), tostring(redis.call('PTTL', key)) })
end
return copy`;

/** What a Redis server can do to those who rely on it. */
export class RedisFaults {
  private readonly place: RedisPlace;
  private paused = 0;

  constructor(place: RedisPlace) {
    this.place = place;
  }

  readonly cause = async (fault: Fault): Promise<void> => {
    const { admin } = this.place;
    if (fault.what === 'pause') await this.pause(fault.ms);
    else if (fault.what === 'flush') await admin.flushall();
    else if (fault.what === 'back') await this.goBack(fault.ms);
    else {
      const clients = String(await admin.client('LIST')).split('\n');
      const ids = clients.flatMap((line) => {
        const id = /\bid=(\d+)/.exec(line)?.[1];
        return id !== undefined && line.includes(`name=sluice-${fault.link} `) ? [id] : [];
      });
      const chosen = fault.which === 'all' ? ids : ids.slice(fault.which % ids.length, (fault.which % ids.length) + 1);
      await Promise.all(chosen.map((id) => admin.client('KILL', 'ID', id)));
    }
  };

  /** It stops in the middle of everything and then goes on as if nothing had been. */
  private async pause(ms: number): Promise<void> {
    const { child } = this.place.server;
    this.paused++;
    child.kill('SIGSTOP');
    await sleep(ms);
    if (--this.paused === 0) child.kill('SIGCONT');
  }

  private async goBack(ms: number): Promise<void> {
    const { admin } = this.place;
    const copy = (await admin.callBuffer('EVAL', COPY, 0)) as Buffer[][];
    await sleep(ms);
    const writing = admin.multi().flushall();
    for (const [key = '', dump = '', ttl] of copy) {
      writing.restore(key, Math.max(0, Number(ttl)), dump);
      if (key.toString().endsWith(':meta')) writing.hset(key, 'run', 'another server');
    }
    await writing.exec();
  }
}
