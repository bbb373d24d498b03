import { Jobs } from '../../src/jobs/jobs.ts';
import { MemoryJobStore } from '../../src/jobs/memory-store.ts';
import type { StoreListener } from '../../src/jobs/store.ts';
import { Counting } from './replicas.ts';

/** A store whose news the test makes up. */
class Told extends MemoryJobStore {
  readonly living = new Set<string>();
  steady = 0;
  losing = false;
  listener: StoreListener | undefined;

  override listen(listener: StoreListener): void {
    super.listen(listener);
    this.listener = listener;
  }
  override async alive(owner: string): Promise<boolean> {
    return this.living.has(owner);
  }
  override steadySince(): number {
    return this.steady;
  }
  override async recovering(): Promise<boolean> {
    return this.losing;
  }
}

describe('whether a replica is there', () => {
  let store: Told;
  let jobs: Jobs;
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'], now: 1_000_000 });
    store = new Told();
    jobs = new Jobs({ store, replica: 'me', observe: new Counting(), times: { holdOffMs: 10_000 } });
  });
  afterEach(async () => {
    await jobs.close();
    jest.useRealTimers();
  });
  const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  it('is certain of itself, and of those who have a lease', async () => {
    store.living.add('other');
    expect(await jobs.replicaState('me')).toBe('alive');
    expect(await jobs.replicaState('other')).toBe('alive');
  });

  it('is uncertain until it has been away for so long, since it was first asked for', async () => {
    store.steady = performance.now() - 1_000_000;
    expect(await jobs.replicaState('other')).toBe('unsure');
    await pass(9_999);
    expect(await jobs.replicaState('other')).toBe('unsure');
    expect(await jobs.replicaState('third')).toBe('unsure');
    await pass(1);
    expect(await jobs.replicaState('other')).toBe('gone');
    expect(await jobs.replicaState('third')).toBe('unsure');
  });

  it('begins anew with one that was seen in between', async () => {
    store.steady = performance.now() - 1_000_000;
    await jobs.replicaState('other');
    await pass(9_000);
    store.living.add('other');
    expect(await jobs.replicaState('other')).toBe('alive');
    store.living.delete('other');
    await pass(9_000);
    expect(await jobs.replicaState('other')).toBe('unsure');
    await pass(10_000);
    expect(await jobs.replicaState('other')).toBe('gone');
  });

  it('is uncertain while the store was not steady for so long', async () => {
    await jobs.replicaState('other');
    await pass(15_000);
    store.steady = performance.now();
    expect(await jobs.replicaState('other')).toBe('unsure');
    await pass(9_999);
    expect(await jobs.replicaState('other')).toBe('unsure');
    await pass(1);
    expect(await jobs.replicaState('other')).toBe('gone');
  });

  it('tells whoever wants to know when the store has lost something, and for how long that is felt', async () => {
    const told: string[] = [];
    jobs.onLost(() => told.push('one'));
    jobs.onLost(() => told.push('two'));
    expect(await jobs.recovering()).toBe(false);
    store.losing = true;
    store.listener?.lost();
    expect(told).toEqual(['one', 'two']);
    expect(await jobs.recovering()).toBe(true);
  });
});
