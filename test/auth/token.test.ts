import { FixedKeys, secretKey } from '../../src/auth/keys.ts';
import { mintToken } from '../../src/auth/token.ts';
import { Verifier } from '../../src/auth/verifier.ts';
import { SECRET, START } from './fixtures.ts';

const now = (): number => START;

describe('mintToken', () => {
  it('makes a token that the gateway accepts, for as long as was asked', async () => {
    const token = mintToken(
      SECRET,
      { sub: 'first', scope: 'ors admin', channels: { subscribe: ['#'], publish: ['#'] }, agents: ['agent://a/b'] },
      86_400,
      now,
    );
    const verifier = new Verifier({ keys: [new FixedKeys([secretKey(SECRET)])], now });
    expect(await verifier.verify(token)).toEqual({
      sub: 'first',
      scopes: new Set(['ors', 'admin']),
      subscribe: ['#'],
      publish: ['#'],
      agents: ['agent://a/b'],
      expiresAt: START + 86_400_000,
    });
  });

  it.each<[string, () => string, string]>([
    ['a short secret', () => mintToken('short', { sub: 'a' }, 60), '32'],
    ['no principal', () => mintToken(SECRET, { sub: '' }, 60), '"sub"'],
    [
      'a bad pattern',
      () => mintToken(SECRET, { sub: 'a', channels: { publish: ['a..b'] } }, 60),
      'channels.publish[0]',
    ],
    ['a lifetime of nothing', () => mintToken(SECRET, { sub: 'a' }, 0), 'lifetime'],
    ['a lifetime that is no number', () => mintToken(SECRET, { sub: 'a' }, Number.NaN), 'lifetime'],
  ])('refuses %s', (_, make, message) => {
    expect(make).toThrow(message);
  });
});
