import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import type { HubStats } from '../../src/streams/hub.ts';
import { eventually } from '../streams/logs.ts';
import { startChromium } from '../support/chromium.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { fencesIn } from '../support/fences.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Counter, post } from '../support/publisher.ts';
import { RawStream } from '../support/raw-stream.ts';
import { running } from '../support/running.ts';
import { Site } from '../support/site.ts';

const DOCS = join(__dirname, '../../docs');
const FILES = ['CLIENTS.md', 'CHANNELS.md'].flatMap((page) => fencesIn(join(DOCS, page))).filter(({ name }) => name);

/** A file that a page of the documentation shows. */
const shown = (name: string): string => {
  const found = FILES.find((file) => file.name === name);
  if (!found) throw new Error(`No page shows ${name}.`);
  return found.code;
};

// They wait as long as their clients would: a second here, a second there.
jest.setTimeout(30_000);

const token = tokenFor({ scope: 'capabilities' });

/** An example as somebody would run it. */
class Example {
  stdout = '';
  stderr = '';
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  constructor(directory: string, url: string, file: string, ...args: readonly string[]) {
    const command = file.endsWith('.py') ? '/usr/bin/python3' : process.execPath;
    this.child = spawn(command, [join(directory, file), ...args], {
      env: { PATH: process.env.PATH, SLUICE_URL: url, SLUICE_TOKEN: token, PYTHONDONTWRITEBYTECODE: '1' },
    });
    this.child.stdout?.on('data', (bytes: Buffer) => {
      this.stdout += bytes.toString();
    });
    this.child.stderr?.on('data', (bytes: Buffer) => {
      this.stderr += bytes.toString();
    });
    running.add(this);
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code) => {
        running.delete(this);
        resolve(code);
      });
    });
  }

  get lines(): unknown[] {
    return this.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

describe('the clients of the documentation', () => {
  let directory: TestDirectory;
  let gateway: RunningGateway;
  let proxy: TcpProxy;

  beforeAll(async () => {
    directory = makeDirectory();
    for (const { name, code } of FILES) directory.write(name, code);
    gateway = await startGateway({
      SLUICE_MANIFESTS: join(directory.path, 'newsroom.ossa.yaml'),
      SLUICE_OSSA_RETRY_MS: '30',
      SLUICE_BUFFER_EVENTS: '5000',
      SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '200',
    });
    proxy = await TcpProxy.start(gateway.port);
  });

  afterAll(async () => {
    await proxy.stop();
    await gateway.stop();
    directory.remove();
  });

  const stats = (): HubStats => gateway.gateway.hub.stats();
  /** What is published from now on reaches the only one who follows. */
  const arrived = (): Promise<void> => eventually(() => stats().followers === 1 && stats().live === 1);
  const allGone = (): Promise<void> => eventually(() => stats().followers === 0);
  afterEach(async () => {
    await Promise.all(examples.splice(0).map((example) => example.stop())); // also those of a test that failed
    await allGone();
  });

  const examples: Example[] = [];
  const start = (file: string, ...args: readonly string[]): Example => {
    const example = new Example(directory.path, proxy.url, file, ...args);
    examples.push(example);
    return example;
  };

  it.each(['follow.mjs', 'follow.py', 'poll.py'])(
    '%s is cut three times and loses, doubles and reorders nothing',
    async (file) => {
      const channel = `counted.${file.replace('.', '-')}`;
      const example = start(file, `${channel},another`);
      await arrived();
      await post(gateway.url, { channel, data: 0 }); // a poll has its first cursor now
      await eventually(() => example.lines.length === 1);
      const counter = new Counter(() => gateway.url, channel);
      for (const bytes of [1, 300, 700]) {
        const before = example.lines.length;
        await eventually(() => example.lines.length > before + 5);
        await proxy.cutAfter(bytes);
      }
      await counter.stop();
      await eventually(() => example.lines.length > counter.published);
      expect(example.lines).toEqual([0, ...counter.all].map((data) => ({ channel, data })));
      expect(example.stderr).toBe('');
    },
  );

  it.each(['follow.mjs', 'follow.py', 'poll.py'])('%s says that events are missing, and goes on', async (file) => {
    const channel = 'content.withdrawn'; // keeps 500 events, as its manifest says
    const publish = (numbers: readonly number[]): Promise<unknown> =>
      fetch(`${gateway.url}/events`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify(numbers.map((data) => ({ channel, data }))),
      });
    const example = start(file, channel);
    await arrived();
    await publish([0]);
    await eventually(() => example.lines.length === 1);
    proxy.target = undefined;
    proxy.cut();
    const numbers = Array.from({ length: 600 }, (_, i) => i + 1);
    await publish(numbers);
    proxy.target = gateway.port;
    await eventually(() => example.lines.length === 501);
    expect(example.lines).toEqual([0, ...numbers.slice(100)].map((data) => ({ channel, data })));
    expect(example.stderr).toMatch(/^Events may be missing: .*"reason": ?"expired"/);
  });

  it.each(['ask.mjs', 'ask.py'])('%s reaches the end of a capability although it is cut three times', async (file) => {
    const example = start(file, 'headline', JSON.stringify({ topic: 'long answer 300' }));
    for (const bytes of [1, 300, 700]) {
      const before = example.stderr.length;
      await eventually(() => example.stderr.length > before + 300);
      await proxy.cutAfter(bytes);
      expect(example.stdout).toBe('');
    }
    expect(await example.ended).toBe(0);
    const deltas = example.stderr.trim().split('\n');
    const [result] = example.lines as { text: string }[];
    expect(deltas.map((line) => (JSON.parse(line) as { delta: string }).delta).join('')).toBe(result?.text);
    expect(result?.text.split(' ')).toHaveLength(300);
  });

  it.each([
    ['ask.mjs', 'CAPABILITY_ERROR'],
    ['ask.py', 'CAPABILITY_ERROR'],
  ])('%s fails when the capability does', async (file, code) => {
    const example = start(file, 'headline', JSON.stringify({ topic: 'fail with 503' }));
    expect(await example.ended).toBe(1);
    expect(example.stderr).toContain(code);
  });

  it.each(['follow.mjs', 'follow.py', 'poll.py', 'ask.mjs', 'ask.py'])('%s ends when it is refused', async (file) => {
    const example = start(file, 'no channel', '{}');
    expect(await example.ended).toBe(1);
  });

  it('publish.mjs publishes once although its answer is lost', async () => {
    const follower = start('follow.py', 'once');
    await arrived();
    const cut = proxy.cutAfter(1); // of the answer, or of what the follower gets
    const example = start('publish.mjs', 'once', '{"n":1}');
    await cut;
    expect(await example.ended).toBe(0);
    expect(example.stdout).toMatch(/^msg-[0-9a-f-]{36}\n$/);
    await eventually(() => follower.lines.length > 0);
    expect(follower.lines).toEqual([{ channel: 'once', data: { n: 1 } }]);
  });

  it('have a manifest that is served as its page says', async () => {
    const stream = new RawStream(gateway.port, '/news', { Authorization: `Bearer ${token}` });
    await eventually(() => stream.frames.length > 0);
    expect(stream.frames[0]).toMatch(/^retry: 1000\n/);
    expect(stream.frames[0]).toContain('"channels":["content.published","content.withdrawn"]');
    stream.close();
    const refused = await fetch(`${gateway.url}/news`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: '{"channel":"content.published","data":{}}',
    });
    const answer = `${refused.status} ${await refused.text()}\n`;
    expect(fencesIn(join(DOCS, 'CHANNELS.md')).map(({ code }) => code)).toContain(answer);
  });

  describe('in Chromium', () => {
    let browser: Browser;
    let site: Site;
    let between: TcpProxy;
    let page: Page;

    beforeAll(async () => {
      browser = await startChromium();
      site = await Site.start(gateway.port);
      between = await TcpProxy.start(site.port);
    });

    afterAll(async () => {
      await browser.close();
      await Promise.all([between, site].map((part) => part.stop()));
    });

    beforeEach(async () => {
      page = await (await browser.newContext()).newPage();
      await page.goto(`${between.url}/page`);
      await page.evaluate(`
        window.token = '${token}';
        window.calls = { show: [], reload: [], progress: [], done: [], failed: [] };
        for (const [name, list] of Object.entries(calls)) window[name] = (...args) => list.push(args);`);
    });
    afterEach(() => page.context().close());

    const calls = (): Promise<Record<'show' | 'reload' | 'progress' | 'done' | 'failed', unknown[][]>> =>
      page.evaluate('calls') as ReturnType<typeof calls>;
    const add = (file: string): Promise<unknown> => page.addScriptTag({ type: 'module', content: shown(file) });

    it('it follows, and signs in again when its session is over', async () => {
      await add('follow-in-browser.js');
      await arrived();
      await post(gateway.url, { channel: 'content.seen', data: 1 });
      await eventually(async () => (await calls()).show.length === 1);
      await page.context().clearCookies();
      between.cut();
      await allGone();
      await post(gateway.url, { channel: 'content.seen', data: 2 });
      await eventually(async () => (await calls()).show.length === 2);
      expect(await calls()).toMatchObject({
        show: [
          ['content.seen', 1],
          ['content.seen', 2],
        ],
        reload: [],
      });
    });

    it('it asks, and reaches the end through a cut', async () => {
      const signIn = JSON.stringify({ method: 'POST', headers: { Authorization: `Bearer ${token}` } });
      await page.evaluate(`fetch('/auth/session', ${signIn})`);
      await add('ask-in-browser.js');
      await eventually(async () => (await calls()).progress.length > 5);
      between.cut();
      await eventually(async () => (await calls()).done.length === 1);
      const { progress, done, failed } = await calls();
      const text = progress.map(([payload]) => (payload as { delta: string }).delta).join('');
      expect(done).toEqual([[{ text, model: 'sluice-demo' }]]);
      expect(failed).toEqual([]);
    });
  });
});
