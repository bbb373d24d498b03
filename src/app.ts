import express, { type Express, type RequestHandler, type Router } from 'express';
import { apiShape, errorsAs, notFoundAs, openaiShape, orsShape, ossaShape, type Shape } from './protocols/group.ts';

export interface AppParts {
  readonly trustProxy: readonly string[];
  /** Request ids and the log of requests, CORS: before everything else. */
  readonly before: readonly RequestHandler[];
  readonly ops: Router;
  readonly auth: Router;
  readonly agents: Router;
  readonly ossa: readonly Router[];
  /** Whether manifests have put something of OSSA at a path. */
  readonly isEndpoint: (path: string) => boolean;
  /** Where it is found, and it. Its routes stand at the root unless something else is said, so it comes last of all. */
  readonly ors: { readonly prefix: string; readonly router: Router };
}

const OPS = ['/livez', '/readyz', '/metrics', '/health', '/openapi.json', '/console'];
const RESPONSES = ['/responses', '/v1', '/models'];
const OSSA = ['/events', '/capabilities', '/agent-status', '/agents', '/channels'];

/** How the paths of every group but ORS begin. */
const BEGINNINGS: ReadonlySet<string> = new Set(['/', '/auth', '/api', ...OPS, ...RESPONSES, ...OSSA]);

/** The first segment of a path, as Express compares it. */
const beginningOf = (path: string): string => {
  const end = path.indexOf('/', 1);
  return (end < 0 ? path : path.slice(0, end)).toLowerCase();
};

/** The groups of routes, in their order. Each ends in its own 404, so that no path of one is answered by another. */
export const makeApp = ({ trustProxy, before, ops, auth, agents, ossa, isEndpoint, ors }: AppParts): Express => {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', [...trustProxy]);
  app.set('query parser', false); // parameters are read from the request line, in one way everywhere
  app.use(...before);
  app.use((_, res, next) => {
    res.set('X-Content-Type-Options', 'nosniff');
    next();
  });

  const ahead = express.Router();
  const closed = (paths: readonly string[], shape: Shape): void => {
    ahead.use([...paths], notFoundAs(shape), errorsAs(shape));
  };
  ahead.use(ops);
  ahead.use('/auth', auth, notFoundAs(ossaShape), errorsAs(ossaShape));
  closed(OPS, ossaShape);
  ahead.use('/api', agents, notFoundAs(apiShape), errorsAs(apiShape));
  closed(RESPONSES, openaiShape);
  ahead.use(...ossa);
  closed(OSSA, ossaShape);
  // A call of ORS is none of the business of the groups before it, and there are many: one look instead of all their routes.
  // Not `next('router')` within: Express would put everything behind it off to the next turn of the event loop.
  const look: RequestHandler = (req, res, next) => {
    if (BEGINNINGS.has(beginningOf(req.path)) || isEndpoint(req.path)) ahead(req, res, next);
    else next();
  };
  app.use(Object.assign(look, { stack: ahead.stack })); // so that whoever lists the routes of the app finds these
  app.use(ors.prefix, ors.router);
  if (ors.prefix !== '/') app.use(ors.prefix, notFoundAs(orsShape), errorsAs(orsShape));
  app.use(notFoundAs(ossaShape), errorsAs(ossaShape));
  return app;
};
