import { image, text } from '../../src/environments/blocks.ts';
import { EnvironmentError } from '../../src/environments/environment.ts';
import { outputOf } from '../../src/environments/output.ts';

const refusal = (answer: unknown): string => {
  try {
    outputOf('submit', answer);
  } catch (error) {
    expect(error).toBeInstanceOf(EnvironmentError);
    expect((error as EnvironmentError).code).toBe('failed');
    return (error as Error).message;
  }
  throw new Error('It was taken.');
};

const selfish: Record<string, unknown> = {};
selfish.self = selfish;

describe('the output of a tool', () => {
  it('has every key that clients ask for, in their order', () => {
    const answer = {
      finished: true,
      reward: 0.5,
      metadata: { seed: 1 },
      blocks: [
        'plain',
        { type: 'text', text: 'with detail', detail: { level: 2 } },
        { mimeType: 'image/png', type: 'image', data: 'AAECAw==' },
      ],
    };
    expect(JSON.stringify(outputOf('submit', answer))).toBe(
      '{"blocks":[{"text":"plain","detail":null,"type":"text"},' +
        '{"text":"with detail","detail":{"level":2},"type":"text"},' +
        '{"data":"AAECAw==","mimeType":"image/png","detail":null,"type":"image"}],' +
        '"metadata":{"seed":1},"reward":0.5,"finished":true}',
    );
    expect(JSON.stringify(outputOf('submit', 'done'))).toBe(
      '{"blocks":[{"text":"done","detail":null,"type":"text"}],"metadata":null,"reward":null,"finished":false}',
    );
  });

  it('keeps a reward of 0 apart from none', () => {
    expect(outputOf('submit', { reward: 0 }).reward).toBe(0);
    expect(outputOf('submit', { reward: null }).reward).toBeNull();
    expect(outputOf('submit', { reward: undefined }).reward).toBeNull();
    expect(outputOf('submit', {}).reward).toBeNull();
    expect(outputOf('submit', { reward: -1.5 }).reward).toBe(-1.5);
  });

  it('takes what the two functions for blocks make, bytes too', () => {
    const { blocks } = outputOf('submit', {
      blocks: [text('a', { b: 1 }), image(Uint8Array.of(0, 1, 2), 'image/gif')],
    });
    expect(blocks).toEqual([
      { text: 'a', detail: { b: 1 }, type: 'text' },
      { data: 'AAEC', mimeType: 'image/gif', detail: null, type: 'image' },
    ]);
  });

  it.each<[string, unknown, string]>([
    ['nothing at all', undefined, 'it must be text or an object, not nothing'],
    ['a number', 7, 'it must be text or an object, not a number'],
    ['a list', ['a'], 'it must be text or an object, not a list'],
    ['an object of a class', new Map(), 'it must be text or an object, not an object'],
    ['a reward that is no number', { reward: '1' }, 'reward must be a finite number or null, not a string'],
    ['NaN as a reward', { reward: Number.NaN }, 'reward must be a finite number or null, not NaN'],
    ['an endless reward', { reward: -Infinity }, 'reward must be a finite number or null, not -Infinity'],
    ['a reward that is true', { reward: true }, 'reward must be a finite number or null, not a boolean'],
    ['an end that is neither true nor false', { finished: 1 }, 'finished must be true or false, not a number'],
    ['an end that is null', { finished: null }, 'finished must be true or false, not null'],
    ['metadata that is a list', { metadata: [] }, 'metadata must be an object or null, not a list'],
    ['metadata with NaN', { metadata: { a: [{ b: Number.NaN }] } }, 'metadata.a[0].b is NaN'],
    ['metadata with a date', { metadata: { at: new Date(0) } }, 'metadata.at is an object of a class, not plain data'],
    ['metadata with a function', { metadata: { f() {} } }, 'metadata.f is a function, which JSON cannot say'],
    ['metadata that contains itself', { metadata: selfish }, 'metadata.self contains itself'],
    ['text and blocks', { text: 'a', blocks: [] }, 'it may have text or blocks, not both'],
    ['text that is a number', { text: 1 }, 'text must be a string, not a number'],
    ['blocks that are no list', { blocks: text('a') }, 'blocks must be a list, not an object'],
    [
      'a key that nobody knows',
      { text: 'a', done: true },
      '"done" is not known: it may have text, blocks, reward, finished, metadata',
    ],
    ['a block of another type', { blocks: [{ type: 'audio' }] }, 'blocks[0].type must be "text" or "image"'],
    ['a block with another key', { blocks: ['a', { ...text('b'), x: 1 }] }, 'blocks[1].x is not known'],
    ['a block without text', { blocks: [{ type: 'text' }] }, 'blocks[0].text must be a string, not nothing'],
    [
      'a detail that is text',
      { blocks: [{ ...text('a'), detail: 'b' }] },
      'blocks[0].detail must be an object or null, not a string',
    ],
    ['an image that is no base64', { blocks: [image('not base64!', 'image/png')] }, 'blocks[0].data must be base64'],
    ['an image that was cut off', { blocks: [image('AAECA', 'image/png')] }, 'blocks[0].data must be base64'],
    [
      'an image as a data URL',
      { blocks: [image('data:image/png;base64,AAEC', 'image/png')] },
      'blocks[0].data must be base64',
    ],
    ['an image without data', { blocks: [image('', 'image/png')] }, 'blocks[0].data must be base64'],
    [
      'a picture that is none',
      { blocks: [image('AAEC', 'text/html')] },
      'blocks[0].mimeType must be a type of image such as image/png',
    ],
  ])('refuses %s in one sentence', (_, answer, reason) => {
    expect(refusal(answer)).toBe(`The answer of the tool submit cannot be used: ${reason}.`);
  });

  it('never says a value, which may be a secret', () => {
    const secret = 'sk-0123456789';
    for (const key of ['reward', 'finished', 'metadata', 'blocks']) {
      expect(refusal({ [key]: secret })).not.toContain(secret);
    }
    expect(refusal({ blocks: [{ type: secret }] })).not.toContain(secret);
    expect(refusal({ blocks: [image(secret, 'image/png')] })).not.toContain(secret);
    expect(refusal({ blocks: [image('AAEC', secret)] })).not.toContain(secret);
  });

  it('judges an image of many megabytes', () => {
    const data = 'AAAA'.repeat(4_000_000);
    expect(outputOf('draw', { blocks: [image(data, 'image/png')] }).blocks).toHaveLength(1);
    expect(refusal({ blocks: [image(`${data.slice(1)}-`, 'image/png')] })).toContain('must be base64');
  });
});
