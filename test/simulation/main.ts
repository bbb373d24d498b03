import { parseArgs } from 'node:util';
import { FAILURES } from './checker.ts';
import { RULES, type Rule } from './faulty-log.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

const HELP = `npm run simulate -- [options]

  --store NAME      redis (default), memory or cluster
  --seeds N         how many seeds (20)
  --first N         the first seed (1)
  --seconds N       how long each (15)
  --replicas N      hubs (2)
  --http            whole gateways and the eventsource package in place of hubs and functions
  --partitions N    of memory (1) or cluster (4)
  --without RULE    leave a rule out and count what goes wrong: ${RULES.join(', ')}

Publishers, followers that drop and resume on any replica, and faults; every event is checked against what was published.
Ends with 1 if anything was lost, doubled, reordered or not told.`;

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'redis' },
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '15' },
    replicas: { type: 'string', default: '2' },
    http: { type: 'boolean', default: false },
    partitions: { type: 'string' },
    without: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help || (values.without && !(RULES as readonly string[]).includes(values.without))) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}

// An event loop that runs dry ends the process without a word: somebody waits for what will never come.
let over = false;
process.on('exit', (code) => {
  if (!over) console.log(`ended early with ${code}: something is stuck`);
});

let failed = 0;
const totals = {
  acknowledged: 0,
  delivered: 0,
  sessions: 0,
  failures: Object.fromEntries(FAILURES.map((f) => [f, 0])),
};
for (let seed = Number(values.first); seed < Number(values.first) + Number(values.seeds); seed++) {
  const options: SimulationOptions = {
    store: values.store as SimulationOptions['store'],
    seed,
    seconds: Number(values.seconds),
    replicas: Number(values.replicas),
    http: values.http,
    ...(values.partitions && { partitions: Number(values.partitions) }),
    ...(values.without && { without: values.without as Rule }),
  };
  const result = await simulate(options);
  const bad = Object.entries(result.failures).filter(([, n]) => n > 0);
  totals.acknowledged += result.acknowledged;
  totals.delivered += result.delivered;
  totals.sessions += result.sessions;
  for (const [name, n] of bad) totals.failures[name] = (totals.failures[name] ?? 0) + n;
  if (bad.length > 0) failed++;
  console.log(
    `seed ${seed}: ${bad.length === 0 ? 'ok' : bad.map(([name, n]) => `${n} ${name}`).join(', ')}`,
    `| acknowledged ${result.acknowledged}, refused ${result.refused}, delivered ${result.delivered}, sessions ${result.sessions}`,
    `| from ${JSON.stringify(result.served)} | resyncs ${JSON.stringify(result.resyncs)} | faults ${JSON.stringify(result.faults)}`,
  );
  for (const example of result.examples.slice(0, 5)) console.log(`    ${example}`);
}
console.log(`${values.seeds} seeds, ${failed} failed, in all ${JSON.stringify(totals)}`);
over = true;
process.exit(failed > 0 ? 1 : 0);
