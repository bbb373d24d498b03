import { eventually } from '../streams/logs.ts';
import { Follower } from '../support/follower.ts';
import { startGateway, tokenFor } from '../support/gateway.ts';
import { TcpProxy } from '../support/proxy.ts';
import { Counter } from '../support/publisher.ts';

describe('the eventsource package', () => {
  it('with a ticket is cut three times and loses, doubles and reorders nothing', async () => {
    const gateway = await startGateway({ SLUICE_OSSA_RETRY_MS: '30', SLUICE_BUFFER_EVENTS: '5000' });
    const proxy = await TcpProxy.start(gateway.port);
    const answer = await fetch(`${gateway.url}/auth/ticket`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenFor()}` },
      body: JSON.stringify({ url: `${proxy.url}/events?channels=demo` }),
    });
    const { url } = (await answer.json()) as { url: string };

    const follower = await Follower.open(url);
    const { seen, resumed } = follower;
    const counter = new Counter(() => gateway.url, 'demo');
    for (const [i, bytes] of [1, 400, 1_000].entries()) {
      const before = seen.length;
      await eventually(() => seen.length > before + 5);
      await proxy.cutAfter(bytes);
      await eventually(() => resumed.length === i + 2);
    }
    await counter.stop();
    await eventually(() => seen.length >= counter.published);
    await follower.stop();
    expect(seen).toEqual(counter.all);
    expect(resumed).toEqual([false, true, true, true]);
    await proxy.stop();
    await gateway.stop();
  });
});
