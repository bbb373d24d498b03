import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { eventually } from '../streams/logs.ts';
import { startChromium } from '../support/chromium.ts';
import { fencesIn } from '../support/fences.ts';
import { type OrsSite, startOrs } from '../support/ors-site.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Script } from '../support/script.ts';
import { Site } from '../support/site.ts';

const PAGE = join(__dirname, '../../docs/TRAINERS.md');
const FILES = Object.fromEntries(
  fencesIn(PAGE)
    .filter(({ name }) => name !== '')
    .map(({ name, code }) => [name, code]),
);

// They wait as long as their clients would: a second here, a second there.
jest.setTimeout(30_000);

/** All that is hard to put together: 200,000 characters in pieces, with cuts at every place of this. */
const UNIT = ' 😀\u2028\r\n"\\ é';
const TIMES = 20_000;

/** What the tests do with the clients of the page, in both languages: the same, so that the same is expected. */
const ERRORS = {
  'errors.py': `
import json, sys, httpx
import ors

url = sys.argv[1]
def say(what):
    try:
        what()
        print("nothing")
    except ors.OrsError as error:
        print(json.dumps([type(error).__name__, getattr(error, "reason", None), str(error)]))

with ors.Session(url, "gsm8k", {"split": "train", "index": 0}) as session:
    say(lambda: session.call("throw", {}))
    say(lambda: session.call("throw", {"message": " two \\n\\u2028 lines "}))
    say(lambda: session.call("fail", {}))
    say(lambda: session.call("nothing", {}))
    say(lambda: session.call("submit", {}))
    gone = session.http.headers["X-Session-ID"]
    httpx.post(url + "/delete", headers={"X-Session-ID": gone})
    say(lambda: session.call("submit", {"answer": 42}))
    say(session.prompt)
    session.http.headers["X-Session-ID"] = "never seen"
    say(session.prompt)
    session.http.headers["X-Session-ID"] = gone
with ors.Session(url, "gsm8k", {"task_spec": {"broken": True}}) as session:
    say(session.prompt)
say(lambda: ors.Session(url, "nowhere", {"split": "train", "index": 0}))
sessions = [ors.Session(url, "gsm8k", {"split": "train", "index": 0}) for _ in range(4)]
say(lambda: ors.Session(url, "gsm8k", {"split": "train", "index": 0}, patience=2))
for session in sessions:
    session.__exit__()
say(lambda: ors.Session("http://127.0.0.1:9", "gsm8k", {}, patience=0.5))
`,
  'errors.mjs': `
import * as ors from './ors.mjs';

const url = process.argv[2];
let sid; // of the last request
let other; // instead of it
const real = globalThis.fetch;
globalThis.fetch = (address, init) => {
  sid = init.headers['X-Session-ID'];
  return real(address, { ...init, headers: { ...init.headers, ...(other && { 'X-Session-ID': other }) } });
};
const say = (what) =>
  what().then(
    () => console.log('nothing'),
    (error) => {
      if (!(error instanceof ors.OrsError)) throw error;
      console.log(JSON.stringify([error.constructor.name, error.reason ?? null, error.message]));
    },
  );
const open = (task = { split: 'train', index: 0 }, options = {}) => ors.Session.open(url, 'gsm8k', task, options);

let session = await open();
await say(() => session.call('throw', {}));
await say(() => session.call('throw', { message: ' two \\n\\u2028 lines ' }));
await say(() => session.call('fail', {}));
await say(() => session.call('nothing', {}));
await say(() => session.call('submit', {}));
await real(url + '/delete', { method: 'POST', headers: { 'X-Session-ID': sid } });
await say(() => session.call('submit', { answer: 42 }));
await say(() => session.prompt());
other = 'never seen';
await say(() => session.prompt());
other = undefined;
await session.close();
session = await open({ task_spec: { broken: true } });
await say(() => session.prompt());
await session.close();
await say(() => ors.Session.open(url, 'nowhere', { split: 'train', index: 0 }));
const sessions = [await open(), await open(), await open(), await open()];
await say(() => open({ split: 'train', index: 0 }, { patienceMs: 2_000 }));
for (const one of sessions) await one.close();
await say(() => ors.Session.open('http://127.0.0.1:9', 'gsm8k', {}, { patienceMs: 500 }));
`,
};

const CUT = {
  'cut.py': `
import sys
import ors

with ors.Session(sys.argv[1], "gsm8k", {"split": "train", "index": 0}) as session:
    print("ready", flush=True)
    sys.stdin.readline()
    text = ${JSON.stringify(UNIT)} * ${TIMES}
    print(session.call("wait", {"ms": 500, "text": text})["blocks"][0]["text"] == text, flush=True)
`,
  'cut.mjs': `
import { Session } from './ors.mjs';

const session = await Session.open(process.argv[2], 'gsm8k', { split: 'train', index: 0 });
console.log('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();
const text = ${JSON.stringify(UNIT)}.repeat(${TIMES});
console.log((await session.call('wait', { ms: 500, text })).blocks[0].text === text ? 'True' : 'False');
await session.close();
`,
};

const BUSY = {
  'busy.py': `
import sys
from concurrent.futures import ThreadPoolExecutor
import ors

with ors.Session(sys.argv[1], "gsm8k", {"split": "train", "index": 0}, ping_seconds=0.02) as session:
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(session.call, "wait", {"ms": 200, "text": text}) for text in ("a", "b")]
        print(",".join(call.result()["blocks"][0]["text"] for call in calls))
`,
  'busy.mjs': `
import { Session } from './ors.mjs';

const session = await Session.open(process.argv[2], 'gsm8k', { split: 'train', index: 0 }, { pingMs: 20 });
const calls = ['a', 'b'].map((text) => session.call('wait', { ms: 200, text }));
console.log((await Promise.all(calls)).map(({ blocks }) => blocks[0].text).join());
await session.close();
`,
};

describe('the clients of the page for trainers', () => {
  let site: OrsSite;
  let proxy: TcpProxy;

  beforeAll(async () => {
    site = await startOrs('  maxCallsPerSession: 1\n', { LOG_LEVEL: 'debug' });
    proxy = await TcpProxy.start(site.port);
  });
  afterAll(async () => {
    await proxy.stop();
    await site.stop();
  });

  const start = (file: string, more: Readonly<Record<string, string>> = {}, url = site.url, arg = url): Script =>
    new Script({ ...FILES, ...more }, file, [arg], { SLUICE_URL: url });

  describe.each([['py'], ['mjs']] as const)('%s', (language) => {
    it('goes through an episode, and leaves the lines in the log that the page describes', async () => {
      const before = site.episodes.length;
      const script = start(`episode.${language}`, {}, site.url, '1');
      expect([await script.ended, script.stderr]).toEqual([0, '']);
      expect(script.stdout.split('\n')).toEqual([
        'What is 6 x 7? fail repeat submit throw wait',
        'input_validation Tool input validation error: answer must be number.',
        expect.stringMatching(/^Correct! 1 true$/i),
        '',
      ]);
      await eventually(() => site.episodes.at(-1)?.event === 'end');
      const common = { at: expect.any(String), sid: expect.any(String), environment: 'gsm8k', principal: '(anybody)' };
      const call = { ...common, event: 'call', tool: 'submit', task_id: expect.any(String), ms: expect.any(Number) };
      expect(site.episodes.slice(before)).toEqual([
        { ...common, event: 'begin', split: 'train', index: 1 },
        { ...common, event: 'setup', ms: expect.any(Number), ok: true },
        {
          ...call,
          outcome: 'refused',
          reward: null,
          finished: false,
          after_finished: false,
          error: expect.any(String),
        },
        { ...call, outcome: 'ok', reward: 1, finished: true, after_finished: false },
        {
          ...{ ...common, event: 'end', stop: 'deleted', finished: true, calls: 2 },
          ...{ rewarded: 1, reward_sum: 1, ms: expect.any(Number) },
        },
      ]);
    });

    it('gets a result once and whole although its connection is cut before, behind and within it', async () => {
      const before = site.waits;
      const script = start(`cut.${language}`, CUT, proxy.url);
      await eventually(() => script.stdout === 'ready\n');
      const connections = proxy.accepted;
      let cut = proxy.cutAfter(1); // nothing of the answer has come
      script.tell('go');
      for (const bytes of [700, 60_000]) {
        await cut;
        cut = proxy.cutAfter(bytes); // the task_id has; a part of the result has
      }
      await cut;
      expect(await script.ended).toBe(0);
      expect(script.stdout).toBe('ready\nTrue\n');
      expect(proxy.accepted - connections).toBeGreaterThanOrEqual(3);
      expect(site.waits - before).toBe(1);
    });

    it('waits when there is no room, and pings meanwhile', async () => {
      const pings = (): number => site.cli.stdout.split('/ping').length;
      const before = pings();
      const script = start(`busy.${language}`, BUSY);
      expect([await script.ended, script.stderr]).toEqual([0, '']);
      expect(script.stdout).toBe('a,b\n');
      expect(pings() - before).toBeGreaterThan(5);
    });

    it('tells apart whose fault it is', async () => {
      const script = start(`errors.${language}`, ERRORS);
      expect([await script.ended, script.stderr]).toEqual([0, '']);
      const lines = script.stdout.split('\n').slice(0, -1);
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
        ['ToolFailed', null, 'kaputt'],
        ['ToolFailed', null, ' two \n\u2028 lines '],
        ['ModelMistake', null, 'Invalid answer format'],
        ['ModelMistake', 'not_found', `'nothing' is not a valid tool`],
        ['ModelMistake', 'input_validation', expect.stringMatching(/^Tool input validation error: /)],
        ['SessionGone', null, '{"detail":"Session deleted"}'],
        ['SessionGone', null, '{"detail":"Session deleted"}'],
        ['SessionGone', null, '{"detail":"Active environment not found"}'],
        ['EnvironmentFailed', null, '500: {"detail":"Setup failed: no such machine"}'],
        ['Refused', null, `404: {"detail":"unknown environment 'nowhere'"}`],
        ['Unavailable', null, 'The gateway has no room, or is away.'],
        ['Unavailable', null, 'The gateway has no room, or is away.'],
      ]);
      await eventually(() => site.episodes.at(-1)?.event === 'end');
      expect(site.episodes.filter(({ stop }) => stop === 'setup_failed').length).toBeGreaterThan(0);
    });
  });

  describe('in Chromium', () => {
    let browser: Browser;
    let pages: Site;
    let between: TcpProxy;

    beforeAll(async () => {
      browser = await startChromium();
      pages = await Site.start(site.port);
      between = await TcpProxy.start(pages.port);
    });
    afterAll(async () => {
      await browser.close();
      await between.stop();
      await pages.stop();
    });

    it('gets a result once and whole although its connection is cut within it', async () => {
      const before = site.waits;
      const page = await browser.newPage();
      await page.goto(`${between.url}/page`);
      await page.addScriptTag({ type: 'module', content: `${FILES['ors.mjs']}\nwindow.Session = Session;` });
      await page.evaluate(`(async () => {
        window.session = await Session.open('', 'gsm8k', { split: 'train', index: 0 });
        window.text = ${JSON.stringify(UNIT)}.repeat(${TIMES});
      })()`);
      const cut = between.cutAfter(60_000);
      const called = page.evaluate(
        `session.call('wait', { ms: 300, text }).then(({ blocks }) => blocks[0].text === text)`,
      );
      await cut;
      expect(await called).toBe(true);
      expect(site.waits - before).toBe(1);
      await page.evaluate('session.close()');
    });
  });

  it('are in a page that names every metric of ORS that there is, and no other', async () => {
    const served = await (await fetch(`${site.url}/metrics`)).text();
    const names = (text: string): string[] =>
      [...new Set([...text.matchAll(/sluice_ors_\w+?(?=_bucket|_sum|_count|\W)/g)].map(([name]) => name))].sort();
    expect(names(readFileSync(PAGE, 'utf8'))).toEqual(names(served));
  });
});
