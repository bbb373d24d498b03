import { setTimeout as sleep } from 'node:timers/promises';
import { wholeAnswer } from '../../src/models/answer.ts';
import { ChatBackend } from '../../src/models/chat-backend.ts';
import { Patience } from '../../src/models/patience.ts';
import { DONE, delta, ScriptedBackend } from '../support/model-backend.ts';
import { ask } from './collect.ts';

const block = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

describe('patience', () => {
  it('ends by itself, once', async () => {
    const over = jest.fn();
    const patience = new Patience(20, over);
    await sleep(100);
    expect(over).toHaveBeenCalledTimes(1);
    patience.end();
  });

  it('lasts as long as it is renewed, and ends when it is told to', async () => {
    const over = jest.fn();
    const patience = new Patience(100, over);
    for (let i = 0; i < 5; i++) {
      await sleep(40);
      patience.renew();
    }
    expect(over).not.toHaveBeenCalled();
    patience.end();
    await sleep(150);
    expect(over).not.toHaveBeenCalled();
  });

  // A gateway that was busy for longer than the limit had the bytes in its socket all the time, but its timer was due
  // first, and every answer of that moment failed as silent.
  it('does not blame a backend for what the gateway had no time to read', async () => {
    const server = await ScriptedBackend.start(async (reply) => {
      reply.head();
      reply.chunk(delta({ content: 'one ' }));
      await sleep(20);
      reply.chunk(delta({ content: 'two' }));
      block(200);
      await sleep(0);
      reply.chunk(delta({}, 'stop') + DONE);
      reply.end();
    });
    const backend = new ChatBackend({ baseUrl: server.url, idleMs: 100 });
    expect(await wholeAnswer(backend.stream(ask('hello')))).toMatchObject({ text: 'one two', finish: 'stop' });
    backend.close();
  });
});
