import { parseRedisUrl } from '../../../src/streams/redis/settings.ts';

describe('a Redis URL', () => {
  it.each([
    [
      'redis://cache',
      { kind: 'standalone', nodes: [{ host: 'cache', port: 6379 }], partitions: 1, keyPrefix: 'sluice:' },
    ],
    ['redis://cache:7000/3', { nodes: [{ host: 'cache', port: 7000 }], db: 3 }],
    ['redis://:s%40cret@cache', { password: 's@cret' }],
    ['redis://ann:a:b@cache', { username: 'ann', password: 'a:b' }],
    ['rediss://cache', { kind: 'standalone', tls: {} }],
    ['redis://[::1]:7000', { nodes: [{ host: '::1', port: 7000 }] }],
    [
      'redis+sentinel://a,b:26000/mymaster/2',
      {
        kind: 'sentinel',
        masterName: 'mymaster',
        db: 2,
        nodes: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 26000 },
        ],
      },
    ],
    ['rediss+cluster://a,b', { kind: 'cluster', partitions: 4, tls: {} }],
  ])('%s', (url, expected) => {
    expect(parseRedisUrl(url)).toMatchObject(expected);
  });

  it.each([
    'http://cache',
    'redis://',
    'redis://cache:99999',
    'redis://a,b',
    'redis://cache/x',
    'redis+sentinel://a,b',
    'redis+cluster://a/1',
    'redis://cache/1/2',
  ])('%s is refused with a sentence', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(/^.{20,}$/);
  });
});
