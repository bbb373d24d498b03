import { countIn, promptIn, splitsIn, taskIn, tasksIn, toolsIn } from '../../../src/environments/upstream/answers.ts';

describe('the answers of an upstream', () => {
  it('has splits of the three types', () => {
    const given = [
      { name: 'a', type: 'test', extra: 1 },
      'train',
      'held-out',
      { name: 'test' },
      { name: 'b', type: 'odd' },
    ];
    expect(splitsIn(JSON.stringify(given))).toEqual([
      { name: 'a', type: 'test' },
      { name: 'train', type: 'train' },
      { name: 'held-out', type: 'validation' },
      { name: 'test', type: 'test' },
      { name: 'b', type: 'validation' },
    ]);
  });

  it('has tools of exactly three keys', () => {
    const schema = { type: 'object' };
    const given = [{ name: 'a' }, { name: 'b', description: 'B.', input_schema: schema, extra: 1 }];
    expect(toolsIn(JSON.stringify({ tools: given, extra: 1 }))).toStrictEqual([
      { name: 'a', description: '', input_schema: null },
      { name: 'b', description: 'B.', input_schema: schema },
    ]);
  });

  it('has a prompt of blocks with every key', () => {
    expect(promptIn('[{"type":"text","text":"Do it."}]')).toStrictEqual([
      { text: 'Do it.', detail: null, type: 'text' },
    ]);
  });

  it.each([
    [splitsIn, '{}'],
    [splitsIn, '[1]'],
    [splitsIn, '[{"type":"test"}]'],
    [toolsIn, '[]'],
    [toolsIn, '{"tools":[{}]}'],
    [toolsIn, '{"tools":[{"name":"a","input_schema":[]}]}'],
    [tasksIn, '{"tasks":["a"]}'],
    [taskIn, '{"task":null}'],
    [countIn, '{"num_tasks":-1}'],
    [countIn, '{"num_tasks":"3"}'],
    [promptIn, '"Do it."'],
    [promptIn, '<html>'],
  ])('that make no sense are told, not passed on: %p %s', (read, json) => {
    expect(() => read(json)).toThrow(/^The upstream's answer cannot be used: .*\.$/);
  });
});
