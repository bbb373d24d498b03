import { stringifySetCookie } from 'cookie';
import { SESSION_COOKIE } from './credentials.ts';

export interface SessionCookieOptions {
  /** Default `lax`. `none` is for pages of other sites and forces `Secure`. */
  readonly sameSite?: 'lax' | 'strict' | 'none';
  /** `Secure` also when the request does not look like https. Default false. */
  readonly secure?: boolean;
  readonly now?: () => number;
}

/** Browsers drop a longer one without a word. */
const MAX_BYTES = 4_096;

/** A token in a cookie that scripts cannot read, for browsers: an `EventSource` has no headers. */
export class SessionCookie {
  private readonly sameSite: 'lax' | 'strict' | 'none';
  private readonly secure: boolean;
  private readonly now: () => number;

  constructor({ sameSite = 'lax', secure = false, now = Date.now }: SessionCookieOptions = {}) {
    this.sameSite = sameSite;
    this.secure = secure || sameSite === 'none';
    this.now = now;
  }

  /** The value of a `Set-Cookie` header; undefined if no browser would keep it. */
  issue(token: string, expiresAt: number, https: boolean): string | undefined {
    const header = this.write(token, Math.max(0, Math.floor((expiresAt - this.now()) / 1_000)), https);
    return Buffer.byteLength(header) > MAX_BYTES ? undefined : header;
  }

  clear(https: boolean): string {
    return this.write('', 0, https);
  }

  private write(value: string, maxAge: number, https: boolean): string {
    return stringifySetCookie(SESSION_COOKIE, value, {
      httpOnly: true,
      maxAge,
      path: '/',
      sameSite: this.sameSite,
      secure: this.secure || https,
    });
  }
}
