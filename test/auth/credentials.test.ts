import fc from 'fast-check';
import {
  type CredentialCarrier,
  findCredential,
  looksLikeJwt,
  SOURCES,
  type Source,
} from '../../src/auth/credentials.ts';
import { tokenFor } from './fixtures.ts';

/** A request with a text at each of some sources. */
const requestWith = (texts: Partial<Record<Source, string>>): CredentialCarrier => {
  const parameters = new URLSearchParams({ channels: 'a' });
  if (texts.query !== undefined) parameters.set('token', texts.query);
  if (texts.ticket !== undefined) parameters.set('ticket', texts.ticket);
  return {
    originalUrl: `/events?${parameters}`,
    headers: {
      ...(texts.authorization !== undefined && { authorization: `Bearer ${texts.authorization}` }),
      ...(texts['x-api-key'] !== undefined && { 'x-api-key': texts['x-api-key'] }),
      ...(texts.apikey !== undefined && { apikey: texts.apikey }),
      ...(texts.cookie !== undefined && { cookie: `theme=dark; session=${texts.cookie}; a=b` }),
    },
  };
};

const reasonOf = (request: CredentialCarrier): unknown => {
  try {
    return findCredential(request);
  } catch (error) {
    return (error as { reason: string }).reason;
  }
};

describe('findCredential', () => {
  it('finds nothing in a request that carries nothing', () => {
    expect(findCredential(requestWith({}))).toBeUndefined();
    expect(findCredential({ originalUrl: '/', headers: { cookie: 'theme=dark; sessions=x' } })).toBeUndefined();
  });

  it.each(SOURCES.map((source) => [source]))('finds a token at "%s"', (source) => {
    expect(findCredential(requestWith({ [source]: 'a.b.c' }))).toEqual({ token: 'a.b.c', source });
  });

  it('judges the first one present, whichever others there are', () => {
    fc.assert(
      fc.property(fc.subarray([...SOURCES], { minLength: 1 }), (present) => {
        const texts = Object.fromEntries(present.map((source) => [source, `from-${source}`]));
        expect(findCredential(requestWith(texts))).toEqual({ token: `from-${present[0]}`, source: present[0] });
      }),
    );
  });

  it('never skips a malformed one for the next', () => {
    const malformed = fc.constantFrom('', ' ', 'two words', 'a\tb', 'ü', '"quoted"', 'a,b', 'x'.repeat(16_385));
    fc.assert(
      fc.property(fc.subarray([...SOURCES], { minLength: 1 }), malformed, (present, text) => {
        const texts = Object.fromEntries(present.map((source, i) => [source, i === 0 ? text : 'good']));
        // A cookie ends at a semicolon or comma of its own grammar; its text is given as a browser would write it.
        if (present[0] === 'cookie') texts.cookie = encodeURIComponent(text);
        expect(reasonOf(requestWith(texts))).toBe('malformed');
      }),
    );
  });

  it.each(['Bearer', 'Bearer ', 'Basic YTpi', 'a.b.c', 'Bearer a b', 'Bearera.b.c', ''])(
    'refuses "%s" in Authorization though a good cookie follows',
    (authorization) => {
      expect(reasonOf({ originalUrl: '/', headers: { authorization, cookie: 'session=good' } })).toBe('malformed');
    },
  );

  it('reads Bearer in any case', () => {
    expect(findCredential({ originalUrl: '/', headers: { authorization: 'bEARER  abc' } })?.token).toBe('abc');
  });

  it('refuses two tokens in the query', () => {
    expect(reasonOf({ originalUrl: '/?token=a&token=b', headers: {} })).toBe('malformed');
  });

  it('takes no other parameter for a token', () => {
    expect(findCredential({ originalUrl: '/?Token=a&access_token=b&key=c#?token=d', headers: {} })).toBeUndefined();
  });
});

describe('ignoreOpaque', () => {
  const find = (request: CredentialCarrier) => findCredential(request, { ignoreOpaque: true });

  it.each(['or-key-123', 'None', 'abc.def.ghi', 'MTIz', ''])('passes over the key "%s" of another service', (key) => {
    expect(find(requestWith({ authorization: key }))).toBeUndefined();
    expect(find(requestWith({ 'x-api-key': key }))).toBeUndefined();
  });

  it('still judges whatever is a JWT, damaged or not', () => {
    const token = tokenFor();
    expect(find(requestWith({ authorization: token }))?.token).toBe(token);
    expect(find(requestWith({ authorization: token.slice(0, -5) }))).toBeDefined();
    expect(find(requestWith({ authorization: token.split('.')[0] as string }))).toBeDefined();
  });

  it('judges a JWT that stands behind an ignored key', () => {
    expect(find(requestWith({ 'x-api-key': 'or-key-123', cookie: tokenFor() }))?.source).toBe('cookie');
  });

  it('never passes over a ticket', () => {
    expect(find(requestWith({ ticket: 'or-key-123' }))?.source).toBe('ticket');
  });

  it('knows a JWT by its header', () => {
    expect(looksLikeJwt(tokenFor())).toBe(true);
    expect(looksLikeJwt('W10.e30.x')).toBe(false); // a list
    expect(looksLikeJwt('bnVsbA.e30.x')).toBe(false); // null
  });
});
