import { AnswerFold, wholeAnswer } from '../../src/models/answer.ts';
import type { ModelEvent } from '../../src/models/model.ts';

const EVENTS: ModelEvent[] = [
  { type: 'start', id: 'a1', model: 'm', created: 5 },
  { type: 'reasoning', delta: 'Hm' },
  { type: 'reasoning', delta: '.' },
  { type: 'text', delta: 'Hel' },
  { type: 'text', delta: 'lo' },
  { type: 'refusal', delta: 'No' },
  { type: 'tool_call', index: 0, id: 'c1', name: 'add' },
  { type: 'tool_arguments', index: 0, delta: '{}' },
  { type: 'tool_call_end', index: 0, id: 'c1', name: 'add', arguments: '{}' },
  { type: 'usage', input: 1, output: 2, total: 3, cached: 1 },
  { type: 'finish', reason: 'tool_calls', model: 'm' },
];

describe('a whole answer', () => {
  it('is all that was said', async () => {
    const events = async function* () {
      yield* EVENTS;
    };
    expect(await wholeAnswer(events())).toEqual({
      ...{ id: 'a1', model: 'm', created: 5, text: 'Hello', reasoning: 'Hm.', refusal: 'No' },
      toolCalls: [{ id: 'c1', name: 'add', arguments: '{}' }],
      usage: { input: 1, output: 2, total: 3, cached: 1 },
      finish: 'tool_calls',
    });
  });

  it('is none before its end', () => {
    const fold = new AnswerFold();
    for (const event of EVENTS.slice(0, -1)) {
      fold.add(event);
      expect(() => fold.answer).toThrow('not complete');
    }
  });
});
