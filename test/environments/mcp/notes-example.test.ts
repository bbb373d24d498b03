import { join } from 'node:path';
import { loadConfig } from '../../../src/config/config.ts';
import type { McpEnvironmentSettings } from '../../../src/config/structures.ts';
import type { Episode } from '../../../src/environments/environment.ts';
import { McpEnvironment } from '../../../src/environments/mcp/mcp-environment.ts';
import { running } from '../../support/running.ts';
import { call, output } from './lab.ts';

const FOLDER = join(__dirname, '../../../environments/notes');

jest.setTimeout(30_000);

describe('the example "notes"', () => {
  let environment: McpEnvironment;
  const stop = { stop: (): Promise<void> => environment.close() };
  const warnings: string[] = [];

  beforeAll(async () => {
    const { config } = loadConfig({ env: {}, flags: { config: join(FOLDER, 'sluice.yaml') }, directory: FOLDER });
    const [settings] = config.ors.environments as readonly McpEnvironmentSettings[];
    environment = await McpEnvironment.create(settings as McpEnvironmentSettings, {
      env: {},
      warn: (message) => warnings.push(message),
    });
    running.add(stop);
  });
  afterAll(async () => {
    running.delete(stop);
    await stop.stop();
  });

  const begin = (index: number): Promise<Episode> =>
    environment.open(
      { sid: 's', principal: 'ann', choice: { split: 'train', index }, secrets: {} },
      new AbortController().signal,
    );

  it('has tasks that all have a prompt', async () => {
    expect(await environment.splits()).toEqual([
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
    ]);
    for (const { name } of await environment.splits()) {
      const count = await environment.count(name);
      expect(count).toBeGreaterThan(0);
      for (let index = 0; index < count; index++) await environment.check({ split: name, index });
    }
  });

  it('rewards who does as the task says, and nobody else', async () => {
    const [episode, other] = await Promise.all([begin(0), begin(0)]);
    expect(await episode.prompt(AbortSignal.abort())).toEqual([
      expect.objectContaining({
        text: 'You keep a notebook. Write a note titled "shopping" that says "milk". Read the note again when you are done.',
      }),
    ]);
    expect(await call(episode, 'write_note', { title: 'shopping', text: 'milk' })).toEqual(
      output('Written. Notes: 1.'),
    );
    // Every session has a notebook of its own.
    expect(await call(other, 'read_note', { title: 'shopping' })).toEqual({
      ok: false,
      error: 'There is no note "shopping".',
    });
    expect(await call(episode, 'list_notes')).toEqual(
      output('shopping', { metadata: { structured: { titles: ['shopping'] } } }),
    );
    expect(await call(episode, 'read_note', { title: 'shopping' })).toEqual(
      output('milk', { reward: 1, finished: true }),
    );
    expect(await call(other, 'give_up')).toEqual(output('Submitted.', { finished: true }));
    await Promise.all([episode.close(), other.close()]);
    expect(warnings).toEqual([]);
  });
});
