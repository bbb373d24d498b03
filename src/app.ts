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
  /** Where it is found, and it. Its routes stand at the root unless something else is said, so it comes last of all. */
  readonly ors: { readonly prefix: string; readonly router: Router };
}

/** The groups of routes, in their order. Each ends in its own 404, so that no path of one is answered by another. */
export const makeApp = ({ trustProxy, before, ops, auth, agents, ossa, ors }: AppParts): Express => {
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

  const closed = (paths: readonly string[], shape: Shape): void => {
    app.use([...paths], notFoundAs(shape), errorsAs(shape));
  };
  app.use(ops);
  app.use('/auth', auth, notFoundAs(ossaShape), errorsAs(ossaShape));
  closed(['/livez', '/readyz', '/metrics', '/health', '/openapi.json', '/console'], ossaShape);
  app.use('/api', agents, notFoundAs(apiShape), errorsAs(apiShape));
  closed(['/responses', '/v1', '/models'], openaiShape);
  app.use(...ossa);
  closed(['/events', '/capabilities', '/agent-status', '/agents', '/channels'], ossaShape);
  app.use(ors.prefix, ors.router);
  if (ors.prefix !== '/') closed([ors.prefix], orsShape);
  app.use(notFoundAs(ossaShape), errorsAs(ossaShape));
  return app;
};
