import { isUtf8 } from 'node:buffer';
import express, { type ErrorRequestHandler, type RequestHandler, type Response } from 'express';
import { Problem, problemOf } from './problem.ts';

/** How a group of routes speaks of what went wrong. */
export type Shape = (problem: Problem) => unknown;

export const ossaShape: Shape = ({ code, message, details }) => ({
  code,
  message,
  ...(details !== undefined && { details }),
});

export const orsShape: Shape = ({ message }) => ({ detail: message });

export const apiShape: Shape = ({ code, message }) => ({ error: message, code });

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

export const openaiShape: Shape = ({ code, status, message }) => ({
  error: {
    message,
    type: OPENAI_TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
    param: null,
    code: code.toLowerCase(),
  },
});

export const sendProblem = (res: Response, shape: Shape, problem: Problem): void => {
  if (res.headersSent) {
    res.destroy(); // a stream has begun: there is no other way left to say it
    return;
  }
  res.status(problem.status).set(problem.headers).set('Cache-Control', 'no-store').json(shape(problem));
};

/** The last of a group's handlers for errors. Four parameters: that is how Express knows it. */
export const errorsAs =
  (shape: Shape): ErrorRequestHandler =>
  (error: unknown, req, res, _next) => {
    const problem = problemOf(error);
    if (problem.status >= 500) req.log?.error({ err: problem.cause ?? problem }, problem.message);
    sendProblem(res, shape, problem);
  };

/** The last of a group's routes: what it does not have is not looked for in the groups behind it. */
export const notFoundAs =
  (shape: Shape): RequestHandler =>
  (req, res) => {
    sendProblem(res, shape, new Problem('NOT_FOUND', `There is no ${req.method} ${req.originalUrl.split('?', 1)[0]}.`));
  };

/** The parser would take an empty body for `{}`, and put other characters in the place of bytes it does not understand. */
const checkBytes = (bytes: Buffer, encoding: string): void => {
  if (bytes.length === 0) throw new Error('it is empty');
  if (encoding === 'utf-8' && !isUtf8(bytes)) throw new Error('it is not UTF-8');
};

/** JSON whatever the Content-Type says: curl and fetch send none, or another one, unless told to. */
export const jsonBody = (limitBytes: number): RequestHandler =>
  express.json({
    type: () => true,
    limit: limitBytes,
    strict: false,
    verify: (_req, _res, bytes, encoding) => checkBytes(bytes, encoding),
  });
