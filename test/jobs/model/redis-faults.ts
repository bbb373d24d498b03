import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisPlace } from '../replicas.ts';
import type { Fault } from './operations.ts';

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
    const keys = await admin.keys('*');
    const reading = admin.multi();
    for (const key of keys) reading.dumpBuffer(key).pttl(key);
    const answers = (await reading.exec())?.map(([, answer]) => answer) ?? [];
    await sleep(ms);
    const writing = admin.multi().flushall();
    for (const [i, key] of keys.entries()) {
      const [dump, ttl] = [answers[2 * i] as Buffer | null, Number(answers[2 * i + 1])];
      if (dump) writing.restore(key, Math.max(0, ttl), dump);
      if (dump && key.endsWith(':meta')) writing.hset(key, 'run', 'another server');
    }
    await writing.exec();
  }
}
