import { promptOf } from '../../../src/environments/mcp/prompt.ts';

const text = (words: string): object => ({ text: words, detail: null, type: 'text' });

describe('the prompt of a task', () => {
  it.each([
    ['Add {a} and {b}.', { a: 1, b: 'two' }, 'Add 1 and two.'],
    ['{deep.list.1} of {deep}', { deep: { list: [7, 8] } }, '8 of {"list":[7,8]}'],
    ['{a}{a}', { a: '{b} $1 $&', b: 'no' }, '{b} $1 $&{b} $1 $&'],
    ['{"json": {"a": 1}} {} { a } {a b}', { a: 1 }, '{"json": {"a": 1}} {} { a } {a b}'],
    ['{{a}} is {a}', { a: 1 }, '{a} is 1'],
    ['{yes}{no}', { yes: true, no: 0 }, 'true0'],
    ['nothing', { prompt: 'not this' }, 'nothing'],
  ])('by the template %j', (template, task, words) => expect(promptOf(task, template)).toEqual([text(words)]));

  it.each([
    ['{missing}', {}, 'missing'],
    ['{a.b}', { a: 'b' }, 'a.b'],
    ['{a}', { a: null }, 'a'],
    ['{constructor}', {}, 'constructor'],
    ['{a.length}', { a: 'text' }, 'a.length'],
  ])('cannot be by the template %j if the task does not have that', (template, task, field) => {
    expect(() => promptOf(task, template)).toThrow(`The task has no field "${field}", which the prompt needs.`);
  });

  it('is what the task says itself', () => {
    expect(promptOf({ prompt: 'p {x}' }, undefined)).toEqual([text('p {x}')]);
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
    const prompt = ['a', { type: 'text', text: 'b', detail: { c: 1 } }, image];
    expect(promptOf({ prompt }, undefined)).toEqual([
      text('a'),
      { text: 'b', detail: { c: 1 }, type: 'text' },
      { ...image, detail: null },
    ]);
  });

  const none = 'The task has no field "prompt", and the environment has none for all tasks.';
  const image = { type: 'image', data: 'no base64', mimeType: 'image/png' };
  it.each([
    [{}, none],
    [{ prompt: null }, none],
    [{ prompt: [] }, none],
    [{ prompt: 7 }, 'The task cannot be used: prompt must be text or a block, not a number.'],
    [{ prompt: ['a', null] }, 'The task cannot be used: prompt[1] must be text or a block, not null.'],
    [{ prompt: [{ type: 'audio' }] }, 'The task cannot be used: prompt[0].type must be "text" or "image".'],
    [{ prompt: [{ type: 'text', txt: 'a' }] }, 'The task cannot be used: prompt[0].txt is not known.'],
    [{ prompt: [image] }, 'The task cannot be used: prompt[0].data must be base64.'],
  ])('is refused as that of a module would be if the task says %j', (task, message) => {
    expect(() => promptOf(task, undefined)).toThrow(expect.objectContaining({ code: 'invalid_task', message }));
  });
});
