import type { SessionEntry } from '../../src/environments/directory.ts';
import { holderOf } from '../../src/environments/holder.ts';
import { MemoryDirectory } from '../../src/environments/memory-directory.ts';
import { Sessions, sessionKey } from '../../src/environments/sessions.ts';
import { sums } from './module/sums.ts';

/** A directory whose first answer takes as long as the test likes. */
class FarDirectory extends MemoryDirectory {
  private tellAsked: () => void = () => {};
  private tellArrived: (() => void) | undefined;
  readonly asked = new Promise<void>((resolve) => {
    this.tellAsked = resolve;
  });
  private readonly arrived = new Promise<void>((resolve) => {
    this.tellArrived = resolve;
  });

  arrive(): void {
    this.tellArrived?.();
  }

  override async open(key: string, owner: string, environment: string): Promise<'opened' | SessionEntry> {
    this.tellAsked();
    await this.arrived;
    return super.open(key, owner, environment);
  }
}

const limits = { maxCalls: 0, callTimeoutMs: 0, maxOutputBytes: 1_000 };
const request = { sid: 'a', principal: 'ada', choice: { split: 'train', index: 0 }, secrets: {} };

const hosting = (directory: MemoryDirectory) => {
  const hosted = { environment: sums(), maxSessions: 1, maxQueued: 0, limits };
  const begun: string[] = [];
  const places = { taken: 0 };
  const sessions = new Sessions({
    ...{ directory, replica: 'here', hosted: [hosted], idleMs: 60_000 },
    replicaState: async () => 'alive',
    recovering: async () => false,
    acquire: async () => {
      places.taken++;
      let released = false;
      return () => {
        if (!released) places.taken--;
        released = true;
      };
    },
    observe: {
      created: ({ sid }) => begun.push(sid),
      setUp: () => {},
      called: () => {},
      ended: () => {},
      tornDown: () => {},
    },
    failed: (_message, error) => {
      throw error;
    },
  });
  return { sessions, hosted, begun, places };
};

describe('a session that is deleted before it is there', () => {
  it('is told to whoever wanted it, leaves nothing open, and gives its place back', async () => {
    const directory = new FarDirectory();
    const { sessions, hosted, begun, places } = hosting(directory);
    const created = sessions.create(hosted, request);
    await directory.asked;
    const session = sessions.local('ada', 'a');
    if (!session) throw new Error('it is not known yet');
    await sessions.end(session, 'deleted');
    directory.arrive();
    await expect(created).rejects.toThrow('Session deleted');
    await expect(sessions.find('ada', 'a')).rejects.toThrow('Session deleted');
    expect({ begun, taken: places.taken, counts: sessions.counts().get('sums') }).toEqual({
      begun: [],
      taken: 0,
      counts: { waiting: 0, setup: 0, ready: 0, failed: 0, ended: 0 },
    });
    await sessions.create(hosted, request);
    expect((await sessions.find('ada', 'a')).where).toBe('here');
    await sessions.close();
  });
});

describe('a session whose id was used before on the same gateway', () => {
  it('begins though the end of the first could not be written, and outlives that end when it is', async () => {
    const directory = new MemoryDirectory();
    const { sessions, hosted } = hosting(directory);
    const key = sessionKey('ada', 'a');
    await directory.open(key, holderOf('here', 'before'), 'sums');
    await sessions.create(hosted, request);
    await directory.close(key, holderOf('here', 'before'), 'deleted');
    expect((await directory.visit(key))?.state).toBe('open');
    await sessions.sweep();
    expect((await sessions.find('ada', 'a')).where).toBe('here');
    await sessions.close();
  });
});
