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
}

/** Paths of ORS that name no environment. */
const ORS_PATHS = [
  ...['list_environments', 'create_session', 'create', 'ping', 'delete', 'delete_session', 'version'],
  ...['tools', 'splits', 'task_tools', 'prompt', 'tasks', 'num_tasks', 'task', 'task_range', 'call'],
].map((name) => `/${name}`);

/** The groups of routes, in their order. Each ends in its own 404, so that no path of one is answered by another. */
export const makeApp = ({ trustProxy, before, ops, auth, agents, ossa }: AppParts): Express => {
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
  closed(ORS_PATHS, orsShape);
  app.use(notFoundAs(ossaShape), errorsAs(ossaShape));
  return app;
};
