import fc from 'fast-check';

export const KIND_NAMES = ['plain', 'folding', 'brief'] as const;
export type KindName = (typeof KIND_NAMES)[number];

/** All at once, one after the other, or all at once and large. */
export type Way = 'burst' | 'steps' | 'fat';

/** What happens. Numbers choose among whatever there is at that moment; an operation that finds nothing does nothing. */
export type Operation =
  | { readonly what: 'start'; readonly on: number; readonly kind: KindName; readonly deaf: boolean }
  /** Asked for on one replica, done by another. */
  | { readonly what: 'dispatch'; readonly on: number; readonly to: number; readonly deaf: boolean }
  | { readonly what: 'emit'; readonly job: number; readonly count: number; readonly way: Way }
  | { readonly what: 'attach'; readonly job: number; readonly on: number; readonly percent: number }
  | { readonly what: 'drop'; readonly client: number }
  | { readonly what: 'resume'; readonly client: number; readonly on: number }
  /** At once: the last of a connection and the first of the next one on another replica. */
  | { readonly what: 'move'; readonly client: number; readonly on: number }
  | { readonly what: 'cancel'; readonly job: number; readonly on: number }
  | { readonly what: 'ask'; readonly job: number }
  | { readonly what: 'answer'; readonly job: number; readonly on: number; readonly approved: boolean }
  | { readonly what: 'end'; readonly job: number }
  | { readonly what: 'crash'; readonly on: number }
  /** A replica takes the owner for dead and ends its job, wrongly; the owner goes on. */
  | { readonly what: 'usurp'; readonly job: number; readonly on: number; readonly count: number }
  | Fault;

/** What happens to the store. */
export type Fault =
  | { readonly what: 'pause'; readonly ms: number }
  | { readonly what: 'flush' }
  /** Everything is as it was so long ago, as after a failover to a server that had not got it all. */
  | { readonly what: 'back'; readonly ms: number }
  /** Connections of one replica, or of all. */
  | { readonly what: 'cut'; readonly link: 'commands' | 'subscriber'; readonly which: number | 'all' };

export interface Step {
  readonly operation: Operation;
  /** Then: 0 nothing, 1 a turn of the event loop, else so many ms. */
  readonly wait: number;
}

const any = fc.nat({ max: 11 });

const ordinary: fc.WeightedArbitrary<Operation>[] = [
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('start'),
      on: any,
      kind: fc.constantFrom(...KIND_NAMES),
      deaf: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('dispatch'), on: any, to: any, deaf: fc.boolean() }) },
  {
    weight: 9,
    arbitrary: fc.record({
      what: fc.constant('emit'),
      job: any,
      count: fc.integer({ min: 1, max: 9 }),
      way: fc.constantFrom('burst', 'burst', 'steps', 'steps', 'fat'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ what: fc.constant('attach'), job: any, on: any, percent: fc.constantFrom(0, 0, 50, 100) }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('drop'), client: any }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('resume'), client: any, on: any }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('move'), client: any, on: any }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('cancel'), job: any, on: any }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('ask'), job: any }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('answer'), job: any, on: any, approved: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('end'), job: any }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('crash'), on: any }) },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('usurp'), job: any, on: any, count: fc.integer({ min: 1, max: 4 }) }),
  },
];

/** The store is away, and then it is what it was. */
const outages: fc.WeightedArbitrary<Operation>[] = [
  { weight: 1, arbitrary: fc.record({ what: fc.constant('pause'), ms: fc.constantFrom(30, 300, 2_500) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant('cut'),
      link: fc.constantFrom('commands', 'subscriber'),
      which: fc.oneof(fc.constant('all' as const), any),
    }),
  },
];

/** The store has less than it had. */
const losses: fc.WeightedArbitrary<Operation>[] = [
  { weight: 1, arbitrary: fc.record({ what: fc.constant('flush') }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('back'), ms: fc.constantFrom(5, 50, 500) }) },
];

/** What a run is made of: how long a replica remembers what nobody reads, and what happens. */
export interface Story {
  readonly lingerMs: number;
  readonly steps: readonly Step[];
}

const storiesOf = (operations: fc.WeightedArbitrary<Operation>[], waits: number[]): fc.Arbitrary<Story> =>
  fc.record({
    lingerMs: fc.constantFrom(30, 60_000),
    steps: fc.array(fc.record({ operation: fc.oneof(...operations), wait: fc.constantFrom(...waits) }), {
      minLength: 5,
      maxLength: 60,
      size: 'max',
    }),
  });

const WAITS = [0, 0, 0, 1, 1, 3, 20];

/** What can happen on a store that never fails. */
export const calmStories = storiesOf(ordinary, WAITS);

/** Where nothing is lost nothing is excused: half of the stories know only outages. */
export const faultyStories = fc.oneof(
  storiesOf([...ordinary, ...outages], [...WAITS, 100, 400]),
  storiesOf([...ordinary, ...outages, ...losses], [...WAITS, 100, 400]),
);
