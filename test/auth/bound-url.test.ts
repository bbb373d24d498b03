import fc from 'fast-check';
import { fingerprintOf, parseWantedUrl, withTicket } from '../../src/auth/bound-url.ts';

describe('parseWantedUrl', () => {
  it.each([
    ['/events?channels=a', '', '/events?channels=a'],
    ['/events', '', '/events'],
    ['https://gate.example:8443/x/events?channels=a', 'https://gate.example:8443', '/x/events?channels=a'],
    ['/events?channels=a"b', '', '/events?channels=a%22b'], // as a browser sends it
    ['/a/../events', '', '/events'],
  ])('reads %s as a browser would', (text, origin, target) => {
    expect(parseWantedUrl(text)).toEqual({ origin, target });
  });

  it.each<[unknown]>([
    [undefined],
    [7],
    [''],
    ['events'],
    ['//evil.example/events'],
    ['/\\evil.example/events'],
    ['ftp://gate/events'],
    ['javascript:alert(1)'],
    ['http://'],
    ['/events?a=b c'],
    ['/events\r\nX: y'],
    ['/events?channels=content.#'],
    ['/events?token=abc'],
    ['/events?%74oken=abc'],
    ['https://user:pw@gate/events'],
    [`/${'a'.repeat(4_096)}`],
  ])('refuses %p in one sentence', (text) => {
    expect(() => parseWantedUrl(text)).toThrow(/^"url" .*\.$/);
  });
});

describe('withTicket', () => {
  it.each([
    ['/events', '/events?ticket=T'],
    ['/events?channels=a%23&x', '/events?channels=a%23&x&ticket=T'],
    ['/events?ticket=old&channels=a', '/events?channels=a&ticket=T'],
    ['/events?channels=a?b', '/events?channels=a?b&ticket=T'],
    ['http://gate/events', 'http://gate/events?ticket=T'],
  ])('puts the ticket into %s', (text, expected) => {
    expect(withTicket(parseWantedUrl(text), 'T')).toBe(expected);
  });
});

describe('fingerprintOf', () => {
  const pairs = fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,5}$/), fc.string({ maxLength: 8 })), { maxLength: 6 });
  const free = fc.constantFrom('ticket', 'lastEventId');
  const targetOf = (list: readonly [string, string][]): string => `/events?${new URLSearchParams([...list])}`;

  it('does not see ticket and lastEventId, wherever they stand', () => {
    fc.assert(
      fc.property(pairs, free, fc.string(), fc.nat(6), (list, name, value, place) => {
        const more = list.toSpliced(place, 0, [name, value]);
        expect(fingerprintOf(targetOf(more))).toBe(fingerprintOf(targetOf(list)));
      }),
    );
  });

  it('differs for any other list of parameters', () => {
    fc.assert(
      fc.property(pairs, pairs, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        expect(fingerprintOf(targetOf(one)) === fingerprintOf(targetOf(other))).toBe(same);
      }),
    );
  });

  it('is the same for a wanted URL and for what is opened in the end', () => {
    fc.assert(
      fc.property(pairs, (list) => {
        const wanted = parseWantedUrl(targetOf(list));
        expect(fingerprintOf(withTicket(wanted, 'T'))).toBe(fingerprintOf(wanted.target));
      }),
    );
  });

  it.each([
    ['/events?channels=a,b', '/events?channels=a%2Cb', true],
    ['/events', '/events?', true],
    ['/events', '/events/', false],
    ['/events', '/Events', false],
    ['/a/b', '/a%2Fb', false],
    ['/events', '/x/../events', false],
    ['/events?a=1&b=2', '/events?b=2&a=1', false],
    ['/events?a=1', '/events?a=1&a=1', false],
    ['/events', '/events?LastEventId=1', false],
  ])('%s and %s: %s', (one, other, same) => {
    expect(fingerprintOf(one) === fingerprintOf(other)).toBe(same);
  });
});
