// The environment of bench/ors.ts: what a call costs besides its tool.
import { defineEnvironment } from '../src/environments/module/define-environment.ts';

export const echo = defineEnvironment({
  name: 'echo',
  splits: ['train'],
  tasks: { train: [{}] },
  prompt: () => 'Say something.',
  tools: [
    {
      name: 'echo',
      description: 'Gives back what it is given.',
      input: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
      run: ({ text }) => ({ text: String(text), reward: 1 }),
    },
  ],
});
