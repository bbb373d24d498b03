import { AuthError } from '../../src/auth/auth-error.ts';

describe('AuthError', () => {
  it.each([
    ['missing', 401, 'AUTH_FAILED'],
    ['expired', 401, 'AUTH_FAILED'],
    ['ticket', 401, 'AUTH_FAILED'],
    ['origin', 403, 'FORBIDDEN'],
    ['plain_http', 403, 'FORBIDDEN'],
    ['unavailable', 503, 'UNAVAILABLE'],
  ] as const)('for %s is %i %s', (reason, status, code) => {
    expect(new AuthError(reason, 'x')).toMatchObject({ status, code, reason });
  });

  it('asks for a token without blaming one when none came', () => {
    expect(new AuthError('missing', 'x').headers).toEqual({ 'WWW-Authenticate': 'Bearer realm="sluice"' });
  });

  it('puts nothing into a header that could end it or its quotes', () => {
    const { headers } = new AuthError('claims', 'a "b" \\ ü\r\nSet-Cookie: x');
    expect(headers['WWW-Authenticate']).toBe(
      `Bearer realm="sluice", error="invalid_token", error_description="a 'b' ' '''Set-Cookie: x"`,
    );
  });

  it('says when to come back if it is our fault, and asks for no token if a token would not help', () => {
    expect(new AuthError('unavailable', 'x').headers).toEqual({ 'Retry-After': '5' });
    expect(new AuthError('origin', 'x').headers).toEqual({});
  });
});
