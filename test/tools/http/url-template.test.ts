import { UrlTemplate } from '../../../src/tools/http/url-template.ts';

describe('a URL with places', () => {
  const fill = (template: string, input: Record<string, unknown>) => new UrlTemplate(template).fill(input);

  it('is filled with fields of the input; the others are left over', () => {
    const { url, rest } = fill('https://x.example/weather/{city}?units={units}', { city: 'Köln', units: 'm', days: 3 });
    expect(url.href).toBe('https://x.example/weather/K%C3%B6ln?units=m');
    expect(rest).toEqual({ days: 3 });
  });

  it.each([
    ['a/b', 'https://x.example/a%2Fb/end'],
    ['a?b=c&d', 'https://x.example/a%3Fb%3Dc%26d/end'],
    ['#f', 'https://x.example/%23f/end'],
    ['@evil.example', 'https://x.example/%40evil.example/end'],
    ['a b', 'https://x.example/a%20b/end'],
    ['', 'https://x.example//end'],
    [7, 'https://x.example/7/end'],
    [undefined, 'https://x.example//end'],
    [{ a: 1 }, 'https://x.example/%7B%22a%22%3A1%7D/end'],
  ])('takes %j for one piece of a path', (value, expected) => {
    expect(fill('https://x.example/{p}/end', { p: value }).url.href).toBe(expected);
  });

  it.each(['.', '..', '%2e%2e'])('does not let %s lead anywhere else', (value) => {
    const filled = () => fill('https://x.example/secret/{p}/end', { p: value }).url.href;
    if (value.startsWith('%')) expect(filled()).toBe('https://x.example/secret/%252e%252e/end');
    else expect(filled).toThrow('cannot be');
    expect(() => fill('https://x.example/a/{p}{q}', { p: '.', q: '.' })).toThrow('cannot be');
  });

  it.each([
    ['https://{host}/x', 'host'],
    ['https://x.{domain}/x', 'host'],
    ['ftp://x.example/', 'http://'],
    ['/relative', 'http://'],
    ['https://user:pw@x.example/', 'credentials'],
    ['https://x.example/{a b}', '{name}'],
    ['https://x.example/{', '{name}'],
  ])('refuses %s', (template, message) => expect(() => new UrlTemplate(template)).toThrow(message));
});
