import fc from 'fast-check';
import { parseWantedUrl } from '../../src/auth/bound-url.ts';
import { type FirstUse, MemoryFirstUse } from '../../src/auth/first-use.ts';
import { Tickets } from '../../src/auth/tickets.ts';
import { Clock, principalOf, refusal, SECRET, START } from './fixtures.ts';

const WANTED = parseWantedUrl('/events?channels=content.new');
const principal = principalOf({
  scopes: new Set(['ors', 'admin']),
  subscribe: ['content.*'],
  publish: ['content.new'],
  agents: ['agent://acme/writer'],
});

/** A store that can be switched off. */
class Switched implements FirstUse {
  away = false;
  inner: FirstUse;

  constructor(inner: FirstUse) {
    this.inner = inner;
  }

  async mark(id: string, untilMs: number): Promise<void> {
    if (this.away) throw new Error('away');
    await this.inner.mark(id, untilMs);
  }

  async seen(id: string): Promise<boolean> {
    if (this.away) throw new Error('away');
    return this.inner.seen(id);
  }
}

describe('Tickets', () => {
  let clock: Clock;
  let store: Switched;
  let tickets: Tickets;
  /** Another process with the same key and the same store. */
  let replica: Tickets;

  beforeEach(() => {
    clock = new Clock();
    store = new Switched(new MemoryFirstUse({ now: clock.now }));
    const make = (): Tickets => new Tickets({ key: SECRET, firstUse: store, now: clock.now });
    tickets = make();
    replica = make();
  });

  it('open the URL they were issued for, as the principal who asked', async () => {
    const issued = await tickets.issue(principal, WANTED);
    expect(issued).toMatchObject({
      url: `/events?channels=content.new&ticket=${issued.ticket}`,
      expiresAt: START + 3_600_000,
    });
    expect(await tickets.open(issued.ticket, issued.url)).toEqual(principal);
    expect(await replica.open(issued.ticket, `${issued.url}&lastEventId=msg-1`)).toEqual(principal);
  });

  it.each([
    ['another path', '/events2?channels=content.new'],
    ['a path below', '/events/stream?channels=content.new'],
    ['another value', '/events?channels=content.old'],
    ['one more parameter', '/events?channels=content.new&channels=b'],
    ['no parameters', '/events'],
    ['another spelling of the path', '/x/../events?channels=content.new'],
    ['a raw fragment', '/events?channels=content.new#'],
  ])('do not open %s', async (_, target) => {
    const { ticket } = await tickets.issue(principal, WANTED);
    expect(await refusal(tickets.open(ticket, target))).toMatchObject({ status: 401, reason: 'ticket' });
  });

  it('do not let an encoded "#" stand for a raw one', async () => {
    const { ticket } = await tickets.issue(principal, parseWantedUrl('/events?channels=a%23b'));
    await expect(tickets.open(ticket, '/events?channels=a%23b')).resolves.toBeDefined();
    expect((await refusal(tickets.open(ticket, '/events?channels=a#b'))).reason).toBe('ticket');
  });

  it('must be used within 30 s', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    const other = await tickets.issue(principal, WANTED);
    clock.advance(29_999);
    await expect(tickets.open(ticket, url)).resolves.toBeDefined();
    clock.advance(1);
    const error = await refusal(tickets.open(other.ticket, other.url));
    expect(error).toMatchObject({ reason: 'ticket', message: 'The ticket was not used within 30 s.' });
    expect((await refusal(replica.open(other.ticket, other.url))).reason).toBe('ticket');
  });

  it('once used, open the same URL on any replica until the token ends', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    await tickets.open(ticket, url);
    clock.advance(3_599_999);
    await expect(replica.open(ticket, url)).resolves.toBeDefined();
    clock.advance(1);
    expect((await refusal(replica.open(ticket, url))).reason).toBe('expired');
    expect((await refusal(tickets.open(ticket, url))).reason).toBe('expired');
  });

  it('are not used by an attempt that was refused', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    await refusal(tickets.open(ticket, '/other'));
    clock.advance(30_000);
    expect((await refusal(tickets.open(ticket, url))).reason).toBe('ticket');
  });

  it('are accepted until the token ends when the store has lost its marks', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    await tickets.open(ticket, url);
    store.inner = new MemoryFirstUse({ now: clock.now });
    clock.advance(60_000);
    await expect(replica.open(ticket, url)).resolves.toBeDefined();
    clock.advance(3_540_000);
    expect((await refusal(replica.open(ticket, url))).reason).toBe('expired');
  });

  it('are issued, used and used again while the store is away', async () => {
    store.away = true;
    const { ticket, url } = await tickets.issue(principal, WANTED);
    await expect(tickets.open(ticket, url)).resolves.toBeDefined();
    clock.advance(60_000);
    await expect(replica.open(ticket, url)).resolves.toBeDefined();
  });

  it('whose use the store could not be told about are known to the process that saw it, and then to all', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    store.away = true;
    await tickets.open(ticket, url);
    store.away = false;
    clock.advance(60_000);
    await expect(tickets.open(ticket, url)).resolves.toBeDefined();
    await expect(replica.open(ticket, url)).resolves.toBeDefined();
  });

  it('that were changed in any character are refused', async () => {
    const { ticket, url } = await tickets.issue(principal, WANTED);
    await fc.assert(
      fc.asyncProperty(fc.nat(ticket.length - 1), fc.constantFrom('A', 'b', '_', '.', '='), async (at, letter) => {
        fc.pre(ticket[at] !== letter);
        const changed = ticket.slice(0, at) + letter + ticket.slice(at + 1);
        expect((await refusal(tickets.open(changed, url))).reason).toBe('ticket');
      }),
    );
  });

  it.each(['', '.', 't1.', 't1..', 't1.e30', 't1.e30.', 'abc', '...'])('are not "%s"', async (text) => {
    expect((await refusal(tickets.open(text, '/events'))).reason).toBe('ticket');
  });

  it('of another key are refused', async () => {
    const other = new Tickets({ key: `${SECRET}!`, firstUse: store, now: clock.now });
    const { ticket, url } = await other.issue(principal, WANTED);
    expect((await refusal(tickets.open(ticket, url))).reason).toBe('ticket');
  });

  it('need a key of 32 bytes', () => {
    expect(() => new Tickets({ key: 'short', firstUse: store })).toThrow('has 5 bytes and needs at least 32.');
  });

  describe('read-only', () => {
    const PATH = '/events/stream/0190';

    it('read one stream with any parameters, for as long as it is kept, and grant nothing else', async () => {
      const ticket = tickets.issueReadOnly('alice', PATH, START + 7_200_000);
      clock.advance(7_199_999); // long after any first use, and after the token's own end
      expect(await replica.open(ticket, `${PATH}?ticket=${ticket}&format=x`)).toEqual(
        principalOf({ expiresAt: START + 7_200_000, boundTo: PATH }),
      );
      clock.advance(1);
      expect((await refusal(replica.open(ticket, PATH))).reason).toBe('expired');
    });

    it.each(['/events/stream/0191', `${PATH}/`, `${PATH}/x`, '/events', '/', `${PATH}#`])(
      'do not open %s',
      async (path) => {
        const ticket = tickets.issueReadOnly('alice', PATH, START + 7_200_000);
        expect((await refusal(tickets.open(ticket, path))).reason).toBe('ticket');
      },
    );
  });
});
