import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { AuthError } from './auth-error.ts';
import { fingerprintOf, pathOf, type WantedUrl, withTicket } from './bound-url.ts';
import { type FirstUse, MemoryFirstUse } from './first-use.ts';
import { type Claims, claimsOf, type Principal, parsePrincipal } from './principal.ts';

export interface TicketsOptions {
  /** The gateway's own key, the same on every replica. Tickets are signed with a key derived from it. */
  readonly key: string | Uint8Array;
  readonly firstUse: FirstUse;
  /** How long a new ticket waits for its first use. Default 30 seconds. */
  readonly firstUseMs?: number;
  readonly now?: () => number;
}

export interface IssuedTicket {
  readonly ticket: string;
  /** The wanted URL with the ticket in it. */
  readonly url: string;
  /** When the token that it came from ends, in milliseconds. */
  readonly expiresAt: number;
}

interface Contents {
  /** `url`: opens one URL. `path`: reads one stream, with any parameters. */
  readonly kind: 'url' | 'path';
  readonly id: string;
  readonly issuedAt: number;
  /** The URL's fingerprint, or the path. */
  readonly opens: string;
  readonly claims: Claims;
}

const MIN_KEY_BYTES = 32;
const VERSION = 't1';

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
const sameText = (a: string, b: string): boolean => sameBytes(Buffer.from(a), Buffer.from(b));

const issuedMark = (id: string): string => `${id}.issued`;
const usedMark = (id: string): string => `${id}.used`;

/**
 * A ticket stands in a URL where a token must not. It opens that one URL, which must happen within 30 s; after that the
 * same URL may be opened again until the token ends, because a browser's `EventSource` reconnects with the URL it has.
 *
 * The first use is marked in a store that may forget or be away, and then the ticket is accepted. To tell a forgotten
 * mark from a ticket that was never used, the issuing is marked as well: a late ticket is refused only if the store
 * still knows that it was issued and not that it was used.
 */
export class Tickets {
  private readonly key: Uint8Array;
  private readonly firstUse: FirstUse;
  private readonly firstUseMs: number;
  private readonly now: () => number;
  /** What this process has seen itself: it covers uses that the store could not be told about. */
  private readonly ownUses: MemoryFirstUse;

  constructor({ key, firstUse, firstUseMs = 30_000, now = Date.now }: TicketsOptions) {
    const bytes = Buffer.from(key);
    if (bytes.length < MIN_KEY_BYTES) {
      throw new Error(`The key for tickets has ${bytes.length} bytes and needs at least ${MIN_KEY_BYTES}.`);
    }
    this.key = new Uint8Array(hkdfSync('sha256', bytes, new Uint8Array(), 'sluice ticket 1', 32));
    this.firstUse = firstUse;
    this.firstUseMs = firstUseMs;
    this.now = now;
    this.ownUses = new MemoryFirstUse({ maxMarks: 10_000, now });
  }

  async issue(principal: Principal, wanted: WantedUrl): Promise<IssuedTicket> {
    const id = randomBytes(16).toString('base64url');
    const ticket = this.seal({
      kind: 'url',
      id,
      issuedAt: this.now(),
      opens: fingerprintOf(wanted.target),
      claims: claimsOf(principal),
    });
    await this.markIn(this.firstUse, issuedMark(id), principal.expiresAt);
    return { ticket, url: withTicket(wanted, ticket), expiresAt: principal.expiresAt };
  }

  /** Reads the stream at one path until it is no longer kept, and does nothing else. */
  issueReadOnly(sub: string, path: string, expiresAt: number): string {
    return this.seal({
      kind: 'path',
      id: randomBytes(16).toString('base64url'),
      issuedAt: this.now(),
      opens: path,
      claims: { sub, exp: expiresAt / 1_000 },
    });
  }

  /** `target` is path and query as they stand in the request line. The caller has checked that the method only reads. */
  async open(ticket: string, target: string): Promise<Principal> {
    const { kind, id, issuedAt, opens, claims } = this.unseal(ticket);
    const principal = parsePrincipal(claims);
    if (this.now() >= principal.expiresAt) throw new AuthError('expired', 'The ticket has expired.');
    // Express cuts a raw "#" off; a fingerprint that counts it would speak of another request than the routes see.
    if (target.includes('#') || !sameText(opens, kind === 'url' ? fingerprintOf(target) : pathOf(target))) {
      throw new AuthError('ticket', 'The ticket is for another URL.');
    }
    if (kind === 'path') return { ...principal, boundTo: opens };
    if (this.now() - issuedAt >= this.firstUseMs && !(await this.mayReopen(id))) {
      throw new AuthError('ticket', `The ticket was not used within ${this.firstUseMs / 1_000} s.`);
    }
    await Promise.all(
      [this.ownUses, this.firstUse].map((store) => this.markIn(store, usedMark(id), principal.expiresAt)),
    );
    return principal;
  }

  private async mayReopen(id: string): Promise<boolean> {
    if (await this.ownUses.seen(usedMark(id))) return true;
    try {
      return (await this.firstUse.seen(usedMark(id))) || !(await this.firstUse.seen(issuedMark(id)));
    } catch {
      return true;
    }
  }

  private async markIn(store: FirstUse, mark: string, until: number): Promise<void> {
    await store.mark(mark, until).catch(() => {}); // away: the ticket counts as one whose marks were forgotten
  }

  private seal(contents: Contents): string {
    const body = `${VERSION}.${Buffer.from(JSON.stringify(contents)).toString('base64url')}`;
    return `${body}.${this.sign(body).toString('base64url')}`;
  }

  private unseal(ticket: string): Contents {
    const end = ticket.lastIndexOf('.');
    const body = ticket.slice(0, Math.max(end, 0));
    // Compared as text: base64url has several spellings of the same bytes.
    if (!body.startsWith(`${VERSION}.`) || !sameText(ticket.slice(end + 1), this.sign(body).toString('base64url'))) {
      throw new AuthError('ticket', 'The ticket was not issued by this gateway.');
    }
    return JSON.parse(Buffer.from(body.slice(VERSION.length + 1), 'base64url').toString('utf8')) as Contents;
  }

  private sign(body: string): Buffer {
    return createHmac('sha256', this.key).update(body).digest();
  }
}
