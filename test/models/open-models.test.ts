import { loadConfig } from '../../src/config/config.ts';
import { wholeAnswer } from '../../src/models/answer.ts';
import { openModels } from '../../src/models/open-models.ts';
import { makeDirectory } from '../support/directory.ts';

const settingsOf = (yaml: string, env: Record<string, string> = {}) => {
  const directory = makeDirectory();
  directory.write('sluice.yaml', yaml);
  try {
    return loadConfig({ env, directory: directory.path }).config;
  } finally {
    directory.remove();
  }
};

describe('the models of the settings', () => {
  it('are the demo model when there is no backend', async () => {
    const models = openModels({ settings: settingsOf('models: { demoWordsPerSecond: 0 }'), env: {} });
    const request = { model: 'anything', messages: [{ role: 'user', content: 'hello' }] } as const;
    const answer = await wholeAnswer(models.stream(request));
    expect(answer).toMatchObject({ model: 'sluice-demo', finish: 'stop' });
    models.close();
  });

  it('are served by the backend that lists them, and the rest by the main one', () => {
    const yaml = `
models:
  baseUrl: http://127.0.0.1:1
  backends:
    - { name: a, baseUrl: 'http://127.0.0.1:2', models: [gpt-*], apiKey: '\${KEY}' }
    - { name: b, baseUrl: 'http://127.0.0.1:3', models: [gpt-special] }
`;
    const models = openModels({ settings: settingsOf(yaml), env: { KEY: 'x' } });
    expect(['gpt-4', 'gpt-special', 'llama'].map((name) => models.backendOf(name))).toEqual(['a', 'b', 'default']);
    models.close();
  });

  it('say what is wrong, one sentence each', () => {
    const yaml = `
models:
  backends:
    - { name: a, baseUrl: 'http://127.0.0.1:2', apiKey: '\${NOT_SET}' }
    - { name: default, baseUrl: 'http://127.0.0.1:2' }
`;
    expect(() => openModels({ settings: settingsOf(yaml), env: {} })).toThrow(
      'models.backends: a: the environment variable NOT_SET is not set.\nmodels.backends: default: the name is taken.',
    );
  });
});
