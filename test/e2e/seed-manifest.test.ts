import { join } from 'node:path';
import { eventually } from '../streams/logs.ts';
import { startGateway, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';

const MANIFEST = join(__dirname, '../fixtures/seeds/event-streamer.ossa.yaml');
const CHANNELS = ['content.published', 'agent.status', 'task.progress'];

interface Envelope {
  readonly type: string;
  readonly payload: {
    /** Of the first frame. */
    readonly channels?: readonly string[];
    readonly channel?: string;
    readonly data?: unknown;
  };
}

describe('the manifest of the OSSA page about SSE', () => {
  // The settings say otherwise about everything, so that what is seen is the manifest's.
  const env = {
    SLUICE_OSSA_RETRY_MS: '30',
    SLUICE_OSSA_HEARTBEAT_SECONDS: '1',
    SLUICE_BUFFER_EVENTS: '7',
    SLUICE_BUFFER_SECONDS: '1',
  };
  const headers = { Authorization: `Bearer ${tokenFor()}` };
  const texts = (stream: RawStream): Envelope[] =>
    stream.frames.flatMap((frame) => {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      return data === undefined ? [] : [JSON.parse(data) as Envelope];
    });
  /** The gateway may have news of its own on agent.status. */
  const published = (stream: RawStream): unknown[] =>
    texts(stream).flatMap(({ payload }) => (payload.channel === 'content.published' ? [payload.data] : []));

  it('serves its channels with its heartbeat, retry and buffer', async () => {
    const running = await startGateway({ ...env, SLUICE_MANIFESTS: MANIFEST });
    const first = new RawStream(running.port, '/events', headers);
    const other = new RawStream(running.port, '/events?channels=other', headers);
    await eventually(() => first.frames.length > 0);
    const channels = texts(first)[0]?.payload.channels;
    expect(channels?.toSorted()).toEqual(CHANNELS.toSorted());
    expect(first.frames[0]).toMatch(/^retry: 5000\n/);
    expect(CHANNELS.map((name) => running.gateway.manifests.current.channel(name)?.heartbeatSeconds)).toEqual([
      30, 30, 30,
    ]);

    const numbers = Array.from({ length: 120 }, (_, i) => i + 1);
    const position = first.lastId as string;
    await fetch(`${running.url}/events`, {
      method: 'POST',
      headers,
      body: JSON.stringify(numbers.map((data) => ({ channel: 'content.published', data }))),
    });
    await eventually(() => published(first).length === 120);
    // By the second heartbeat of the settings they would have forgotten everything.
    await eventually(() => other.frames.filter((frame) => frame.startsWith(': heartbeat')).length >= 2);
    expect(first.frames.filter((frame) => frame.startsWith(': heartbeat'))).toEqual([]);

    const again = new RawStream(running.port, '/events', { ...headers, 'Last-Event-ID': position });
    await eventually(() => published(again).length === 100);
    const [, resync] = texts(again);
    expect(resync).toMatchObject({
      type: 'resync',
      payload: { reason: 'expired', channels: ['content.published'], lastEventId: position },
    });
    expect(published(again)).toEqual(numbers.slice(20));
    for (const stream of [first, other, again]) stream.close();
    await running.stop();
  }, 20_000);
});
