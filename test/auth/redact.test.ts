import fc from 'fast-check';
import { redactUrl, SECRET_HEADERS, SECRET_PARAMETERS } from '../../src/auth/redact.ts';

describe('redactUrl', () => {
  it.each([
    ['/events?channels=a&token=abc.def&x=1', '/events?channels=a&token=***&x=1'],
    ['https://gate/events?ticket=t1.x.y#top', 'https://gate/events?ticket=***#top'],
    [
      '/x?ApiKey=a&API_KEY=b&Key=c&access_token=d&secret=e',
      '/x?ApiKey=***&API_KEY=***&Key=***&access_token=***&secret=***',
    ],
    ['/x?%74oken=abc', '/x?%74oken=***'],
    ['/x?token=a=b?c;d', '/x?token=***'],
    ['/x#token=abc', '/x#token=***'],
    ['/x?tokens=5&monkey=b&token', '/x?tokens=5&monkey=b&token'],
    ['/x?%zz=1&token=', '/x?%zz=1&token=***'],
    ['/plain', '/plain'],
  ])('%s', (url, expected) => {
    expect(redactUrl(url)).toBe(expected);
  });

  it('lets no secret through, whatever stands around it', () => {
    const word = fc.stringMatching(/^[a-z%&=?#+.]{0,12}$/);
    fc.assert(
      fc.property(word, fc.constantFrom(...SECRET_PARAMETERS), word, (before, name, after) => {
        expect(redactUrl(`/p?${before}&${name}=SECRET${after}`)).not.toContain('SECRET');
      }),
    );
  });
});

it('names every header that carries a credential', () => {
  expect([...SECRET_HEADERS].sort()).toEqual([
    'apikey',
    'authorization',
    'cookie',
    'proxy-authorization',
    'set-cookie',
    'x-api-key',
    'x-secrets',
  ]);
});
