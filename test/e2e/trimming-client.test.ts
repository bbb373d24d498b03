import { type OrsSite, startOrs } from '../support/ors-site.ts';
import { Script } from '../support/script.ts';

const CHARACTERS = 200_000;

/** Puts the pieces of a call together as many clients do: each without the white space at its ends. */
const TRIMMING = {
  'JavaScript, trim()': [
    'client.mjs',
    `
const [, , url, sid, call] = process.argv;
const response = await fetch(url + '/gsm8k/call', { method: 'POST', headers: { 'X-Session-ID': sid }, body: call });
const pieces = (await response.text()).split('\\n\\n').filter((frame) => /^event: (chunk|end)\\n/.test(frame));
const text = pieces.map((frame) => frame.slice(frame.indexOf('data:') + 5).trim()).join('');
console.log(JSON.stringify({ pieces: pieces.length, ...JSON.parse(text) }));
`,
  ],
  'Python, strip()': [
    'client.py',
    `
import httpx, json, sys
_, url, sid, call = sys.argv
response = httpx.post(url + "/gsm8k/call", headers={"X-Session-ID": sid}, content=call.encode("utf8", "surrogatepass"))
frames = response.content.decode().split("\\n\\n")
pieces = [frame for frame in frames if frame.startswith(("event: chunk\\n", "event: end\\n"))]
text = "".join(frame.partition("data:")[2].strip() for frame in pieces)
print(json.dumps({"pieces": len(pieces), **json.loads(text)}))
`,
  ],
} as const;

describe(`a client that trims each piece of a result of ${CHARACTERS} characters`, () => {
  let site: OrsSite;
  let sid: string;

  beforeAll(async () => {
    site = await startOrs();
    sid = await site.session();
  });
  afterAll(() => site.stop());

  describe.each(Object.entries(TRIMMING))('(%s)', (_, [file, code]) => {
    it.each([
      ['spaces', ' '],
      ['emoji', '😀'],
      ['line separators', '\u2028'],
      ['CR', '\r'],
      ['LF', '\n'],
      ['all of them', ' 😀\u2028 \r \n\u0085\ufeff\u00a0 \\ " \t\u3000  '],
      ['all of them, shifted', '  😀😀 \u2029\n\n\r\r  '],
    ])('has the same text in the end: %s', async (_name, unit) => {
      const times = Math.ceil(CHARACTERS / unit.length);
      const call = JSON.stringify({ name: 'repeat', input: { text: unit, times } });
      const script = new Script({ [file]: code }, file, [site.url, sid, call]);
      expect([await script.ended, script.stderr]).toEqual([0, '']);
      const { pieces, output } = JSON.parse(script.stdout) as {
        readonly pieces: number;
        readonly output: { readonly blocks: readonly { readonly text: string }[] };
      };
      expect(pieces).toBeGreaterThan(CHARACTERS / 4_096);
      expect(output.blocks[0]?.text === unit.repeat(times)).toBe(true); // a difference would fill the screen
    });
  });
});
