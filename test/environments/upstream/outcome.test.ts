import { outcomeIn } from '../../../src/environments/upstream/outcome.ts';

const text = { text: 'a', detail: null, type: 'text' };
const output = { blocks: [text], metadata: { a: 1 }, reward: 0, finished: true };
const good = (change: object) => JSON.stringify({ ok: true, output: { ...output, ...change } });

describe('the result of a call on an upstream', () => {
  it('has every key and no other', () => {
    expect(outcomeIn(JSON.stringify({ ok: true, output: { ...output, extra: 1 }, extra: 2 }))).toEqual({
      ok: true,
      output,
    });
    expect(outcomeIn('{"ok":true,"output":{}}')).toEqual({
      ok: true,
      output: { blocks: [], metadata: null, reward: null, finished: false },
    });
  });

  it('has blocks with every key; what nobody knows is a text that says so', () => {
    const blocks = [
      { type: 'text', text: 'a', extra: 1 },
      { type: 'image', data: 'AAAA', mimeType: 'image/png', detail: { a: 1 } },
      { type: 'audio', data: 'AAAA' },
    ];
    expect(outcomeIn(good({ blocks }))).toStrictEqual({
      ok: true,
      output: {
        ...output,
        blocks: [
          text,
          { data: 'AAAA', mimeType: 'image/png', detail: { a: 1 }, type: 'image' },
          { text: '[a block of a type that is not known here: audio]', detail: null, type: 'text' },
        ],
      },
    });
  });

  it('keeps no reward and a reward of nothing apart', () => {
    const reward = (value: unknown) => outcomeIn(good({ reward: value }));
    expect(reward(null)).toMatchObject({ output: { reward: null } });
    expect(reward(0)).toMatchObject({ output: { reward: 0 } });
    expect(reward(-1.5)).toMatchObject({ output: { reward: -1.5 } });
  });

  it.each([
    ['{"ok":true,"output":{"reward":1e999}}', 'reward must be a finite number or null, not Infinity'],
    ['{"ok":true,"output":{"reward":NaN}}', 'it is not JSON'],
    ['{"ok":true,"output":{"reward":"1"}}', 'reward must be a finite number or null, not a string'],
    ['{"ok":true,"output":{"finished":1}}', 'finished must be true or false, not a number'],
    ['{"ok":true,"output":{"metadata":[]}}', 'metadata must be an object or null, not a list'],
    ['{"ok":true,"output":{"blocks":{}}}', 'the blocks of the output is not a list'],
    ['{"ok":true,"output":{"blocks":[{"type":"text"}]}}', 'the text of a block is not a text'],
    ['{"ok":true}', 'it has no output'],
    ['{"ok":1}', 'it does not say whether the call went well'],
    ['[]', 'it does not say whether the call went well'],
    ['', 'it is not JSON'],
  ])('is not guessed at: %s', (json, why) => {
    expect(() => outcomeIn(json)).toThrow(`The upstream's answer cannot be used: ${why}.`);
  });

  it.each([
    ["'nope' is not a valid tool", undefined, 'not_found'],
    ['Tool input validation error: [...]', undefined, 'input_validation'],
    ['It broke.', 'input_validation', 'input_validation'],
    ['It broke.', 'name_collision', undefined],
    ['It broke.', undefined, undefined],
  ])('says why it went wrong: %s (%s)', (error, given, reason) => {
    const outcome = outcomeIn(JSON.stringify({ ok: false, error, reason: given }));
    expect(outcome).toEqual({ ok: false, error, ...(reason !== undefined && { reason }) });
  });
});
