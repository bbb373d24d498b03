import fc from 'fast-check';
import { calmStories, faultyStories, type Story } from './model/operations.ts';
import { RedisFaults } from './model/redis-faults.ts';
import { broken } from './model/verdict.ts';
import { World, type WorldOptions } from './model/world.ts';
import { memoryPlace, type Place, redisPlace } from './replicas.ts';

/**
 * For whoever looks for something:
 *
 *     SLUICE_MODEL_RUNS    so many runs of each kind, on Redis in each lane
 *     SLUICE_MODEL_SEED    the seed of a run that failed; what happens is the same, when it happens nearly so
 *     SLUICE_MODEL_SHRINK  look for a shorter story that fails, which takes its time
 */
const RUNS = Number(process.env.SLUICE_MODEL_RUNS ?? 0);
const SEED = process.env.SLUICE_MODEL_SEED;
/** Most of a run is waiting: several at a time, each with a server of its own. */
const LANES = 4;
const RUNS_IN_MEMORY = 80;
const RUNS_ON_REDIS = 6;
const MINUTES = 60_000;

const run = async (options: WorldOptions, story: Story): Promise<void> => {
  const { place, times } = options;
  await place.clear();
  const world = new World({ ...options, times: { ...times, lingerMs: story.lingerMs } });
  try {
    await world.begin();
    await world.play(story);
    await world.rest();
    const found = world.jobs.flatMap((job) => broken(job, story.lingerMs));
    const failures = [...world.living, ...world.dead].flatMap((replica) => replica.failures);
    expect({ found, failures, troubles: world.troubles }).toEqual({ found: [], failures: [], troubles: [] });
  } catch (error) {
    throw new Error(`What was seen:\n${tell(world)}`, { cause: error });
  } finally {
    await world.close();
  }
};

const tell = (world: World): string =>
  world.jobs
    .map(({ id, puppet, clients, orphaned, flushed, cancelled }) =>
      [
        `${puppet.name} ${id}${orphaned ? ' orphaned' : ''}${flushed ? ' flushed' : ''}${cancelled ? ' cancelled' : ''} emitted ${puppet.emitted.size}`,
        ...clients.map(({ name, after, heard, position, ended, gone }) => {
          const story = heard.map((item) =>
            'reset' in item
              ? `[${item.reset.reason} ${item.reset.from}]`
              : 'end' in item
                ? `(${item.end})`
                : item.event.data.slice(0, 40),
          );
          return `  ${name} after ${after}: ${story.join(', ')} | at ${position} ${ended ?? ''} ${gone ? `gone ${gone}` : ''}`;
        }),
      ].join('\n'),
    )
    .join('\n');

const settings = (runs: number): fc.Parameters<[Story]> => ({
  numRuns: RUNS || runs,
  endOnFailure: !process.env.SLUICE_MODEL_SHRINK,
  ...(SEED !== undefined && { seed: Number(SEED) }),
});

describe('whatever happens to jobs and those who follow them', () => {
  describe('in memory', () => {
    const place: Place = memoryPlace();
    const times = { renewMs: 20, lookMs: 10, holdOffMs: 40, cancelMs: 30 };
    afterAll(() => place.stop());

    it(
      'everybody sees the same events, each once and in order, and one end',
      () =>
        fc.assert(
          fc.asyncProperty(calmStories, (story) => run({ place, times }, story)),
          settings(RUNS_IN_MEMORY),
        ),
      RUNS ? 60 * MINUTES : MINUTES,
    );
  });

  describe('with Redis and its faults', () => {
    const lanes = Array.from({ length: LANES }, () => redisPlace());
    // Marks come every second: less than that is no sign of a loss.
    const times = { renewMs: 100, lookMs: 100, holdOffMs: 1_500, cancelMs: 100 };
    beforeAll(() => Promise.all(lanes.map((place) => place.start())));
    afterAll(() => Promise.all(lanes.map((place) => place.stop())));

    it(
      'everybody sees the same events, each once and in order, and one end',
      async () => {
        const outcomes = await Promise.allSettled(
          lanes.map((place) => {
            const fault = new RedisFaults(place).cause;
            const property = fc.asyncProperty(faultyStories, (story) => run({ place, times, fault }, story));
            return fc.assert(property, settings(RUNS_ON_REDIS));
          }),
        );
        for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
      },
      RUNS ? 60 * MINUTES : 2 * MINUTES,
    );
  });
});
