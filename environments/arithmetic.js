// @ts-check
//
// A template for environments with one question and one answer: word problems whose tasks are computed, not stored.
//
//   sluice.yaml:   ors: { environments: [{ module: ./environments/arithmetic.js }] }
//
// What to change for a problem of your own: `taskOf` (what a task is), `prompt` (what the model reads) and `submit` (what
// it is rewarded for).

import { defineEnvironment, fail } from 'sluice';

/**
 * A task is a JSON object. Whoever trains can read all of it, so that the answer may stand in it; the model is shown
 * nothing but the prompt.
 * @typedef {{ question: string, answer: number }} Task
 */

const NAMES = 'Ada Ben Cem Dora Emil Fatma Goran Hana Ivo Jana Kofi Lin Mira Nils Olga Pia'.split(' ');
const THINGS = 'apples books candles eggs flags lemons marbles nails plums ropes stamps tiles'.split(' ');

/** @type {((name: string, things: string, a: number, b: number, c: number) => Task)[]} */
const KINDS = [
  (name, things, a, b, c) => ({
    question: `${name} has ${a} boxes with ${b} ${things} in each and gives ${c} ${things} away. How many are left?`,
    answer: a * b - c,
  }),
  (name, things, a, b, c) => ({
    question: `${name} orders ${b} crates of ${things} for ${a} coins each and pays ${c} coins for the delivery. How many coins is that?`,
    answer: a * b + c,
  }),
  (name, things, a, b, c) => ({
    question: `For ${b} days ${name} sells ${a} ${things} every morning and ${c} every evening. How many does ${name} sell?`,
    answer: (a + c) * b,
  }),
  (name, things, a, b, c) => ({
    question: `${name} shares ${a * b} ${things} equally among ${b} friends, who had ${c} each before. How many does each friend have now?`,
    answer: a + c,
  }),
];

// Every problem there is has a number, and every number is another problem.
const SPACE = KINDS.length * NAMES.length * THINGS.length * 48 * 24 * 12;
// Neighbours should not look alike. A step that has no divisor in common with SPACE meets every number once.
const STEP = 6_700_423;

// Each split has numbers of its own. So no task of one split is in another, which random numbers could not promise.
const SPLITS = {
  train: { from: 0, count: 20_000 },
  validation: { from: 20_000, count: 1_000 },
  test: { from: 21_000, count: 1_000 },
};

/** @param {number} id */
const taskOf = (id) => {
  let rest = (id * STEP) % SPACE;
  /** @param {number} size */
  const digit = (size) => {
    const value = rest % size;
    rest = Math.floor(rest / size);
    return value;
  };
  const [c, b, a] = [2 + digit(12), 2 + digit(24), 12 + digit(48)];
  const things = THINGS[digit(THINGS.length)];
  const name = NAMES[digit(NAMES.length)];
  const kind = KINDS[digit(KINDS.length)];
  if (!kind || !name || !things) throw new RangeError(`There is no problem ${id}.`);
  return kind(name, things, a, b, c);
};

export const arithmetic = defineEnvironment({
  name: 'arithmetic',

  // A bare name is of the type that it names; `{ name: 'hard', type: 'test' }` says it itself.
  splits: Object.keys(SPLITS),

  // Tasks by index: nothing is computed before somebody asks, and the same index is always the same task. For a few tasks
  // lists are simpler: `tasks: { train: [{ ... }], test: () => readThemFromAFile() }`.
  tasks: {
    count: (split) => SPLITS[/** @type {keyof typeof SPLITS} */ (split)].count,
    get: (split, index) => taskOf(SPLITS[/** @type {keyof typeof SPLITS} */ (split)].from + index),
    // `list: true` would let clients have all of a split at once. Without it that is so up to 10,000 tasks: here for
    // validation and test, and not for train.
  },

  // A client may also bring a task of its own. What does not fit is refused before anything begins.
  taskSchema: {
    type: 'object',
    properties: { question: { type: 'string', minLength: 1 }, answer: { type: 'integer' } },
    required: ['question', 'answer'],
  },

  // What the model reads first. It may be asked for several times, so it should not change anything.
  prompt: ({ task }) =>
    `${task.question}\n\nGive your answer, a whole number, with the tool "submit". You have one try.`,

  tools: [
    {
      name: 'calculate',
      description: 'Calculates an expression of numbers, + - * / and brackets.',
      input: {
        type: 'object',
        properties: { expression: { type: 'string', maxLength: 200, description: 'For example (3 + 4) * 5' } },
        required: ['expression'],
      },
      /** @param {{ expression: string }} input */
      run: ({ expression }) => {
        const value = calculate(expression);
        // `fail` is something for the model to read: it can try again. What is thrown is a fault of the environment, and
        // most trainers give up the whole episode then.
        if (value === undefined) return fail('That is not an expression of numbers, + - * / and brackets.');
        // Text alone is an answer without a reward (null), which is not a reward of 0.
        return String(value);
      },
    },
    {
      name: 'submit',
      description: 'Gives the answer and ends the episode.',
      // The input has been checked when `run` is called; the model reads what did not fit.
      input: { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] },
      /** @param {{ answer: number }} input */
      run: ({ answer }, { task }) => {
        const right = answer === task.answer;
        return {
          text: right ? 'That is right.' : 'That is wrong.',
          reward: right ? 1 : 0,
          finished: true,
          // For whoever trains; the model does not see it.
          metadata: { expected: task.answer, given: answer },
        };
      },
    },
  ],
});

/**
 * Never `eval`: what a model writes is not to be run.
 * @param {string} expression
 * @returns {number | undefined}
 */
const calculate = (expression) => {
  const tokens = expression.match(/\d+(?:\.\d+)?|\S/g) ?? [];
  let at = 0;
  /** @returns {number} */
  const factor = () => {
    const token = tokens[at++] ?? '';
    if (token === '-') return -factor();
    if (token !== '(') return /^\d/.test(token) ? Number(token) : Number.NaN;
    const inner = sum();
    return tokens[at++] === ')' ? inner : Number.NaN;
  };
  const product = () => {
    let value = factor();
    while (tokens[at] === '*' || tokens[at] === '/') value = tokens[at++] === '*' ? value * factor() : value / factor();
    return value;
  };
  const sum = () => {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  };
  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : undefined;
};
