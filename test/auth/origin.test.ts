import { isSafeMethod, isTrustedOrigin } from '../../src/auth/origin.ts';

const LISTED = ['https://app.example', 'http://localhost:3000/'];

describe('isTrustedOrigin', () => {
  it.each<[string, Record<string, string>, 'http' | 'https', boolean]>([
    ['our own page', { origin: 'https://gate.example' }, 'https', true],
    ['our own page behind a proxy that hides https', { origin: 'https://gate.example' }, 'http', true],
    ['our own page over http', { origin: 'http://gate.example' }, 'http', true],
    ['an http page to our https', { origin: 'http://gate.example' }, 'https', false],
    ['another port', { origin: 'https://gate.example:8443' }, 'https', false],
    ['another host', { origin: 'https://evil.example' }, 'https', false],
    ['a host that ends like ours', { origin: 'https://evil-gate.example' }, 'https', false],
    ['a host that starts like ours', { origin: 'https://gate.example.evil' }, 'https', false],
    ['a subdomain', { origin: 'https://x.gate.example' }, 'https', false],
    ['a listed origin', { origin: 'https://app.example' }, 'https', true],
    ['a listed origin with a port', { origin: 'http://localhost:3000' }, 'https', true],
    ['a listed host with another scheme', { origin: 'http://app.example' }, 'https', false],
    ['a sandboxed frame', { origin: 'null' }, 'https', false],
    ['an extension', { origin: 'chrome-extension://gate.example' }, 'https', false],
    ['an empty origin', { origin: '' }, 'https', false],
    ['neither header', {}, 'https', false],
    ['same-origin by fetch metadata', { 'sec-fetch-site': 'same-origin' }, 'https', true],
    ['same-site by fetch metadata', { 'sec-fetch-site': 'same-site' }, 'https', false],
    ['cross-site by fetch metadata', { 'sec-fetch-site': 'cross-site' }, 'https', false],
    ['a typed address', { 'sec-fetch-site': 'none' }, 'https', false],
    ['a listed origin, cross-site', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }, 'https', true],
  ])('%s', (_, headers, protocol, trusted) => {
    expect(isTrustedOrigin({ headers, host: 'gate.example', protocol }, LISTED)).toBe(trusted);
  });

  it('knows its own host with the default port written out', () => {
    const headers = { origin: 'https://gate.example' };
    expect(isTrustedOrigin({ headers, host: 'gate.example:443', protocol: 'https' }, [])).toBe(true);
  });

  it.each(['', 'a b', '?'])('trusts nobody when the Host is "%s"', (host) => {
    const headers = { origin: 'https://gate.example' };
    expect(isTrustedOrigin({ headers, host, protocol: 'https' }, [])).toBe(false);
  });
});

it('takes every method for unsafe that may change something', () => {
  const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'get'];
  expect(methods.filter(isSafeMethod)).toEqual(['GET', 'HEAD', 'OPTIONS']);
});
