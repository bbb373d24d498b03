import { join } from 'node:path';
import { fencesIn } from '../support/fences.ts';
import { type OrsSite, startOrs } from '../support/ors-site.ts';
import { Script } from '../support/script.ts';

const SAMPLE = fencesIn(join(__dirname, '../fixtures/seeds/ors-clients.md')).find(
  ({ heading }) => heading === 'JavaScript (fetch)',
);

const RUNS = 30;
const CHARACTERS = 200_000;

/**
 * Calls the sample's function again and again, and says how far each result was equal to what the tool had given. A result
 * that is not is no witness if others kept this process from running meanwhile, which the kernel knows: then it was not
 * alone, and is asked again.
 */
const MAIN = `import { readFileSync } from 'node:fs';
${SAMPLE?.code}
const [, , baseUrl, sessionId, unit] = process.argv;
const times = ${CHARACTERS} / unit.length;
const expected = unit.repeat(times);
const heldUpMs = () => {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6; // has waited for a processor
  } catch {
    return 0; // not every kernel tells
  }
};
for (let run = 0, tries = 0; run < ${RUNS} && tries < ${10 * RUNS}; tries++) {
  const before = heldUpMs();
  const result = await callTool(baseUrl, sessionId, 'repeat', { text: unit, times }).catch((error) => error);
  const text = result?.output?.blocks[0].text;
  const intact = text === expected;
  const heldUp = heldUpMs() - before;
  if (!intact && heldUp > 5) continue;
  run++;
  console.log(intact ? 'intact' : String(text?.length ?? result) + ', held up for ' + heldUp + ' ms');
}
`;

jest.setTimeout(60_000);

// The function takes what one read brings for whole frames, and trims every piece. That its results are whole all the same
// rests on frames that are sent apart and no faster than a client reads, and on pieces that no trimming changes.
describe(`the fetch function of the ORS page, ${RUNS} times with ${CHARACTERS} characters,`, () => {
  let site: OrsSite;

  beforeAll(async () => {
    site = await startOrs();
  });
  afterAll(() => site.stop());

  it.each([
    ['letters', 'abcdefghij'],
    ['words', 'some word '],
    ['all that is hard', '😀 \u2028\r\n"\\ x'],
  ])('gets each result intact: %s', async (_, unit) => {
    const script = new Script({ 'sample.mjs': MAIN }, 'sample.mjs', [site.url, await site.session(), unit]);
    expect(await script.ended).toBe(0);
    expect(script.stdout.split('\n').slice(0, -1)).toEqual(Array.from({ length: RUNS }, () => 'intact'));
  });
});
