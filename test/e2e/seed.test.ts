import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { eventually } from '../streams/logs.ts';
import { startChromium } from '../support/chromium.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { fencesIn } from '../support/fences.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { post } from '../support/publisher.ts';
import { Site } from '../support/site.ts';

const SEEDS = join(__dirname, '../fixtures/seeds');
const SAMPLES = fencesIn(join(SEEDS, 'sse-clients.md'));

/** A sample of the OSSA page about SSE, unchanged but for the address. */
const sample = (heading: string, origin: string): string => {
  const found = SAMPLES.find((one) => one.heading === heading);
  if (!found) throw new Error(`There is no sample under "${heading}".`);
  return found.code.replaceAll('https://agent.example.com', origin);
};

/** What the samples call for: they name capabilities that their manifest does not offer. */
const WORKER = `
apiVersion: ossa/v0.3.0
kind: Agent
metadata: { name: worker, version: 1.0.0 }
spec:
  role: You analyze and process.
  capabilities: [analyze, process]
`;

interface Envelope {
  readonly type: string;
  readonly payload: {
    readonly channel?: string;
    readonly data?: unknown;
    readonly capability?: string;
    readonly delta?: string;
    readonly result?: { readonly text: string };
  };
  readonly metadata: { readonly sequence: number; readonly final?: boolean };
}

/** The functions that the samples call without defining them note what they were given, by their own name. */
const STAGE = `
  window.calls = [];
  const note = (name) => (...args) => { window.calls.push({ name, args }); };
  console.log = note('console.log');
  console.error = note('console.error');
  for (const name of ['handleContentPublished', 'handleUserLogin', 'handleAgentStatus', 'updateProgress', 'processEvent', 'updateDashboard']) {
    window[name] = note(name);
  }
`;

interface Call {
  readonly name: string;
  readonly args: readonly unknown[];
}

const callsIn = (page: Page): Promise<Call[]> => page.evaluate('window.calls') as Promise<Call[]>;

/** What came with the calls of a function, in their order. */
const given = async <T>(page: Page, name: string, argument = 0): Promise<T[]> =>
  (await callsIn(page)).filter((call) => call.name === name).map(({ args }) => args[argument] as T);

describe('the clients of the OSSA page about SSE, in Chromium,', () => {
  let directory: TestDirectory;
  let browser: Browser;

  beforeAll(async () => {
    directory = makeDirectory();
    directory.write('event-streamer.ossa.yaml', readFileSync(join(SEEDS, 'event-streamer.ossa.yaml'), 'utf8'));
    directory.write('worker.ossa.yaml', WORKER);
    browser = await startChromium();
  }, 20_000);

  afterAll(async () => {
    await browser.close();
    directory.remove();
  });

  const gatewayFor = (env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> =>
    startGateway({ SLUICE_MANIFESTS: directory.path, SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '400', ...env });

  /** A page that has signed in where the gateway is, so that the samples need no token. */
  const open = async (url: string, gateway: string): Promise<Page> => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(url);
    await page.evaluate(STAGE);
    const headers = { Authorization: `Bearer ${tokenFor({ scope: 'capabilities' })}` };
    const signIn = JSON.stringify({ method: 'POST', headers, credentials: 'include' });
    await page.evaluate(`fetch('${gateway}/auth/session', ${signIn})`);
    return page;
  };

  /** As a page's own script: the samples wait for answers at their top level. */
  const run = async (page: Page, ...scripts: readonly string[]): Promise<void> => {
    await page.addScriptTag({ type: 'module', content: scripts.join('\n') });
  };

  /** The page has arrived: what is published from now on reaches it. */
  const followed = ({ gateway }: RunningGateway): Promise<void> => eventually(() => gateway.hub.stats().live === 1);

  it('follow events with the session cookie, from a page of another origin', async () => {
    const site = await Site.start();
    const running = await gatewayFor({ SLUICE_CORS_ORIGINS: site.origin });
    const page = await open(`${site.origin}/page`, running.url);
    await run(page, sample('Client Connection', running.url));
    await followed(running);
    const data = { contentId: 'node-123', status: 'published' };
    await post(running.url, { channel: 'content.published', data });
    await eventually(async () =>
      (await given<Envelope>(page, 'console.log', 1)).some(({ payload }) => payload.channel === 'content.published'),
    );
    const [connected, ...events] = await given<Envelope>(page, 'console.log', 1);
    expect(connected?.type).toBe('connected');
    expect(events.find(({ payload }) => payload.channel === 'content.published')).toMatchObject({
      type: 'message',
      payload: { channel: 'content.published', data },
      metadata: { agentId: 'agent://default/event-streamer', sequence: expect.any(Number) },
    });
    expect(await given(page, 'console.error')).toEqual([]);
    await page.context().close();
    await Promise.all([running, site].map((part) => part.stop()));
  });

  it('follow with a token in the URL, and their error handlers see a loss and survive bad events', async () => {
    const running = await gatewayFor();
    const site = await Site.start(running.port);
    const proxy = await TcpProxy.start(site.port);
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${proxy.url}/page`);
    await page.evaluate(STAGE);
    await page.evaluate(`window.getAuthToken = async () => '${tokenFor()}'`);
    // The second one fails in its handler: the sample says that it goes on.
    await page.evaluate(`window.processEvent = (data) => {
      if (data.payload.data === 2) throw new Error('two');
      window.calls.push({ name: 'processEvent', args: [data] });
    }`);
    await run(
      page,
      sample('Query Parameter Authentication', proxy.url),
      sample('Connection Errors', proxy.url),
      sample('Event Processing Errors', proxy.url),
    );
    await followed(running);
    for (const data of [1, 2, 3]) await post(running.url, { channel: 'content.published', data });
    const processed = async (): Promise<unknown[]> =>
      (await given<Envelope>(page, 'processEvent'))
        .filter(({ payload }) => payload.channel === 'content.published')
        .map(({ payload }) => payload.data);
    await eventually(async () => (await processed()).includes(3));
    expect(await processed()).toEqual([1, 3]);
    expect(await given(page, 'console.error')).toEqual(['Failed to process event:']);
    proxy.cut();
    await eventually(async () => (await given(page, 'console.log')).length === 1);
    expect(await given(page, 'console.log')).toEqual(['Connection error, auto-reconnecting...']);
    await page.context().close();
    await Promise.all([proxy, site, running].map((part) => part.stop()));
  });

  it('start a capability and follow its progress to the final result', async () => {
    const running = await gatewayFor();
    const site = await Site.start(running.port);
    const page = await open(`${site.origin}/page`, site.origin);
    await run(page, sample('2. Request-Response Streaming', site.origin));
    await eventually(async () => (await given(page, 'console.log')).includes('Final result:'));
    const words = await given<string>(page, 'console.log');
    expect(new Set(words.slice(0, -1))).toEqual(new Set(['Progress:']));
    const payloads = await given<Envelope['payload']>(page, 'console.log', 1);
    const { text } = payloads.at(-1) as unknown as { text: string };
    expect(text).toContain('node-123');
    expect(
      payloads
        .slice(0, -1)
        .map(({ delta }) => delta)
        .join(''),
    ).toBe(text);
    expect(payloads[0]?.capability).toBe('analyze');
    await page.context().close();
    await Promise.all([site, running].map((part) => part.stop()));
  });

  it('send a command and follow its task', async () => {
    const running = await gatewayFor();
    const site = await Site.start(running.port);
    const page = await open(`${site.origin}/page`, site.origin);
    await run(page, sample('Bidirectional Communication', site.origin));
    const seen = (): Promise<Envelope['payload'][]> => given(page, 'updateProgress');
    await eventually(async () => (await seen()).at(-1)?.result !== undefined);
    const progress = await seen();
    expect(progress.at(-1)).toMatchObject({
      capability: 'process',
      result: { text: expect.stringContaining('input') },
    });
    expect(progress.length).toBeGreaterThan(2);
    await page.context().close();
    await Promise.all([site, running].map((part) => part.stop()));
  });

  it('follow several channels over one connection', async () => {
    const running = await gatewayFor();
    const site = await Site.start(running.port);
    const page = await open(`${site.origin}/page`, site.origin);
    await run(page, sample('3. Multiplexed Streams', site.origin));
    await followed(running);
    const handlers = {
      'content.published': 'handleContentPublished',
      'user.login': 'handleUserLogin',
      'agent.status': 'handleAgentStatus',
    };
    for (const channel of Object.keys(handlers)) {
      await post(running.url, { channel, data: { about: channel } });
      await post(running.url, { channel: 'task.progress', data: { about: 'nobody asked' } });
    }
    const about = async (name: string): Promise<unknown[]> =>
      (await given<Envelope>(page, name)).flatMap(({ payload: { data } }) => (data as { about?: string }).about ?? []);
    await eventually(async () => (await about('handleAgentStatus')).length === 1);
    for (const [channel, handler] of Object.entries(handlers)) expect(await about(handler)).toEqual([channel]);
    await page.context().close();
    await Promise.all([site, running].map((part) => part.stop()));
  });

  it('show how busy everything is', async () => {
    const running = await gatewayFor();
    const site = await Site.start(running.port);
    const page = await open(`${site.origin}/page`, site.origin);
    // Of the sample only what stands behind "Client": the rest is the server.
    const [, client = ''] = sample('Real-time Status Dashboard', site.origin).split('// Client\n');
    await run(page, client);
    await eventually(async () => (await given(page, 'updateDashboard')).length === 1);
    expect((await given(page, 'updateDashboard'))[0]).toEqual({ activeAgents: 0, queueDepth: 0, throughput: 0 });
    await page.context().close();
    await Promise.all([site, running].map((part) => part.stop()));
  });

  it('reach the final event of a streamUrl although they are cut three times', async () => {
    const site = await Site.start();
    const running = await gatewayFor({ SLUICE_OSSA_RETRY_MS: '30', SLUICE_CORS_ORIGINS: site.origin });
    const proxy = await TcpProxy.start(running.port);
    const answer = await fetch(`${proxy.url}/capabilities/analyze`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenFor({ scope: 'capabilities' })}` },
      body: JSON.stringify({ prompt: 'long answer 400' }),
    });
    const { streamUrl } = (await answer.json()) as { streamUrl: string };
    expect(new URL(streamUrl).origin).toBe(proxy.url);
    const before = proxy.accepted;

    // A page of another origin that has never signed in: all it has is the address.
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${site.origin}/page`);
    await page.evaluate(`
      window.seen = { numbers: [], opened: 0, resyncs: 0, final: 0, text: '' };
      const source = new EventSource('${streamUrl}');
      source.addEventListener('open', () => seen.opened++);
      source.addEventListener('resync', () => seen.resyncs++);
      source.addEventListener('capability_response', (event) => {
        const { payload, metadata } = JSON.parse(event.data);
        seen.numbers.push(metadata.sequence);
        seen.text += payload.delta ?? '';
        if (metadata.final) {
          seen.final++;
          seen.same = payload.result.text === seen.text;
          source.close();
        }
      });`);
    const seen = (): Promise<{ numbers: number[]; opened: number; final: number }> =>
      page.evaluate('window.seen') as Promise<{ numbers: number[]; opened: number; final: number }>;
    for (const [i, bytes] of [1, 400, 1_000].entries()) {
      const { numbers } = await seen();
      await eventually(async () => (await seen()).numbers.length > numbers.length + 5);
      await proxy.cutAfter(bytes);
      expect((await seen()).final).toBe(0); // or nothing was cut
      await eventually(async () => (await seen()).opened === i + 2);
    }
    await eventually(async () => (await seen()).final === 1);
    const { numbers } = await seen();
    expect(await seen()).toEqual({
      numbers: Array.from({ length: numbers.length }, (_, i) => i + 1),
      ...{ opened: 4, resyncs: 0, final: 1, same: true },
      text: expect.any(String),
    });
    expect(proxy.accepted - before).toBeGreaterThanOrEqual(4);
    await page.context().close();
    await Promise.all([proxy, running, site].map((part) => part.stop()));
  }, 20_000);
});
