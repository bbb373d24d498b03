import express, { type Request, type RequestHandler, type Response, type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import { type Environment, MAX_LISTED } from '../../environments/environment.ts';
import { SessionError } from '../../environments/session-error.ts';
import type { Hosted, Sessions, Whereabouts } from '../../environments/sessions.ts';
import { STREAM_HEADERS } from '../../sse/connection.ts';
import { frame } from '../../sse/frame.ts';
import { errorsAs, jsonBody, notFoundAs, orsShape } from '../group.ts';
import { Problem, quoted } from '../problem.ts';
import type { Asks, Question } from './asks.ts';
import { callBody, createBody, rangeBody, splitBody, taskBody } from './bodies.ts';
import { taskFrame } from './call-event.ts';
import { CALL_HEADERS, type Calls } from './calls.ts';
import { orsProblem } from './problems.ts';

export interface OrsOptions {
  readonly authenticator: Authenticator;
  /** Nobody needs a token. */
  readonly open: boolean;
  /** In the order of the settings; the first is the default one. */
  readonly hosted: readonly Hosted[];
  readonly sessions: Sessions;
  readonly asks: Asks;
  readonly calls: Calls;
  readonly checkEnv: boolean;
  readonly version: string;
  readonly buildSha: string;
}

/** Who asks without a token, where none is needed. */
const ANYBODY = '(anybody)';
const BODY_BYTES = 16 * 1024 * 1024;
/** Visible, and short enough for a log line. */
export const SESSION_ID = /^[ -~]{1,255}$/;
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

interface Caller {
  readonly principal: string;
  readonly expiresAt: number;
}

/** What the handlers of one request tell each other. */
interface Locals {
  caller: Caller;
  hosted: Hosted;
  sid: string;
  whereabouts: Whereabouts;
}

const localsOf = (res: Response): Locals => res.locals as Locals;

/** Those that name no environment. */
const ROOT_PATHS = ['list_environments', 'create_session', 'create', 'ping', 'delete', 'delete_session', 'version'];

/** The nine that every environment has, and that also stand alone. */
const ENVIRONMENT_PATHS = {
  get: ['tools', 'splits', 'task_tools', 'prompt'],
  post: ['tasks', 'num_tasks', 'task', 'task_range', 'call'],
} as const;

/** Where a slice of Python would begin and end. */
const clamp = (at: number, count: number): number => Math.min(count, at < 0 ? Math.max(0, count + at) : at);

const sidOf = (req: Request): string => {
  const sid = req.get('X-Session-ID')?.trim() ?? '';
  if (sid === '') throw new Problem('PROTOCOL_ERROR', 'X-Session-ID header is required');
  if (!SESSION_ID.test(sid)) throw new Problem('PROTOCOL_ERROR', 'X-Session-ID has at most 255 visible characters.');
  return sid;
};

const keyOf = (req: Request): string | undefined => {
  const key = req.get('Idempotency-Key');
  if (key === undefined || IDEMPOTENCY_KEY.test(key)) return key;
  throw new Problem('PROTOCOL_ERROR', 'An Idempotency-Key has 1 to 255 visible ASCII characters.');
};

/** Aborted when whoever asked has gone. */
const goneSignal = (res: Response): AbortSignal => {
  const gone = new AbortController();
  res.once('close', () => gone.abort(new Problem('UNAVAILABLE', 'Whoever asked has gone.')));
  return gone.signal;
};

export const orsRoutes = (options: OrsOptions): Router => {
  const { authenticator, hosted, sessions, asks, calls } = options;
  const router = express.Router({ caseSensitive: true });
  const byName = new Map(hosted.map((one) => [one.environment.name, one]));

  const named = (name: string): Hosted => {
    const found = byName.get(name.toLowerCase());
    if (!found) throw new Problem('NOT_FOUND', `unknown environment '${quoted(name).slice(1, -1)}'`);
    return found;
  };
  /** The one that a request means that names none. */
  const preferred = (req: Request): Hosted => {
    const deployed = byName.get(req.get('X-Deployment')?.split('/').at(-1)?.toLowerCase() ?? '');
    const found = deployed ?? hosted[0];
    if (!found) throw new Problem('NOT_FOUND', 'This gateway hosts no environments.');
    return found;
  };

  const admitted: RequestHandler = async (req, res, next) => {
    const principal = options.open
      ? await authenticator.authenticate(req, { ignoreOpaque: true })
      : await authenticator.require(req);
    res.set('Cache-Control', 'no-store'); // the answer to one URL is another one in every session
    if (!options.open && !principal?.scopes.has('ors')) throw new Problem('FORBIDDEN', 'This needs the scope ors.');
    localsOf(res).caller = {
      principal: principal?.sub ?? ANYBODY,
      expiresAt: principal?.expiresAt ?? Number.POSITIVE_INFINITY,
    };
    next();
  };
  const inEnvironment: RequestHandler = (req, res, next) => {
    const { env } = req.params as { env?: string };
    localsOf(res).hosted = env === undefined ? preferred(req) : named(env);
    next();
  };
  const withSid: RequestHandler = (req, res, next) => {
    localsOf(res).sid = sidOf(req);
    next();
  };
  const inSession: RequestHandler = async (req, res, next) => {
    const locals = localsOf(res);
    locals.whereabouts = await sessions.find(locals.caller.principal, locals.sid);
    const { whereabouts } = locals;
    const { env } = req.params as { env?: string };
    const actual = whereabouts.where === 'here' ? whereabouts.session.environment.name : whereabouts.environment;
    if (options.checkEnv && env !== undefined && env.toLowerCase() !== actual) {
      throw new Problem('NOT_FOUND', `This session is one of the environment '${actual}'.`);
    }
    next();
  };
  const body = jsonBody(BODY_BYTES);

  const both = (path: string): string[] => [`/${path}`, `/:env/${path}`];
  const get = (path: string, ...handlers: RequestHandler[]): void => {
    router.get(both(path), admitted, inEnvironment, ...handlers);
  };
  const post = (path: string, ...handlers: RequestHandler[]): void => {
    router.post(both(path), admitted, inEnvironment, ...handlers);
  };
  // Before the others: nothing is asked for nearly as often.
  post('call', withSid, inSession, body, async (req, res) => {
    const { caller, sid, whereabouts } = localsOf(res);
    const { name, input, task_id: taskId } = callBody(req.body);
    const idempotencyKey = keyOf(req);
    const wanted = { ...caller, sid, name, input, ...(idempotencyKey !== undefined && { idempotencyKey }) };
    if (taskId == null) await calls.start(wanted, whereabouts, res);
    else await calls.again(wanted, whereabouts, taskId, res);
  });

  router.get('/list_environments', admitted, (_req, res) => {
    res.json(hosted.map(({ environment }) => environment.name));
  });
  router.get('/version', admitted, (_req, res) => {
    res.json({ version: options.version, build_sha: options.buildSha });
  });
  router.post('/create_session', admitted, async (req, res) => {
    const sid = await sessions.issue(localsOf(res).caller.principal);
    if (!req.get('Accept')?.includes('text/event-stream')) {
      res.json({ sid });
      return;
    }
    res.writeHead(200, STREAM_HEADERS);
    res.write(taskFrame(sid));
    setImmediate(() => res.end(frame({ event: 'end', data: JSON.stringify({ sid }) })));
  });
  router.post('/create', admitted, withSid, body, async (req, res) => {
    const { caller, sid } = localsOf(res);
    const { environment, choice, secrets } = createBody(req.body, req.get('X-Secrets'));
    const one = environment === undefined ? preferred(req) : named(environment);
    await sessions.create(one, { sid, principal: caller.principal, choice, secrets });
    res.set(CALL_HEADERS).json({ sid });
  });
  router.post('/ping', admitted, withSid, inSession, (_req, res) => {
    res.json({ status: 'ok' });
  });
  router.post('/delete', admitted, withSid, async (_req, res) => {
    const { caller, sid } = localsOf(res);
    const { principal } = caller;
    try {
      await ask(res, await sessions.find(principal, sid), 'delete');
    } catch (error) {
      const over = error instanceof SessionError && (error.code === 'gone' || error.code === 'unknown');
      if (!over && !(error instanceof Problem && error.code === 'GONE')) throw error;
      if (!(await sessions.isKnown(principal, sid))) throw error;
      await sessions.local(principal, sid)?.close('deleted'); // it may be under way
    }
    res.json({ sid });
  });
  router.post('/delete_session', admitted, withSid, async (_req, res) => {
    const { caller, sid } = localsOf(res);
    await sessions.drop(caller.principal, sid).catch(() => {}); // whatever becomes of it: there is nothing to be done
    res.json({ sid });
  });

  /** Asks a session, wherever it lives. */
  const ask = (res: Response, whereabouts: Whereabouts, question: Question): Promise<unknown> => {
    if (whereabouts.where === 'here') return asks.here(whereabouts.session, question);
    const { caller, sid } = localsOf(res);
    return asks.elsewhere(whereabouts.owner, { principal: caller.principal, sid, question }, goneSignal(res));
  };
  const asked =
    (question: Question): RequestHandler =>
    async (_req, res) => {
      res.json(await ask(res, localsOf(res).whereabouts, question));
    };

  const discovered =
    (found: (environment: Environment, named: string, body: unknown) => Promise<unknown>): RequestHandler =>
    async (req, res) => {
      const { environment } = localsOf(res).hosted;
      const { env = environment.name } = req.params as { env?: string };
      res.json(await found(environment, env, req.body));
    };

  get(
    'tools',
    discovered(async (environment) => ({ tools: await environment.tools() })),
  );
  get(
    'splits',
    discovered((environment) => environment.splits()),
  );
  post(
    'tasks',
    body,
    discovered(async (environment, env_name, given) => ({
      tasks: await environment.tasks(splitBody(given).split),
      env_name,
    })),
  );
  post(
    'num_tasks',
    body,
    discovered(async (environment, _, given) => ({ num_tasks: await environment.count(splitBody(given).split) })),
  );
  post(
    'task',
    body,
    discovered(async (environment, env_name, given) => {
      const { split, index } = taskBody(given);
      return { task: await environment.task(split, index), env_name };
    }),
  );
  post(
    'task_range',
    body,
    discovered(async (environment, env_name, given) => {
      const { split, start, stop } = rangeBody(given);
      const count = await environment.count(split);
      const first = clamp(start ?? 0, count);
      const last = clamp(stop ?? count, count);
      if (last - first > MAX_LISTED) {
        throw new Problem('PROTOCOL_ERROR', `Ask for at most ${MAX_LISTED} tasks at a time.`);
      }
      return { tasks: first < last ? await environment.range(split, first, last) : [], env_name };
    }),
  );
  get('task_tools', withSid, inSession, asked('tools'));
  get('prompt', withSid, inSession, asked('prompt'));
  const alone = [...ROOT_PATHS, ...ENVIRONMENT_PATHS.get, ...ENVIRONMENT_PATHS.post].map((path) => `/${path}`);
  const missing = notFoundAs(orsShape);
  router.use(alone, missing);
  // Not as a parameter: a path that cannot be decoded is nobody's, and not refused here.
  router.use((req, res, next) => {
    const [, first = ''] = req.path.toLowerCase().split('/', 2);
    if (byName.has(first)) missing(req, res, next);
    else next();
  });

  const errors = errorsAs(orsShape);
  router.use((error: unknown, req: Request, res: Response, next: express.NextFunction) =>
    errors(orsProblem(error), req, res, next),
  );
  return router;
};
