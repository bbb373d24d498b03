import express, { type ErrorRequestHandler, type Request, type Response, type Router } from 'express';
import { AuthError } from './auth-error.ts';
import type { Authenticator, Identity } from './authenticate.ts';
import { parseWantedUrl, type WantedUrl } from './bound-url.ts';
import { type Source, sessionCookieOf } from './credentials.ts';
import type { SessionCookie } from './session.ts';
import type { Tickets } from './tickets.ts';

export interface AuthRoutesOptions {
  readonly authenticator: Authenticator;
  readonly tickets: Tickets;
  readonly cookie: SessionCookie;
  readonly now?: () => number;
}

const BODY_LIMIT = 65_536;

/**
 * A page of another site can make a browser send a URL or a cookie, but not these headers. A session that could be
 * opened without them could be opened for somebody else, who would then work under the attacker's name.
 */
const SESSION_SOURCES: ReadonlySet<Source> = new Set<Source>(['authorization', 'x-api-key', 'apikey']);

const answer = (response: Response, status: number, code: string, message: string): void => {
  response.status(status).json({ code, message });
};

const wantedUrlOf = (body: unknown): WantedUrl | Error => {
  const url = typeof body === 'object' && body !== null && 'url' in body ? body.url : undefined;
  try {
    return parseWantedUrl(url);
  } catch (error) {
    return error as Error;
  }
};

const answerError: ErrorRequestHandler = (error: unknown, _request, response, next) => {
  if (response.headersSent) return next(error);
  if (error instanceof AuthError) {
    response.set(error.headers);
    return answer(response, error.status, error.code, error.message);
  }
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 413) {
    return answer(response, 413, 'PAYLOAD_TOO_LARGE', `The body is larger than ${BODY_LIMIT} bytes.`);
  }
  // The parser quotes the body in its message: it may hold a URL with a secret.
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return answer(response, 400, 'PROTOCOL_ERROR', 'The body is not JSON that can be read.');
  }
  next(error);
};

/** To be mounted at `/auth`. Ends every path below it. */
export const authRoutes = ({ authenticator, tickets, cookie, now = Date.now }: AuthRoutesOptions): Router => {
  const router = express.Router({ caseSensitive: true });
  const json = express.json({ limit: BODY_LIMIT, type: () => true });

  /** Within the clock tolerance a token is still good, but nothing that outlives the request can be made of it. */
  const identify = async (request: Request): Promise<Identity> => {
    const identity = await authenticator.requireIdentity(request);
    if (identity.principal.expiresAt <= now()) throw new AuthError('expired', 'The token has expired.');
    return identity;
  };

  router.use((_request, response, next) => {
    response.set('Cache-Control', 'no-store');
    next();
  });

  router.post(
    '/ticket',
    async (request, response, next) => {
      response.locals.identity = await identify(request); // before the body: strangers are not parsed for
      next();
    },
    json,
    async (request, response) => {
      const { principal } = response.locals.identity as Identity;
      const wanted = wantedUrlOf(request.body);
      if (wanted instanceof Error) return answer(response, 400, 'PROTOCOL_ERROR', wanted.message);
      const { ticket, url, expiresAt } = await tickets.issue(principal, wanted);
      response.status(201).json({ ticket, url, expiresAt: new Date(expiresAt).toISOString() });
    },
  );

  router.post('/session', async (request, response) => {
    const { token, source, principal } = await identify(request);
    if (!SESSION_SOURCES.has(source)) {
      throw new AuthError('malformed', 'A session is opened with the token in the Authorization header.');
    }
    const header = cookie.issue(token, principal.expiresAt, request.secure);
    if (!header) return answer(response, 400, 'PROTOCOL_ERROR', 'The token is too long for a cookie.');
    response.set('Set-Cookie', header);
    response.status(201).json({ sub: principal.sub, expiresAt: new Date(principal.expiresAt).toISOString() });
  });

  /** Needs no token: a cookie that has expired or that is damaged must go away as well. */
  router.delete('/session', (request, response) => {
    if (sessionCookieOf(request.headers) !== undefined) authenticator.checkOrigin(request);
    response.set('Set-Cookie', cookie.clear(request.secure));
    response.status(204).end();
  });

  router.use((request, response) => {
    answer(response, 404, 'NOT_FOUND', `There is no ${request.method} ${request.originalUrl.split('?', 1)[0]}.`);
  });
  router.use(answerError);
  return router;
};
