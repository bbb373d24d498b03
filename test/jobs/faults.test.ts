import type { Job } from '../../src/jobs/writer.ts';
import { eventually } from '../streams/logs.ts';
import { follow, memoryPlace, testKind } from './replicas.ts';

/** What went wrong once, and how it was seen. */
describe('what jobs survive', () => {
  const kind = testKind();
  const place = memoryPlace();
  beforeEach(() => place.clear());
  afterAll(() => place.stop());

  // A replica that had just found its inbox empty, and was about to note that it had stopped looking, took the next bell
  // for one that it was still going to answer. On a store that rings only once, that work was never begun.
  it('hears the bell that rings while it finishes looking into its inbox', async () => {
    const begun: string[] = [];
    const work = async (job: Job, input: string): Promise<void> => {
      begun.push(input);
      await job.end('completed', 'end');
    };
    const a = await place.replica({ kinds: [kind] });
    const b = await place.replica({ kinds: [kind], work });
    const wanted = { kind, principal: 'ann' };
    for (let turns = 0; turns < 40; turns++) {
      const first = a.jobs.dispatch(wanted, b.name, `first ${turns}`);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      const second = a.jobs.dispatch(wanted, b.name, `second ${turns}`);
      for (const { id } of await Promise.all([first, second])) {
        const follower = await follow(a, id);
        await eventually(() => follower.ended !== undefined, 2_000);
      }
    }
    expect(begun).toHaveLength(80);
  });
});
