import { parseSetCookie } from 'cookie';
import { SessionCookie, type SessionCookieOptions } from '../../src/auth/session.ts';
import { Clock, START } from './fixtures.ts';

const { now } = new Clock();

describe('SessionCookie', () => {
  it('keeps the token from scripts, for as long as the token lives', () => {
    expect(parseSetCookie(new SessionCookie({ now }).issue('a.b.c', START + 90_500, false) ?? '')).toEqual({
      name: 'session',
      value: 'a.b.c',
      httpOnly: true,
      maxAge: 90,
      path: '/',
      sameSite: 'lax',
    });
  });

  it.each<[SessionCookieOptions, boolean, string, boolean]>([
    [{}, false, 'lax', false],
    [{}, true, 'lax', true],
    [{ secure: true }, false, 'lax', true],
    [{ sameSite: 'strict' }, false, 'strict', false],
    [{ sameSite: 'none' }, false, 'none', true],
    [{ sameSite: 'none', secure: false }, false, 'none', true],
  ])('with %p and https %s is SameSite=%s, Secure %s', (options, https, sameSite, secure) => {
    const cookie = new SessionCookie({ ...options, now });
    for (const header of [cookie.issue('t', START + 1_000, https), cookie.clear(https)]) {
      const { sameSite: site, secure: isSecure = false } = parseSetCookie(header ?? '');
      expect([site, isSecure]).toEqual([sameSite, secure]);
    }
  });

  it('is cleared by an empty one that is over at once', () => {
    expect(parseSetCookie(new SessionCookie().clear(false))).toMatchObject({ value: '', maxAge: 0, path: '/' });
  });

  it('is not made when browsers would drop it', () => {
    expect(new SessionCookie({ now }).issue('x'.repeat(4_096), START + 1_000, false)).toBeUndefined();
  });
});
