import { type ApiPart, json, object, type SecurityRequirement, text, time } from '../ops/openapi.ts';
import { refusals, tokenRefusals } from '../ops/refusals.ts';
import { SESSION_COOKIE } from './credentials.ts';

const IN_HEADERS: readonly SecurityRequirement[] = [{ bearer: [] }, { xApiKey: [] }, { apikey: [] }];

/** Where a token may stand. */
export const TOKEN: readonly SecurityRequirement[] = [...IN_HEADERS, { queryToken: [] }, { session: [] }];

/** The same for what a ticket opens too: it can only be used to read. */
export const TOKEN_OR_TICKET: readonly SecurityRequirement[] = [...TOKEN, { ticket: [] }];

const COOKIE = { description: `The cookie \`${SESSION_COOKIE}\`, HttpOnly.`, schema: { type: 'string' } } as const;

export const authPart: ApiPart = {
  tag: { name: 'auth', description: 'Tickets and sessions for browsers, whose EventSource cannot send headers.' },
  paths: {
    '/auth/ticket': {
      post: {
        operationId: 'issueTicket',
        summary: 'A URL that opens one stream without a token',
        description:
          'The ticket opens that one URL (`lastEventId` apart), first within 30 s, then again until the token ends. A body is read as JSON whatever its Content-Type says.',
        security: TOKEN,
        requestBody: {
          required: true,
          content: json(
            object({
              url: text('A path with its query, or a whole http(s) URL; without a token in it.', {
                minLength: 1,
                maxLength: 4_096,
                pattern: '^(/(?!/)|[Hh][Tt][Tt][Pp][Ss]?://)',
              }),
            }),
            { url: '/events?channels=content.published' },
          ),
        },
        responses: {
          '201': {
            description: 'The ticket.',
            content: json(
              object({
                ticket: text('To be sent as `?ticket=`.'),
                url: text('What was asked for, with the ticket in it.'),
                expiresAt: time('When the token ends that it was issued for.'),
              }),
              {
                ticket: 't1.eyJ1Ijoi.c2lnbmVk',
                url: '/events?channels=content.published&ticket=t1.eyJ1Ijoi.c2lnbmVk',
                expiresAt: '2030-01-01T12:00:00.000Z',
              },
            ),
          },
          ...tokenRefusals(400, 413),
        },
      },
    },
    '/auth/session': {
      post: {
        operationId: 'openSession',
        summary: 'Turn a token into a session cookie',
        description: 'The token must stand in a header, which no page of another site can make a browser send.',
        security: IN_HEADERS,
        responses: {
          '201': {
            description: 'The cookie is set.',
            headers: { 'Set-Cookie': COOKIE },
            content: json(object({ sub: text('Whose token it is.'), expiresAt: time('When the token ends.') }), {
              sub: 'ann',
              expiresAt: '2030-01-01T12:00:00.000Z',
            }),
          },
          ...tokenRefusals(400),
        },
      },
      delete: {
        operationId: 'closeSession',
        summary: 'Sign out',
        description: 'Needs no token: a cookie that has expired must go away as well.',
        security: [],
        responses: {
          '204': { description: 'The cookie is gone.', headers: { 'Set-Cookie': COOKIE } },
          ...refusals(403, 500),
        },
      },
    },
  },
  components: {
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'JWT',
        description:
          'Of all the places where a token may stand only the first one that is used is judged: this one, then in the order of this list.',
      },
      xApiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The same JWT.' },
      apikey: { type: 'apiKey', in: 'header', name: 'apikey', description: 'The same JWT.' },
      queryToken: { type: 'apiKey', in: 'query', name: 'token', description: 'The same JWT. A ticket is better.' },
      ticket: {
        type: 'apiKey',
        in: 'query',
        name: 'ticket',
        description: 'Of `POST /auth/ticket`, or in a `streamUrl`.',
      },
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: SESSION_COOKIE,
        description: 'Of `POST /auth/session`. What is not GET or HEAD must come from a page of a trusted origin.',
      },
    },
  },
};
