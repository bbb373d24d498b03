import { createHmac, generateKeyPairSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { mintToken } from '../src/auth/token.ts';
import { handmade, signedBy } from './auth/fixtures.ts';
import { eventually } from './streams/logs.ts';
import { type RunningGateway, SECRET, startGateway, tokenFor } from './support/gateway.ts';
import { type RawAnswer, type RawRequest, rawRequest } from './support/raw-request.ts';
import { RawStream } from './support/raw-stream.ts';

/** How each group of routes writes that something went wrong; `bare` is node's own answer to what is not HTTP. */
const SHAPES = {
  ossa: (code: string, says: unknown) => ({ code, message: says }),
  api: (code: string, says: unknown) => ({ error: says, code }),
  openai: (code: string, says: unknown) => ({
    error: { message: says, type: 'invalid_request_error', param: null, code: code.toLowerCase() },
  }),
  ors: (_: string, says: unknown) => ({ detail: says }),
  bare: () => undefined,
} as const;
type ShapeName = keyof typeof SHAPES;

/** What is sent; as a function when it is only known once the gateway runs. */
type Sent = RawRequest | (() => RawRequest);
type Row = readonly [what: string, sent: Sent, status: number, code: string, says: string, shape?: ShapeName];

const OWN = 'https://app.example';
const me = { sub: 'me', channels: { subscribe: ['mine.#'], publish: ['mine.#'] }, agents: ['agent://team/me'] };
const good = tokenFor({ sub: 'me', subscribe: ['mine.#'], publish: ['mine.#'], agents: ['agent://team/me'] });
const bearer = { Authorization: `Bearer ${good}` };
const plain = { Authorization: `Bearer ${tokenFor()}` };
const far = Math.floor(Date.now() / 1_000) + 600;

const get = (path: string, headers: Readonly<Record<string, string>> = {}): RawRequest => ({ path, headers });
const follow = (channels: string): RawRequest => get(`/events?channels=${channels}`, bearer);
const post = (body: unknown, headers: Readonly<Record<string, string>> = {}): RawRequest => ({
  method: 'POST',
  path: '/events',
  headers: { ...bearer, ...headers },
  body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
});
const event = (more: object = {}): object => ({ channel: 'mine.a', data: 1, ...more });
const on = (channel: unknown): RawRequest => post({ channel, data: 1 });
const keyed = (key: string): RawRequest => post(event(), { 'Idempotency-Key': key });
const nested = (open: string, close: string, times: number): string =>
  `{"channel":"mine.a","data":${open.repeat(times)}1${close.repeat(times)}}`;

const GRAMMAR = 'Not the name of a channel';
const PATTERN = 'is neither a channel nor a pattern';

// biome-ignore format: one row per line
const bodies: readonly Row[] = [
  ['JSON that breaks off', post('{"channel":'), 400, 'PROTOCOL_ERROR', 'The body is not JSON'],
  ['text that is not JSON', post('channel=mine.a&data=1'), 400, 'PROTOCOL_ERROR', 'The body is not JSON'],
  ['JSON with a comma too many', post('{"channel":"mine.a","data":1,}'), 400, 'PROTOCOL_ERROR', 'The body is not JSON'],
  ['an empty body', post(''), 400, 'PROTOCOL_ERROR', 'it is empty'],
  ['an empty body in chunks', post('0\r\n\r\n', { 'Transfer-Encoding': 'chunked' }), 400, 'PROTOCOL_ERROR', 'it is empty'],
  ['two ends of one body, as smugglers send them', post('0\r\n\r\n', { 'Transfer-Encoding': 'chunked', 'Content-Length': '5' }), 400, '', '', 'bare'],
  ['no body', { method: 'POST', path: '/events', headers: bearer }, 400, 'PROTOCOL_ERROR', 'has no body'],
  ['bytes that are not UTF-8', post(Buffer.from('{"channel":"mine.a","data":"\xff"}', 'latin1')), 400, 'PROTOCOL_ERROR', 'it is not UTF-8'],
  ['null', post('null'), 400, 'PROTOCOL_ERROR', 'The body must be an event'],
  ['a number', post('1'), 400, 'PROTOCOL_ERROR', 'The body must be an event'],
  ['a string', post('"mine.a"'), 400, 'PROTOCOL_ERROR', 'The body must be an event'],
  ['an empty object', post({}), 400, 'PROTOCOL_ERROR', '/channel is missing.'],
  ['an event without data', post({ channel: 'mine.a' }), 400, 'PROTOCOL_ERROR', '/data is missing.'],
  ['an unknown field', post(event({ dat: 1 })), 400, 'PROTOCOL_ERROR', '/dat is not a field of an event.'],
  ['a field __proto__', post('{"channel":"mine.a","data":1,"__proto__":{}}'), 400, 'PROTOCOL_ERROR', '/__proto__ is not'],
  ['an id of its own', post(event({ id: 'msg-1' })), 400, 'PROTOCOL_ERROR', '/id is not a field of an event.'],
  ['an empty list', post([]), 400, 'PROTOCOL_ERROR', 'The list holds no event.'],
  ['a list of lists', post([[event()]]), 400, 'PROTOCOL_ERROR', '/0 must be an event'],
  ['a list whose last one is wrong', post([event(), event({ type: 'x' })]), 400, 'PROTOCOL_ERROR', '/1/type must be one of message, status'],
  ['a list whose last one is not permitted', post([event(), { channel: 'other', data: 1 }]), 403, 'FORBIDDEN', ': other.'],
  ['a list whose last one is too large', post([event(), event({ data: 'x'.repeat(65_536) })]), 413, 'PAYLOAD_TOO_LARGE', 'may have 65536 bytes'],
  ['1001 events', post(Array.from({ length: 1_001 }, () => event())), 413, 'PAYLOAD_TOO_LARGE', '1000 events, not 1001'],
  ['an event that is too large', post(event({ data: 'x'.repeat(65_536) })), 413, 'PAYLOAD_TOO_LARGE', 'may have 65536 bytes'],
  ['a body that is too large', () => post(Buffer.alloc(8 * 1024 * 1024 + 1, ' ')), 413, 'PAYLOAD_TOO_LARGE', 'The body is too large.'],
  ['a body that is too large once unpacked', () => post(gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')), { 'Content-Encoding': 'gzip' }), 413, 'PAYLOAD_TOO_LARGE', 'The body is too large.'],
  ['a body that is not gzip and says so', post('{}', { 'Content-Encoding': 'gzip' }), 400, 'PROTOCOL_ERROR', 'not what its Content-Encoding says'],
  ['gzip that breaks off', () => post(gzipSync(JSON.stringify(event())).subarray(0, -10), { 'Content-Encoding': 'gzip' }), 400, 'PROTOCOL_ERROR', 'not what its Content-Encoding says'],
  ['an encoding nobody knows', post('{}', { 'Content-Encoding': 'lzma' }), 400, 'PROTOCOL_ERROR', 'unsupported content encoding "lzma"'],
  ['a charset nobody knows', post('{}', { 'Content-Type': 'application/json; charset=latin1' }), 400, 'PROTOCOL_ERROR', 'unsupported charset'],
  ['lists nested 30,000 deep', post(nested('[', ']', 30_000)), 400, 'PROTOCOL_ERROR', '/data is nested too deeply.'],
  ['objects nested 10,000 deep', post(nested('{"a":', '}', 10_000)), 400, 'PROTOCOL_ERROR', '/data is nested too deeply.'],
];

// biome-ignore format: one row per line
const fields: readonly Row[] = [
  ...[1, null, true, {}, ['mine.a']].map((channel): Row => [`the channel ${JSON.stringify(channel)}`, on(channel), 400, 'PROTOCOL_ERROR', '/channel must be a string']),
  ...['', ' ', 'a b', 'mine.a\r\nevent: x', 'mine.a\n', 'mine.a\0', '.a', 'a.', 'a..b', '.', 'mine.é', 'mine.😀', 'mine.*', 'mine.#', '#', 'a/b', 'a@b', 'a,b'].map(
    (channel): Row => [`the channel ${JSON.stringify(channel)}`, on(channel), 400, 'PROTOCOL_ERROR', `${GRAMMAR} (segments of letters, digits, "_" and "-" joined by dots): ${JSON.stringify(channel)}.`],
  ),
  ['a channel of 256 bytes', on(`mine.${'a'.repeat(251)}`), 400, 'PROTOCOL_ERROR', '/channel must be a string of at most 255'],
  ...['gateway.x', 'runs.x', 'workflows.x', 'ors.x', 'responses.x', 'gateway', 'runs.a.b'].map((channel): Row => [`the reserved channel ${channel}, though the token may publish everywhere`, { ...on(channel), headers: plain }, 403, 'FORBIDDEN', `Only the gateway itself publishes here: ${channel}.`]),
  ['channels that are not granted', post([event(), { channel: 'b', data: 1 }, { channel: 'c.d', data: 1 }]), 403, 'FORBIDDEN', 'does not let you publish here: b, c.d.'],
  ['the parent of what is granted', on('mine'), 403, 'FORBIDDEN', 'does not let you publish here: mine.'],
  ['an agent that is not granted', post(event({ agentId: 'agent://team/you' })), 403, 'FORBIDDEN', 'speak for agent://team/you.'],
  ...['me', '', 'agent://', 'agent://a b', 'agent://a\nb', `agent://${'a'.repeat(512)}`, 7, null].map((agentId): Row => [`the agentId ${JSON.stringify(agentId).slice(0, 30)}`, post(event({ agentId })), 400, 'PROTOCOL_ERROR', '/agentId must be a URI']),
  ...['', 'Message', 'resync', 'connected', 'message\nid: 1', 1, null, ['message']].map((type): Row => [`the type ${JSON.stringify(type)}`, post(event({ type })), 400, 'PROTOCOL_ERROR', '/type must be one of message, status, capability_response, error.']),
  ...['', 'a\nb', 'a\0', 'x'.repeat(513), 1, null, {}].map((correlationId): Row => [`the correlationId ${JSON.stringify(correlationId).slice(0, 30)}`, post(event({ correlationId })), 400, 'PROTOCOL_ERROR', '/correlationId must be a string of 1 to 512 characters']),
  ...['', 'x'.repeat(256), 'clé', 'a b', 'a\tb'].map((key): Row => [`the Idempotency-Key ${JSON.stringify(key).slice(0, 30)}`, keyed(key), 400, 'PROTOCOL_ERROR', 'An Idempotency-Key has 1 to 255 visible ASCII characters.']),
  ['an Idempotency-Key that was used for another event', keyed('used'), 409, 'CONFLICT', 'The idempotency key was used for other events.'],
];

// biome-ignore format: one row per line
const following: readonly Row[] = [
  ['no channels', get('/events', bearer), 400, 'PROTOCOL_ERROR', 'Name the channels to follow'],
  ['a misspelt parameter', get('/events?channel=mine.a', bearer), 400, 'PROTOCOL_ERROR', 'Name the channels to follow'],
  ['empty channels, as a browser sends channels=#', follow(''), 400, 'PROTOCOL_ERROR', 'In a URL "#" is written "%23" or "**".'],
  ...['a..b', 'mine.', '.a', 'a,,b', 'a,', ','].map((text): Row => [`the empty segment in ${text}`, follow(text), 400, 'PROTOCOL_ERROR', 'It has an empty segment. In a URL "#" is written "%23" or "**".']),
  ...['%23.a', 'a.%23.b', '**.a', 'a.**.b'].map((text): Row => [`${text}, where "#" is not the last segment`, follow(text), 400, 'PROTOCOL_ERROR', '"#" can only be the last segment.']),
  ...['a%20b', 'a+b', 'mine.a%0d%0aid:%201', 'mine.a%0A', 'mine.a%00', 'mine.%C3%A9', '%ff', 'mine.%zz', 'mine.a*', '***', 'a'.repeat(256)].map((text): Row => [`the channel ${text.slice(0, 30)}`, follow(text), 400, 'PROTOCOL_ERROR', PATTERN]),
  ['501 channels', follow(Array.from({ length: 501 }, (_, i) => `mine.${i}`).join()), 400, 'PROTOCOL_ERROR', 'may follow 500 channels, not 501'],
  ['channels that are not granted', follow('mine.a,yours.a,yours.b'), 403, 'FORBIDDEN', 'does not let you follow yours.a, yours.b.'],
  ['a channel that is not granted behind one that is, in two parameters', get('/events?channels=mine.a&channels=yours', bearer), 403, 'FORBIDDEN', 'follow yours.'],
  ['a token without a claim for channels', get('/events?channels=a', { Authorization: `Bearer ${mintToken(SECRET, { sub: 'x' }, 60)}` }), 403, 'FORBIDDEN', 'follow a.'],
];

/** Where a token may stand. */
const SOURCES: Readonly<Record<string, (token: string) => RawRequest>> = {
  Authorization: (token) => get('/events?channels=mine.a', { Authorization: `Bearer ${token}` }),
  'X-API-Key': (token) => get('/events?channels=mine.a', { 'X-API-Key': token }),
  apikey: (token) => get('/events?channels=mine.a', { apikey: token }),
  '?token=': (token) => get(`/events?channels=mine.a&token=${token}`),
  'the cookie': (token) => get('/events?channels=mine.a', { Cookie: `session=${token}` }),
};

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const hs256 = (claims: object, header: object = { alg: 'HS256', typ: 'JWT' }): string =>
  handmade(header, claims, (input) => createHmac('sha256', SECRET).update(input).digest());

// biome-ignore format: one row per line
const BAD_TOKENS: readonly (readonly [what: string, token: string, says: string])[] = [
  ['a token that is no JWT', 'secret', 'The token is not a JWT.'],
  ['a token of three wrong parts', 'a.b.c', 'The token is not a JWT.'],
  ['an expired token', mintToken(SECRET, me, 60, () => Date.now() - 120_000), 'The token has expired.'],
  ['a token with another key', mintToken('another secret that is long enough too', me, 60), 'The signature is wrong.'],
  ['a token with a damaged signature', `${good.slice(0, -3)}${good.endsWith('AAA') ? 'BBB' : 'AAA'}`, 'The signature is wrong.'],
  ['a token without a signature', `${good.split('.', 2).join('.')}.`, 'The token cannot be verified.'],
  ['the algorithm none', handmade({ alg: 'none' }, { ...me, exp: far }, () => Buffer.alloc(0)), 'not signed with one of HS256, RS256, ES256'],
  ['the algorithm HS512', hs256({ ...me, exp: far }, { alg: 'HS512' }), 'not signed with one of'],
  ['an algorithm for which there is no key', signedBy(privateKey, { alg: 'ES256' }), 'signed with an unknown key'],
  ['a critical extension', hs256({ ...me, exp: far }, { alg: 'HS256', crit: ['b64'] }), 'The token has critical extensions.'],
  ['a token that never expires', hs256(me), 'The claim "exp" must be a time in seconds.'],
  ['a token of the future', hs256({ ...me, exp: far, nbf: far }), 'The token is not valid yet.'],
  ['a token of nobody', hs256({ exp: far }), 'The claim "sub" must be a string'],
  ['a channel claim that is not understood', hs256({ ...me, exp: far, channels: { subscribe: ['#.a'] } }), '"channels.subscribe[0]" is not a channel pattern.'],
];

// biome-ignore format: one row per line
const tokens: readonly Row[] = [
  ['no token, to follow', get('/events?channels=mine.a'), 401, 'AUTH_FAILED', 'The request carries no token.'],
  ['no token, to publish', { ...post(event()), headers: {} }, 401, 'AUTH_FAILED', 'The request carries no token.'],
  ['no token, before anything else is looked at', { method: 'POST', path: '/events', body: '{' }, 401, 'AUTH_FAILED', 'no token'],
  ...Object.entries(SOURCES).flatMap(([source, sent]) => BAD_TOKENS.map(([what, token, says]): Row => [`${what} in ${source}`, sent(token), 401, 'AUTH_FAILED', says])),
  ...['', 'Bearer', 'Bearer  ', 'Basic bWU6bWU=', good, `Bearer ${good} ${good}`, `Bearer ${good},x`, 'Bearer ké'].map((text): Row => [`Authorization: ${text.slice(0, 12)}`, get('/events?channels=mine.a', { Authorization: text }), 401, 'AUTH_FAILED', 'The Authorization header is not "Bearer <token>".']),
  ['an empty X-API-Key', get('/events?channels=mine.a', { 'X-API-Key': '' }), 401, 'AUTH_FAILED', 'The X-API-Key header does not hold one token.'],
  ['an empty apikey', get('/events?channels=mine.a', { apikey: '' }), 401, 'AUTH_FAILED', 'The apikey header does not hold one token.'],
  ['an empty ?token=', get('/events?channels=mine.a&token='), 401, 'AUTH_FAILED', 'The parameter "token" does not hold one token.'],
  ['two ?token=', get(`/events?channels=mine.a&token=${good}&token=${good}`), 401, 'AUTH_FAILED', 'The parameter "token" does not hold one token.'],
  ['an empty cookie', get('/events?channels=mine.a', { Cookie: 'session=' }), 401, 'AUTH_FAILED', 'The session cookie does not hold one token.'],
  // Only the first one that is there counts: a bad one is never passed over for a good one behind it.
  ['a bad Authorization before a good X-API-Key', get('/events?channels=mine.a', { Authorization: 'Bearer x', 'X-API-Key': good }), 401, 'AUTH_FAILED', 'not a JWT'],
  ['an empty Authorization before a good cookie', get('/events?channels=mine.a', { Authorization: '', Cookie: `session=${good}` }), 401, 'AUTH_FAILED', 'The Authorization header'],
  ['a bad X-API-Key before a good apikey', get('/events?channels=mine.a', { 'X-API-Key': 'x', apikey: good }), 401, 'AUTH_FAILED', 'not a JWT'],
  ['a bad apikey before a good ?token=', get(`/events?channels=mine.a&token=${good}`, { apikey: 'x' }), 401, 'AUTH_FAILED', 'not a JWT'],
  ['a bad ?token= before a good cookie', get('/events?channels=mine.a&token=x', { Cookie: `session=${good}` }), 401, 'AUTH_FAILED', 'not a JWT'],
  ['/metrics without a token', get('/metrics'), 401, 'AUTH_FAILED', 'no token'],
  ['/metrics with a bad token', get('/metrics?token=x'), 401, 'AUTH_FAILED', 'not a JWT'],
  ['/metrics without the scope', get('/metrics', bearer), 403, 'FORBIDDEN', 'This needs the scope admin.'],
];

/** Tickets of the running gateway. */
const issued = { ticket: '', url: '' };
const ask = (body: unknown, headers: Readonly<Record<string, string>> = bearer): RawRequest => ({
  method: 'POST',
  path: '/auth/ticket',
  headers,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const cookie = { Cookie: `session=${good}` };
const csrf = 'must come from a page of a trusted origin';

// biome-ignore format: one row per line
const tickets: readonly Row[] = [
  ['a ticket on another URL', () => get(`/events?channels=mine.b&ticket=${issued.ticket}`), 401, 'AUTH_FAILED', 'The ticket is for another URL.'],
  ['a ticket with one more parameter', () => get(`${issued.url}&x=1`), 401, 'AUTH_FAILED', 'The ticket is for another URL.'],
  ['a ticket with one more channel', () => get(`${issued.url}&channels=mine.b`), 401, 'AUTH_FAILED', 'The ticket is for another URL.'],
  ['a ticket with a bare "#" behind it', () => get(`${issued.url}#x`), 401, 'AUTH_FAILED', 'ticket'],
  ['a ticket on another path', () => get(`/metrics?channels=mine.a&ticket=${issued.ticket}`), 401, 'AUTH_FAILED', 'The ticket is for another URL.'],
  ['a ticket to publish', () => ({ ...post(event()), path: issued.url, headers: {} }), 401, 'AUTH_FAILED', 'A ticket can only be used with GET or HEAD.'],
  ['a ticket to get a ticket', () => ({ ...ask({ url: '/events' }), path: `/auth/ticket?ticket=${issued.ticket}`, headers: {} }), 401, 'AUTH_FAILED', 'A ticket can only be used with GET or HEAD.'],
  ['a ticket as a token', () => get('/events?channels=mine.a', { Authorization: `Bearer ${issued.ticket}` }), 401, 'AUTH_FAILED', 'not a JWT'],
  ['a token as a ticket', get(`/events?channels=mine.a&ticket=${good}`), 401, 'AUTH_FAILED', 'The ticket was not issued by this gateway.'],
  ['a damaged ticket', () => get(`/events?channels=mine.a&ticket=${issued.ticket.replace(/^(t1\..{20})./, '$1_')}`), 401, 'AUTH_FAILED', 'The ticket was not issued by this gateway.'],
  ['an empty ticket', get('/events?channels=mine.a&ticket='), 401, 'AUTH_FAILED', 'The parameter "ticket" does not hold one token.'],
  ['two tickets', () => get(`${issued.url}&ticket=${issued.ticket}`), 401, 'AUTH_FAILED', 'The parameter "ticket" does not hold one token.'],
  ['a good ticket behind a bad token', () => get(`${issued.url}&token=x`), 401, 'AUTH_FAILED', 'not a JWT'],
  ['to give a ticket to a stranger', ask({ url: '/events' }, {}), 401, 'AUTH_FAILED', 'no token'],
  ['to give a ticket for nothing', ask(''), 400, 'PROTOCOL_ERROR', '"url" must be a string that is not empty.'],
  ['to give a ticket for a number', ask({ url: 1 }), 400, 'PROTOCOL_ERROR', '"url" must be a string'],
  ['to give a ticket for a bad body', ask('{'), 400, 'PROTOCOL_ERROR', 'The body is not JSON that can be read.'],
  ['to give a ticket for a large body', ask(' '.repeat(65_537)), 413, 'PAYLOAD_TOO_LARGE', 'larger than 65536 bytes'],
  ['to give a ticket for a long URL', ask({ url: `/${'a'.repeat(4_096)}` }), 400, 'PROTOCOL_ERROR', 'longer than 4096 characters'],
  ['to give a ticket for a URL with "#"', ask({ url: '/events?channels=#' }), 400, 'PROTOCOL_ERROR', 'write it as %23'],
  ['to give a ticket for a URL with a line end', ask({ url: '/events\r\nX: y' }), 400, 'PROTOCOL_ERROR', 'a control character'],
  ['to give a ticket for a URL with a token', ask({ url: '/events?token=x' }), 400, 'PROTOCOL_ERROR', 'must not carry a token'],
  ['to give a ticket for another scheme', ask({ url: 'file:///etc' }), 400, 'PROTOCOL_ERROR', 'must start with "/" or with http(s)://'],
  ['to publish with the cookie alone', { ...post(event()), headers: cookie }, 403, 'FORBIDDEN', csrf],
  ...[{ Origin: 'https://evil.example' }, { Origin: 'null' }, { Origin: 'http://127.0.0.1.evil.example' }, { Origin: `${OWN}.evil.example` }, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }, { 'Sec-Fetch-Site': 'none' }, { Referer: `${OWN}/` }].map(
    (headers): Row => [`to publish with the cookie and ${JSON.stringify(headers)}`, { ...post(event()), headers: { ...cookie, ...headers } }, 403, 'FORBIDDEN', csrf],
  ),
  ['to give a ticket for the cookie of a page elsewhere', ask({ url: '/events' }, { ...cookie, Origin: 'https://evil.example' }), 403, 'FORBIDDEN', csrf],
  ['to sign somebody out from elsewhere', { method: 'DELETE', path: '/auth/session', headers: { ...cookie, Origin: 'https://evil.example' } }, 403, 'FORBIDDEN', csrf],
  ['to open a session for a stranger', { method: 'POST', path: '/auth/session' }, 401, 'AUTH_FAILED', 'no token'],
  ['to open a session with a URL', { method: 'POST', path: `/auth/session?token=${good}` }, 401, 'AUTH_FAILED', 'in the Authorization header'],
  ['to open a session with a cookie', { method: 'POST', path: '/auth/session', headers: { ...cookie, Origin: OWN } }, 401, 'AUTH_FAILED', 'in the Authorization header'],
];

const missing = (path: string, shape: ShapeName = 'ossa', method = 'GET'): Row => [
  `${method} ${path.slice(0, 40)}`,
  { method, path, headers: plain },
  404,
  'NOT_FOUND',
  `There is no ${method} ${path.split('?', 1)[0]}.`,
  shape,
];

const ORS_GET = ['tools', 'splits', 'task_tools', 'prompt'];
const ORS_POST = ['tasks', 'num_tasks', 'task', 'task_range', 'call'];
const ORS_SUFFIXES = [...ORS_GET, ...ORS_POST];
const ORS_ROOT_GET = ['list_environments', 'version'];
const ORS_ROOT_POST = ['create_session', 'create', 'ping', 'delete', 'delete_session'];
const PREFIXES: Readonly<Record<string, ShapeName>> = {
  '/livez': 'ossa',
  '/readyz': 'ossa',
  '/metrics': 'ossa',
  '/health': 'ossa',
  '/openapi.json': 'ossa',
  '/console': 'ossa',
  '/auth': 'ossa',
  '/api': 'api',
  '/responses': 'openai',
  '/v1': 'openai',
  '/v1/responses': 'openai',
  '/models': 'openai',
  '/events': 'ossa',
  '/agent-status': 'ossa',
  '/channels': 'ossa',
};

/** Routes that end in a name: there is one, but nothing of that name. */
const unknown = (path: string, says: string, method = 'GET', code = 'NOT_FOUND'): Row => [
  `${method} ${path}`,
  { method, path, headers: plain, ...(method === 'POST' && { body: '{}' }) },
  404,
  code,
  says,
  'ossa',
];

// biome-ignore format: one row per line
const routes: readonly Row[] = [
  ...ORS_SUFFIXES.flatMap((name) => [unknown(`/agents/${name}`, `There is no agent "${name}".`), unknown(`/events/stream/${name}`, `There is no stream "${name}".`), unknown(`/capabilities/${name}`, `No agent offers the capability "${name}".`, 'POST', 'CAPABILITY_NOT_FOUND')]),
  ...ORS_SUFFIXES.flatMap((name) => ['/agents', '/events/stream', '/capabilities'].flatMap((prefix) => [missing(`${prefix}/a/b/${name}`), missing(`${prefix}/a/b/${name}`, 'ossa', 'POST')])),
  ...Object.entries(PREFIXES).map(([prefix, shape]) => missing(`${prefix}/x?token=none`, shape)),
  ...['/api', '/API/x', '/v1', '/responses', '/models', '/Models'].map((path) => missing(path, path.toLowerCase().startsWith('/api') ? 'api' : 'openai')),
  ...['/unknown', '/apix', '/v1x', '/eventsx', '/console', '/auth', '/EVENTS?channels=a', '//events', '/events/../auth'].map((path) => missing(path)),
  ...[...ORS_ROOT_GET, ...ORS_GET].flatMap((name) => ['POST', 'PUT', 'DELETE'].map((method) => missing(`/${name}`, 'ors', method))),
  ...[...ORS_ROOT_POST, ...ORS_POST].flatMap((name) => ['GET', 'PUT', 'DELETE'].map((method) => missing(`/${name}`, 'ors', method))),
  ...[...ORS_GET, ...ORS_POST].map((name): Row => [`/${name} without an environment`, { method: ORS_GET.includes(name) ? 'GET' : 'POST', path: `/${name}`, headers: plain }, 404, 'NOT_FOUND', 'This gateway hosts no environments.', 'ors']),
  ...Object.entries(PREFIXES).flatMap(([prefix, shape]) => ORS_SUFFIXES.flatMap((suffix) => [missing(`${prefix}/${suffix}`, shape), missing(`${prefix}/${suffix}/`, shape, 'POST')])).filter(([name]) => name !== 'GET /api/tools'), // that one is a route of its own
  ...['PUT', 'PATCH', 'DELETE'].map((method) => missing('/events', 'ossa', method)),
  ...['/', '/health', '/livez', '/readyz', '/metrics', '/openapi.json'].map((path) => missing(path, 'ossa', 'POST')),
  ...['/auth/ticket', '/auth/session'].map((path) => missing(path)),
  ...['/%zz', '/%E0%A4%A', '/events/%zz', `/${'a'.repeat(8_000)}`].map((path) => missing(path)),
  missing('/api/%zz', 'api'),
  missing('/v1/%zz', 'openai'),
  missing('/tools/%zz', 'ors'),
  ['a URL of more than 64 KiB', get(`/events?channels=${'a'.repeat(66_000)}`, bearer), 431, '', '', 'bare'],
  ['a path with a space', get('/ev ents', bearer), 400, '', '', 'bare'],
  ['a path with a NUL', get('/\0', bearer), 400, '', '', 'bare'],
  ['a path without a slash', get('events', bearer), 400, '', '', 'bare'],
  ['a method nobody knows', { method: 'PUBLISH', path: '/events', headers: bearer }, 400, '', '', 'bare'],
  ['a header with a NUL', get('/events?channels=mine.a', { ...bearer, 'Last-Event-ID': 'a\0' }), 400, '', '', 'bare'],
  ['an expectation nobody meets', get('/events?channels=mine.a', { ...bearer, Expect: 'wonders' }), 417, '', '', 'bare'],
];

const TABLE: readonly Row[] = [...bodies, ...fields, ...following, ...tokens, ...tickets, ...routes];

describe('a bad request', () => {
  let running: RunningGateway;

  /** Everything that a request could have left behind. */
  const traces = async (): Promise<unknown> => ({
    stored: [...(await running.gateway.log.index(0)).last],
    followers: running.gateway.hub.stats().followers,
    streams: await running.gateway.metrics.registry.getSingleMetricAsString('sluice_connections'),
    published: await running.gateway.metrics.registry.getSingleMetricAsString('sluice_events_published_total'),
  });

  const send = (sent: Sent): Promise<RawAnswer> => rawRequest(running.port, typeof sent === 'function' ? sent() : sent);

  beforeAll(async () => {
    running = await startGateway({ SLUICE_METRICS_PUBLIC: 'false', SLUICE_CORS_ORIGINS: OWN });
    expect((await send(post(event({ data: 'another' }), { 'Idempotency-Key': 'used' }))).status).toBe(201);
    Object.assign(issued, (await send(ask({ url: '/events?channels=mine.a' }))).json);
  });

  it.each(TABLE.map((row) => [row[0], row] as const))('is refused, and nothing changes: %s', async (_what, row) => {
    const [, sent, status, code, says, shape = 'ossa'] = row;
    const before = await traces();
    const answer = await send(sent);
    const { details: _details, ...body } = (answer.json ?? {}) as Record<string, unknown>;
    const wanted = SHAPES[shape](code, expect.stringContaining(says));
    expect({ status: answer.status, body: answer.json === undefined ? undefined : body }).toEqual({
      status,
      body: wanted,
    });
    if (shape !== 'bare') {
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
    }
    expect(answer.headers['www-authenticate']?.startsWith('Bearer realm="sluice"')).toBe(status === 401 || undefined);
    expect(answer.text).not.toContain(good);
    expect(await traces()).toEqual(before);
  });

  it('is one of many kinds', () => {
    expect(TABLE.length).toBeGreaterThan(500);
    expect(new Set(TABLE.map(([what]) => what)).size).toBeGreaterThan(TABLE.length - 20);
  });

  it('is told to programs too, where it is wrong and which channels are meant', async () => {
    const details = async (sent: RawRequest): Promise<unknown> =>
      ((await send(sent)).json as { details?: unknown }).details;
    expect(await details(post([event(), event({ type: 'x' })]))).toEqual({ path: '/1/type' });
    expect(await details(post({ channel: 'mine.a' }))).toEqual({ path: '/data' });
    expect(await details(on('a "b"'))).toEqual({ channels: ['a "b"'] });
    expect(await details(on('yours.a'))).toEqual({ channels: ['yours.a'] });
    expect(await details(follow('yours.a,mine.a'))).toEqual({ channels: ['yours.a'] });
  });

  it('of a page that no list names gets no leave from CORS, before it or with it', async () => {
    const Origin = 'https://evil.example';
    const asked = {
      Origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization',
    };
    const preflight = await send({ method: 'OPTIONS', path: '/events', headers: asked });
    const request = await send(get('/health', { Origin }));
    for (const { headers } of [preflight, request]) {
      expect(headers['access-control-allow-origin']).toBeUndefined();
      expect(headers.vary).toContain('Origin');
    }
    const listed = await send({ method: 'OPTIONS', path: '/events', headers: { ...asked, Origin: OWN } });
    expect(listed.headers['access-control-allow-origin']).toBe(OWN);
  });

  it('is refused where channels need a manifest that declares them', async () => {
    const strict = await startGateway({ SLUICE_CHANNELS_ALLOW_UNDECLARED: 'false' });
    const answer = await rawRequest(strict.port, post(event()));
    expect(answer).toMatchObject({ status: 403, json: { code: 'FORBIDDEN', details: { channels: ['mine.a'] } } });
    expect([...(await strict.gateway.log.index(0)).last]).toEqual([]);
  });
});

describe('a good request that looks like a bad one', () => {
  const accepted: readonly (readonly [what: string, sent: RawRequest])[] = [
    ['JSON without a Content-Type', post(event())],
    ['JSON that says it is text', post(event(), { 'Content-Type': 'text/plain' })],
    ['JSON in gzip', { ...post(gzipSync(JSON.stringify(event())), { 'Content-Encoding': 'gzip' }) }],
    ['data null', post(event({ data: null }))],
    [
      'line ends, NUL and half a character in the data',
      post('{"channel":"mine.a","data":"\\r\\n\\u0000\\ud800\\u2028"}'),
    ],
    ['the channel mine.__proto__', on('mine.__proto__')],
    ['the channel mine.constructor', on('mine.constructor')],
    ['a channel of 255 bytes', on(`mine.${'a'.repeat(250)}`)],
    ['1000 events', post(Array.from({ length: 1_000 }, () => event()))],
    ['an agent that is granted', post(event({ agentId: 'agent://team/me' }))],
    ['an Idempotency-Key of 255 characters', keyed('~'.repeat(255))],
  ];

  it.each(accepted)('is stored: %s', async (_what, sent) => {
    const running = await startGateway();
    const stream = new RawStream(running.port, '/events?channels=mine.**', bearer);
    await eventually(() => stream.frames.length === 1);
    const { status, json } = await rawRequest(running.port, sent);
    expect(status).toBe(201);
    const { id, ids = [id] } = json as { id?: string; ids?: string[] };
    await eventually(() => stream.events.length === ids.length);
    // Whatever the data holds, the frame has its three lines and the data of one line.
    expect(stream.events.map((frame) => frame.split(/\r|\n/).map((line) => line.split(':', 1)[0]))).toEqual(
      ids.map(() => ['event', 'id', 'data']),
    );
    expect(stream.lastId).toBe(ids.at(-1));
    stream.close();
    await running.stop();
  });
});
