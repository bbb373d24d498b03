import type { Browser, Page } from 'playwright-core';
import { eventually } from '../streams/logs.ts';
import { startChromium } from '../support/chromium.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Counter } from '../support/publisher.ts';
import { Site } from '../support/site.ts';

/** What the scripts below leave behind in the page. */
interface Seen {
  /** Data of the messages, in their order. */
  readonly data: number[];
  /** Of each connection, whether it went on where the last one was. */
  readonly resumed: boolean[];
  readonly resyncs: number;
  /** Events of the type error that were published. */
  readonly faults: number;
}

const seenBy = (page: Page): Promise<Seen> => page.evaluate('window.seen') as Promise<Seen>;

/** In the page: follows a URL and notes what comes. */
const FOLLOW = `
  window.seen = { data: [], resumed: [], resyncs: 0, faults: 0 };
  window.follow = (url, options) => {
    const source = new EventSource(url, options);
    source.onmessage = ({ data }) => {
      const { type, payload } = JSON.parse(data);
      if (type === 'connected') window.seen.resumed.push(payload.resumed);
      else window.seen.data.push(payload.data);
    };
    source.addEventListener('resync', () => window.seen.resyncs++);
    source.addEventListener('error', (event) => {
      if (event.data !== undefined) window.seen.faults++;
    });
  };
`;

const inPage = (page: Page, script: string): Promise<unknown> => page.evaluate(`(async () => { ${script} })()`);

const CUTS = [1, 400, 1_000];

describe('Chromium', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startChromium();
  }, 20_000);

  afterAll(() => browser.close());

  const open = async (url: string): Promise<Page> => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(url);
    await page.evaluate(FOLLOW);
    return page;
  };

  /** Cuts the connection while events flow, each time at another byte. */
  const cutThrice = async (page: Page, proxy: TcpProxy): Promise<void> => {
    for (const [i, bytes] of CUTS.entries()) {
      const { data } = await seenBy(page);
      await eventually(async () => (await seenBy(page)).data.length > data.length + 5);
      await proxy.cutAfter(bytes);
      await eventually(async () => (await seenBy(page)).resumed.length === i + 2);
    }
  };

  const gatewayFor = (origins = ''): Promise<RunningGateway> =>
    startGateway({
      SLUICE_OSSA_RETRY_MS: '30',
      SLUICE_BUFFER_EVENTS: '5000',
      ...(origins && { SLUICE_CORS_ORIGINS: origins }),
    });

  it('with a ticket, on a page of another origin, is cut three times and loses, doubles and reorders nothing', async () => {
    const site = await Site.start();
    const gateway = await gatewayFor(site.origin);
    const proxy = await TcpProxy.start(gateway.port);
    const page = await open(`${site.origin}/page`);
    await inPage(
      page,
      `const answer = await fetch('${proxy.url}/auth/ticket', {
        method: 'POST',
        headers: { Authorization: 'Bearer ${tokenFor()}', 'Content-Type': 'application/json' },
        body: JSON.stringify({ url: '${proxy.url}/events?channels=demo' }),
      });
      follow((await answer.json()).url);`,
    );
    await eventually(async () => (await seenBy(page)).resumed.length === 1);

    const counter = new Counter(() => gateway.url, 'demo');
    await cutThrice(page, proxy);
    await counter.stop();
    await eventually(async () => (await seenBy(page)).data.length >= counter.published);
    expect(await seenBy(page)).toEqual({
      data: counter.all,
      resumed: [false, true, true, true],
      resyncs: 0,
      faults: 0,
    });
    await page.context().close();
    await Promise.all([proxy, gateway, site].map((part) => part.stop()));
  }, 20_000);

  it('is not let in from a page whose origin is not listed', async () => {
    const site = await Site.start();
    const gateway = await gatewayFor('https://app.example.com');
    const page = await open(`${site.origin}/page`);
    const refused = await inPage(
      page,
      `const source = new EventSource('${gateway.url}/events?channels=demo&token=${tokenFor()}');
      return new Promise((resolve) => {
        source.onerror = () => resolve(source.readyState === EventSource.CLOSED);
        source.onmessage = () => resolve(false);
      });`,
    );
    expect(refused).toBe(true);
    await page.context().close();
    await Promise.all([gateway, site].map((part) => part.stop()));
  });

  it('with the session cookie, on a page of the same origin, follows and publishes through three cuts', async () => {
    const gateway = await gatewayFor();
    const site = await Site.start(gateway.port);
    const proxy = await TcpProxy.start(site.port);
    const page = await open(`${proxy.url}/page`);
    await inPage(
      page,
      `await fetch('/auth/session', { method: 'POST', headers: { Authorization: 'Bearer ${tokenFor()}' } });
      follow('/events?channels=demo', { withCredentials: true });`,
    );
    await eventually(async () => (await seenBy(page)).resumed.length === 1);
    expect(await page.evaluate('document.cookie')).toBe(''); // scripts cannot read it

    // A post that is cut is sent again under its key: it may or may not have arrived.
    await inPage(
      page,
      `window.counter = { published: 0, refused: 0, stopped: false };
      const post = async (data) => {
        const headers = { 'Idempotency-Key': 'n' + data };
        const body = JSON.stringify({ channel: 'demo', data });
        const answer = await fetch('/events', { method: 'POST', headers, body }).catch(() => undefined);
        if (answer && answer.status !== 201) counter.refused++;
        return answer?.status === 201 || post(data);
      };
      (async () => {
        while (!counter.stopped && !counter.refused) {
          await post(counter.published + 1);
          counter.published++;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        counter.over = true;
      })();`,
    );
    await cutThrice(page, proxy);
    await page.evaluate('counter.stopped = true');
    await eventually(async () => (await page.evaluate('counter.over')) === true);
    const { published, refused } = (await page.evaluate('counter')) as { published: number; refused: number };
    await eventually(async () => (await seenBy(page)).data.length >= published);
    expect(refused).toBe(0);
    expect(await seenBy(page)).toEqual({
      data: Array.from({ length: published }, (_, i) => i + 1),
      resumed: [false, true, true, true],
      resyncs: 0,
      faults: 0,
    });

    // Signed out, it is let in no more.
    const status = await inPage(
      page,
      `await fetch('/auth/session', { method: 'DELETE' });
      return (await fetch('/events', { method: 'POST', body: '{"channel":"demo","data":0}' })).status;`,
    );
    expect(status).toBe(401);
    await page.context().close();
    await Promise.all([proxy, gateway, site].map((part) => part.stop()));
  }, 20_000);

  it('hands a page the published events of the type error', async () => {
    const gateway = await gatewayFor();
    const site = await Site.start(gateway.port);
    const page = await open(`${site.origin}/page`);
    await inPage(page, `follow('/events?channels=demo&token=${tokenFor()}');`);
    await eventually(async () => (await seenBy(page)).resumed.length === 1);
    const body = '{"channel":"demo","type":"error","data":{"code":"TIMEOUT"}}';
    await fetch(`${gateway.url}/events`, { method: 'POST', headers: { Authorization: `Bearer ${tokenFor()}` }, body });
    await eventually(async () => (await seenBy(page)).faults === 1);
    await page.context().close();
    await Promise.all([gateway, site].map((part) => part.stop()));
  });
});
