import { EpisodeLog } from '../../src/environments/episode-log.ts';
import { Replica, Stage, settle } from './stage.ts';

describe('the episode log', () => {
  it('that could not be written is tried once more when it closes, at once', async () => {
    const stage = new Stage();
    const hosted = stage.hosted();
    const replica = new Replica([hosted]);
    stage.setup.open();
    const session = await replica.create(hosted);
    let attempts = 0;
    const written: string[] = [];
    const warnings: string[] = [];
    const log = new EpisodeLog({
      write: async (lines) => {
        if (++attempts === 1) throw new Error('no space');
        written.push(...lines);
      },
      warn: (message) => warnings.push(message),
    });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      log.setUp(session, 5, undefined);
      await settle();
      expect([attempts, warnings]).toEqual([1, ['The episode log cannot be written: no space']]);
      await log.close(); // nobody turns the clock
    } finally {
      jest.useRealTimers();
      await replica.sessions.close();
    }
    expect(written.map((line) => JSON.parse(line))).toMatchObject([{ event: 'setup', sid: 's', ok: true }]);
  });
});
