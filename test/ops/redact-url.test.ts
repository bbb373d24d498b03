import { urlRedactor } from '../../src/ops/redact-url.ts';

const redact = urlRedactor(['token', 'ticket']);

it.each([
  ['/events?token=hunter2', '/events?token=***'],
  ['/events?a=1&token=hunter2&channels=b', '/events?a=1&token=***&channels=b'],
  ['/events?TOKEN=hunter2&ticket=hunter2', '/events?TOKEN=***&ticket=***'],
  ['/events?%74oken=hunter2', '/events?%74oken=***'],
  ['/events?token[]=hunter2&token[a]=hunter2', '/events?token[]=***&token[a]=***'],
  ['/events?token=a=hunter2', '/events?token=***'],
  ['/events?+token=hunter2', '/events?+token=***'],
  ['/events?a=1?token=2&token=hunter2?x', '/events?a=1?token=2&token=***'],
  ['/events?%E0%A4%A=1&token=hunter2', '/events?%E0%A4%A=1&token=***'],
])('hides what is secret in %s', (url, shown) => {
  expect(redact(url)).toBe(shown);
});

it.each(['/events', '/events?', '/events?channels=token', '/token=1', '/events?tokens=1&%'])(
  'leaves %s alone',
  (url) => {
    expect(redact(url)).toBe(url);
  },
);
