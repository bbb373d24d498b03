import fc from 'fast-check';
import { AuthError } from '../../src/auth/auth-error.ts';
import {
  claimsOf,
  mayPublish,
  maySubscribe,
  type Principal,
  parsePrincipal,
  SCOPES,
  speaksFor,
} from '../../src/auth/principal.ts';
import { principalOf } from './fixtures.ts';

const claims = { sub: 'alice', exp: 2_000_000_000 };

describe('parsePrincipal', () => {
  it('reads every claim', () => {
    expect(
      parsePrincipal({
        ...claims,
        scope: 'ors admin',
        channels: { subscribe: ['content.*', '#'], publish: ['content.published'] },
        agents: ['agent://acme/writer'],
      }),
    ).toEqual({
      sub: 'alice',
      scopes: new Set(['ors', 'admin']),
      subscribe: ['content.*', '#'],
      publish: ['content.published'],
      agents: ['agent://acme/writer'],
      expiresAt: 2_000_000_000_000,
    });
  });

  it('grants nothing that is not claimed', () => {
    const principal = parsePrincipal(claims);
    expect([...principal.scopes, ...principal.subscribe, ...principal.publish, ...principal.agents]).toEqual([]);
    expect(maySubscribe(principal, 'content.new')).toBe(false);
  });

  it('keeps scopes of other services, which manifests may ask for', () => {
    expect([...parsePrincipal({ ...claims, scope: 'openid ors  Admin' }).scopes]).toEqual(['openid', 'ors', 'Admin']);
  });

  it.each<[string, unknown, string]>([
    ['no claims', undefined, 'no claims'],
    ['text', 'alice', 'no claims'],
    ['no sub', { exp: 1 }, '"sub"'],
    ['an empty sub', { ...claims, sub: '' }, '"sub"'],
    ['a number as sub', { ...claims, sub: 7 }, '"sub"'],
    ['a long sub', { ...claims, sub: 'a'.repeat(256) }, '"sub"'],
    ['a line end in sub', { ...claims, sub: 'a\nb' }, '"sub"'],
    ['no exp', { sub: 'alice' }, '"exp"'],
    ['text as exp', { ...claims, exp: '2000000000' }, '"exp"'],
    ['NaN as exp', { ...claims, exp: Number.NaN }, '"exp"'],
    ['an exp beyond the calendar', { ...claims, exp: 253_402_300_800 }, '"exp"'],
    ['a list as scope', { ...claims, scope: ['ors'] }, '"scope"'],
    ['a list as channels', { ...claims, channels: ['a'] }, '"channels"'],
    ['text as channels', { ...claims, channels: 'a' }, '"channels"'],
    ['text as subscribe', { ...claims, channels: { subscribe: '#' } }, '"channels.subscribe"'],
    ['a bad pattern', { ...claims, channels: { publish: ['a', 'a.#.b'] } }, '"channels.publish[1]"'],
    ['a number in a list', { ...claims, channels: { publish: [1] } }, '"channels.publish[0]"'],
    ['too many patterns', { ...claims, channels: { subscribe: Array(1_001).fill('a') } }, '1000'],
    ['text as agents', { ...claims, agents: 'agent://a/b' }, '"agents"'],
    ['an agent that is no URI', { ...claims, agents: ['writer'] }, '"agents[0]"'],
  ])('refuses %s and names the claim', (_, bad, name) => {
    let error: unknown;
    try {
      parsePrincipal(bad);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ status: 401, code: 'AUTH_FAILED', reason: 'claims' });
    expect((error as Error).message).toContain(name);
  });

  it('takes a sub of 255 characters', () => {
    expect(parsePrincipal({ ...claims, sub: 'a'.repeat(255) }).sub).toHaveLength(255);
  });

  it('reads back what claimsOf writes', () => {
    const pattern = fc.constantFrom('#', 'a.*', 'content.new', '*.b.#');
    const principal: fc.Arbitrary<Principal> = fc.record({
      sub: fc.stringMatching(/^[a-z@:.]{1,40}$/),
      scopes: fc.subarray([...SCOPES]).map((scopes) => new Set(scopes)),
      subscribe: fc.array(pattern),
      publish: fc.array(pattern),
      agents: fc.array(fc.constantFrom('agent://a/b', 'ossa://agents/c')),
      expiresAt: fc.integer({ min: 1, max: 253_402_300_799_000 }),
    });
    fc.assert(fc.property(principal, (one) => expect(parsePrincipal(claimsOf(one))).toEqual(one)));
  });
});

describe('what a principal may do', () => {
  const principal = principalOf({
    subscribe: ['content.*', 'logs.#'],
    publish: ['content.published'],
    agents: ['agent://acme/writer'],
  });

  it.each([
    ['content.new', true],
    ['content.new.draft', false],
    ['content', false],
    ['logs.a.b.c', true],
    ['other', false],
  ])('follows %s: %s', (channel, allowed) => {
    expect(maySubscribe(principal, channel)).toBe(allowed);
  });

  it('keeps publishing apart from following', () => {
    expect(mayPublish(principal, 'content.published')).toBe(true);
    expect(mayPublish(principal, 'content.new')).toBe(false);
  });

  it('speaks for the agents it names and for no others', () => {
    expect(speaksFor(principal, 'agent://acme/writer')).toBe(true);
    expect(speaksFor(principal, 'agent://acme/writer2')).toBe(false);
    expect(speaksFor(principal, 'agent://acme/')).toBe(false);
  });
});
