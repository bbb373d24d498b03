// @ts-check
//
// A template for environments with many steps: a small world, a state, tools that only some tasks have, a tool that takes
// its time, a picture in the prompt, and rewards on the way.
//
//   sluice.yaml:   ors: { environments: [{ module: ./environments/text-adventure.js, callTimeoutSeconds: 30 }] }

import { setTimeout as wait } from 'node:timers/promises';
import { crc32, deflateSync } from 'node:zlib';
import { defineEnvironment, fail, image, text } from 'sluice';

/**
 * @typedef {{ x: number, y: number, sight: string, item?: string }} Room
 * @typedef {{ room: string, sight: string, tide: { seconds: number } }} Tide
 * @typedef {{ room: string, sight: string, riddle: { question: string, choices: string[], answer: string } }} Riddle
 * A room lies north of another if it has the same x and a y that is one less, and so on. Nobody enters the room of the
 * gate before the gate is open.
 * @typedef {{ quest: string, rooms: Record<string, Room>, start: string, item: string, goal: string, gate: Tide | Riddle, maxSteps: number }} Task
 */

/** What an episode remembers. */
class Journey {
  /** @param {Task} task */
  constructor(task) {
    this.at = task.start;
    this.hasItem = false;
    this.gateIsOpen = false;
    this.stepsLeft = task.maxSteps;
  }
}

/** @type {Task} */
const ISLAND = {
  quest: 'Bring the lantern to the lighthouse.',
  start: 'beach',
  item: 'lantern',
  goal: 'lighthouse',
  maxSteps: 12,
  gate: { room: 'causeway', sight: 'The sea covers the causeway.', tide: { seconds: 2 } },
  rooms: {
    beach: { x: 0, y: 1, sight: 'White sand.' },
    hut: { x: 0, y: 0, sight: 'A hut of driftwood.', item: 'lantern' },
    causeway: { x: 1, y: 1, sight: 'Wet stones between two pieces of land.' },
    lighthouse: { x: 2, y: 1, sight: 'A tower without a light.' },
  },
};

/** @type {Task} */
const CASTLE = {
  quest: 'Bring the crown to the throne.',
  start: 'yard',
  item: 'crown',
  goal: 'throne',
  maxSteps: 12,
  gate: {
    room: 'hall',
    sight: 'A stone face closes the door to the hall. It says: "What grows when it is shared?"',
    riddle: { question: 'What grows when it is shared?', choices: ['bread', 'joy', 'gold'], answer: 'joy' },
  },
  rooms: {
    yard: { x: 0, y: 2, sight: 'Grass between old stones.' },
    well: { x: 1, y: 2, sight: 'A dry well.', item: 'crown' },
    hall: { x: 0, y: 1, sight: 'A long hall.' },
    throne: { x: 0, y: 0, sight: 'A throne, and nobody on it.' },
  },
};

const DIRECTIONS = { north: [0, -1], east: [1, 0], south: [0, 1], west: [-1, 0] };

/**
 * The rooms around the one where somebody is, by direction.
 * @param {Task} task
 * @param {string} at
 * @returns {Record<string, string>}
 */
const exits = ({ rooms }, at) => {
  const here = rooms[at];
  const found = Object.entries(DIRECTIONS).flatMap(([direction, [dx = 0, dy = 0]]) => {
    const there = Object.entries(rooms).find(([, { x, y }]) => here && x === here.x + dx && y === here.y + dy);
    return there ? [[direction, there[0]]] : [];
  });
  return Object.fromEntries(found);
};

/**
 * @param {Task} task
 * @param {Journey} journey
 */
const view = (task, { at, hasItem, gateIsOpen, stepsLeft }) => {
  const { sight = '', item } = task.rooms[at] ?? {};
  const ways = Object.entries(exits(task, at)).map(([direction, room]) => `${direction} (${room})`);
  const closed = !gateIsOpen && Object.values(exits(task, at)).includes(task.gate.room);
  return [
    `You are here: ${at}. ${sight}`,
    ...(item && !hasItem ? [`There is a ${item} here.`] : []),
    ...(closed ? [task.gate.sight] : []),
    `Ways: ${ways.join(', ')}. Steps left: ${stepsLeft}.`,
  ].join('\n');
};

export const adventure = defineEnvironment({
  name: 'text-adventure',
  splits: ['train', 'test'],
  tasks: { train: [ISLAND], test: [CASTLE] },

  taskSchema: {
    type: 'object',
    required: ['quest', 'rooms', 'start', 'item', 'goal', 'gate', 'maxSteps'],
    properties: {
      quest: { type: 'string' },
      rooms: {
        type: 'object',
        maxProperties: 100,
        additionalProperties: {
          type: 'object',
          required: ['x', 'y', 'sight'],
          properties: {
            x: { type: 'integer', minimum: 0, maximum: 9 },
            y: { type: 'integer', minimum: 0, maximum: 9 },
            sight: { type: 'string' },
            item: { type: 'string' },
          },
        },
      },
      gate: { type: 'object', required: ['room', 'sight'], anyOf: [{ required: ['tide'] }, { required: ['riddle'] }] },
      maxSteps: { type: 'integer', minimum: 1 },
    },
  },
  // For what a schema cannot say: one sentence if something is wrong.
  checkTask: (task) => {
    const { rooms, start, goal } = /** @type {Task} */ (/** @type {unknown} */ (task));
    return rooms[start] && rooms[goal] ? undefined : 'start and goal must be rooms.';
  },

  // Once per episode. What it gives is the state of all calls: an object that they change. An environment that starts a
  // process or opens a file here ends it in `teardown({ state })`, which also runs when the setup has failed halfway or
  // was given up; state is undefined then. This one only has memory, and needs none.
  setup: ({ task }) => new Journey(task),

  prompt: ({ task, state }) => [
    text(`${task.quest} This is a map: you begin at the black field, and the goal has a frame.`),
    image(drawMap(task), 'image/png'),
    text(view(task, state)),
  ],

  tools: [
    {
      name: 'look',
      description: 'Describes where you are.',
      // No `input`: whatever the model sends is taken.
      run: (_, { task, state }) => view(task, state), // nothing was achieved or missed: no reward, which is null and not 0
    },
    {
      name: 'go',
      description: 'Goes to the next room.',
      input: {
        type: 'object',
        properties: { direction: { enum: Object.keys(DIRECTIONS) } },
        required: ['direction'],
      },
      /** @param {{ direction: string }} input */
      run: ({ direction }, { task, state }) => {
        const room = exits(task, state.at)[direction];
        if (room === undefined) return fail(`There is no way ${direction}.`);
        if (room === task.gate.room && !state.gateIsOpen) return fail(task.gate.sight);
        state.at = room;
        state.stepsLeft--;
        if (room === task.goal && state.hasItem) {
          return { text: `You have done it. ${task.quest}`, reward: 0.5, finished: true };
        }
        // Judged, and worth nothing: 0.
        if (state.stepsLeft === 0) return { text: 'Night falls. You are too late.', reward: 0, finished: true };
        return view(task, state);
      },
    },
    {
      name: 'take',
      description: 'Takes what lies here.',
      run: (_, { task, state }) => {
        const { item } = task.rooms[state.at] ?? {};
        if (item !== task.item || state.hasItem) return fail('There is nothing to take.');
        state.hasItem = true;
        return { text: `You have the ${item}.`, reward: 0.25 };
      },
    },
    {
      name: 'give_up',
      description: 'Ends the episode.',
      // Not shared: it is not among the tools that are known before an episode begins, but in every episode.
      shared: false,
      run: () => ({ text: 'You turn back.', reward: 0, finished: true }),
    },
  ],

  // Tools that only this task has. They may be made of what the task says.
  taskTools: ({ task: { gate } }) => ['tide' in gate ? waitForEbb(gate) : answerRiddle(gate)],
});

/**
 * @param {Tide} gate
 * @returns {import('sluice').EnvironmentTool<Task, Journey>}
 */
const waitForEbb = ({ tide }) => ({
  name: 'wait_for_ebb',
  description: 'Waits until the sea has gone. This takes a while.',
  // In the place of `callTimeoutSeconds` of the settings; 0 would be no limit.
  timeoutSeconds: tide.seconds + 10,
  run: async (_, { state, signal }) => {
    // The signal is aborted when the time is over or the session ends. Whoever waits without it goes on in the background,
    // for nobody.
    await wait(tide.seconds * 1_000, undefined, { signal });
    if (state.gateIsOpen) return 'The sea is far away.';
    state.gateIsOpen = true;
    return { text: 'The stones of the causeway lie dry.', reward: 0.25 };
  },
});

/**
 * @param {Riddle} gate
 * @returns {import('sluice').EnvironmentTool<Task, Journey>}
 */
const answerRiddle = ({ riddle }) => ({
  name: 'answer_riddle',
  description: riddle.question,
  input: { type: 'object', properties: { answer: { enum: riddle.choices } }, required: ['answer'] },
  run: ({ answer }, { state }) => {
    if (state.gateIsOpen) return 'The stone face sleeps.';
    if (answer !== riddle.answer) return { text: 'The stone face is silent.', reward: 0 };
    state.gateIsOpen = true;
    return { text: 'The stone face smiles, and the door opens.', reward: 0.25 };
  },
});

/**
 * The map as a PNG in shades of grey, one field of 24 by 24 pixels per room: bytes, of which `image` makes base64.
 * @param {Task} task
 */
const drawMap = ({ rooms, start, goal }) => {
  const SIZE = 24;
  const places = Object.values(rooms);
  const width = SIZE * (1 + Math.max(...places.map(({ x }) => x)));
  const height = SIZE * (1 + Math.max(...places.map(({ y }) => y)));
  // Every line of a PNG begins with a byte that says how it is packed; 0: not at all.
  const pixels = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) pixels.fill(255, y * (width + 1) + 1, (y + 1) * (width + 1));
  for (const [name, room] of Object.entries(rooms)) {
    for (let y = 2; y < SIZE - 2; y++) {
      const line = (room.y * SIZE + y) * (width + 1) + 1 + room.x * SIZE;
      const inside = y >= 5 && y < SIZE - 5;
      pixels.fill(name === start ? 0 : 128, line + 2, line + SIZE - 2);
      if (name === goal && inside) pixels.fill(255, line + 5, line + SIZE - 5);
    }
  }
  /** @param {string} type @param {Buffer} data */
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8); // bits per pixel; shades of grey and nothing special in the bytes that follow
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    ...[chunk('IHDR', header), chunk('IDAT', deflateSync(pixels)), chunk('IEND', Buffer.alloc(0))],
  ]);
};
