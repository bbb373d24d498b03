import type { Progress } from '../../../src/tools/tool.ts';
import { eventually } from '../../streams/logs.ts';
import { EverythingServer } from './everything.ts';
import { everythingOnStdio, Room } from './room.ts';

interface Place {
  readonly name: string;
  /** What the file of servers says, and how to kill the server and to start it again where nobody else would. */
  start(): Promise<{ entry: object; kill(room: Room): Promise<void>; again(): Promise<void> }>;
}

const overHttp = (name: 'sse' | 'streamable-http'): Place => ({
  name,
  start: async () => {
    const server = await EverythingServer.start(name === 'sse' ? 'sse' : 'streamableHttp');
    return { entry: { type: name, url: server.url }, kill: () => server.kill(), again: () => server.up() };
  },
});

const overStdio: Place = {
  name: 'stdio',
  start: async () => ({
    entry: everythingOnStdio(),
    // The reference server tells its environment, but not its process: it is found by its parent.
    kill: async () => {
      for (const pid of await childrenOf(process.pid, 'server-everything')) process.kill(pid, 'SIGKILL');
    },
    again: async () => {},
  }),
};

const childrenOf = async (parent: number, words: string): Promise<number[]> => {
  const { readFileSync } = await import('node:fs');
  const all = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return all.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words);
    } catch {
      return false;
    }
  });
};

jest.setTimeout(30_000);

describe.each([overStdio, overHttp('streamable-http'), overHttp('sse')])('the reference server over $name', (place) => {
  let room: Room;
  let server: Awaited<ReturnType<Place['start']>>;

  beforeAll(async () => {
    server = await place.start();
    room = await Room.open({ everything: server.entry });
  });
  afterAll(() => room.stop());

  it('lists its tools with their schemas', () => {
    expect(room.state('everything')).toMatchObject({ state: 'ready', transport: place.name, restarts: 0 });
    expect(room.names).toEqual(expect.arrayContaining(['echo', 'get-sum', 'get-tiny-image']));
    const echo = room.registry.find('everything.echo');
    expect(echo).toMatchObject({
      source: { kind: 'mcp', name: 'everything' },
      inputSchema: { type: 'object', required: ['message'] },
      approval: 'never',
    });
    expect(room.registry.find('get-structured-content')?.outputSchema).toMatchObject({ type: 'object' });
  });

  it('answers calls, several at the same time', async () => {
    const texts = await Promise.all([1, 2, 3, 4, 5].map((n) => room.text('get-sum', { a: n, b: 10 })));
    expect(texts).toEqual([11, 12, 13, 14, 15].map((sum) => expect.stringContaining(String(sum))));
    expect(await room.text('echo', { message: 'grüße' })).toBe('Echo: grüße');
  });

  it('refuses input that does not fit before anything is sent', async () => {
    expect(await room.error('echo', {})).toMatchObject({
      code: 'invalid_input',
      message: 'Input of echo: message is missing.',
    });
  });

  it('passes progress on, in order', async () => {
    const seen: Progress[] = [];
    const text = await room.text(
      'trigger-long-running-operation',
      { duration: 0.3, steps: 3 },
      { progress: (update) => seen.push(update) },
    );
    expect(text).toContain('completed');
    expect(seen).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3 })));
  });

  it('keeps images, links, resources and structured content', async () => {
    const { content } = await room.call('get-tiny-image');
    expect(content[1]).toMatchObject({ type: 'image', mimeType: 'image/png', data: expect.stringMatching(/^iVBOR/) });
    const weather = await room.call('get-structured-content', { location: 'Chicago' });
    expect(weather.structured).toEqual({ temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 });
    const links = await room.call('get-resource-links', { count: 1 });
    expect(links.content[1]).toMatchObject({
      type: 'link',
      uri: expect.stringMatching(/^demo:/),
      mimeType: 'text/plain',
    });
    const reference = await room.call('get-resource-reference', { resourceType: 'Text', resourceId: 1 });
    expect(reference.content[1]).toMatchObject({ type: 'resource', text: expect.stringContaining('Resource 1') });
  });

  it('keeps an error that the tool reports itself', async () => {
    const result = await room.call('gzip-file-as-resource', { name: 'x', data: 'no address' });
    expect(result).toMatchObject({ isError: true, content: [{ type: 'text', text: expect.stringContaining('URL') }] });
  });

  it('tells a cancelled call at once and stays connected', async () => {
    const stop = new AbortController();
    const call = room.error('trigger-long-running-operation', { duration: 60, steps: 2 }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 100);
    expect(await call).toMatchObject({ code: 'cancelled' });
    expect(await room.text('echo', { message: 'still here' })).toBe('Echo: still here');
    expect(room.state('everything').restarts).toBe(0);
  });

  it('gives one clear error when it is killed during a call, comes back, and answers the next call', async () => {
    let began: () => void = () => {};
    const begun = new Promise<void>((resolve) => {
      began = resolve;
    });
    const call = room.error('trigger-long-running-operation', { duration: 60, steps: 600 }, { progress: began });
    await begun;
    await server.kill(room);
    const error = await call;
    expect(error.code).toBe('unavailable');
    expect(error.message).toMatch(
      /^The MCP server everything failed during the call of trigger-long-running-operation: .*\. Whether the call was carried out is not known\.$/,
    );
    expect(room.names).toContain('echo'); // its tools stay known
    await server.again();
    await eventually(() => room.state('everything').state === 'ready');
    expect(await room.text('echo', { message: 'again' })).toBe('Echo: again');
    expect(room.state('everything')).toMatchObject({ state: 'ready', lastError: undefined });
    expect(room.state('everything').restarts).toBeGreaterThan(0);
    expect(room.phases('everything')).toContain('restarting');
  });
});
