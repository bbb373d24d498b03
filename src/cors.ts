import cors from 'cors';
import type { RequestHandler } from 'express';

const ALLOWED = new Set(
  [
    'Authorization',
    'apikey',
    'X-API-Key',
    'X-Session-ID',
    'X-Secrets',
    'Content-Type',
    'X-Requested-With',
    'Last-Event-ID',
    'Idempotency-Key',
    'X-Correlation-ID',
    'traceparent',
  ].map((name) => name.toLowerCase()),
);
/** The OpenAI SDK sends headers of its own, ever new ones. */
const ALLOWED_PREFIXES = ['openai-', 'x-stainless-'];

const isAllowed = (name: string): boolean =>
  ALLOWED.has(name.toLowerCase()) || ALLOWED_PREFIXES.some((prefix) => name.toLowerCase().startsWith(prefix));

/** One list of origins for all routes; pages of those may send cookies too. */
export const corsFor = (origins: readonly string[]): RequestHandler => {
  if (origins.length === 0) return (_req, _res, next) => next();
  return cors<Parameters<RequestHandler>[0]>((req, callback) => {
    const asked = req.get('Access-Control-Request-Headers')?.split(/\s*,\s*/) ?? [];
    callback(null, {
      origin: [...origins],
      credentials: true,
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      allowedHeaders: asked.filter(isAllowed),
      exposedHeaders: ['Retry-After', 'X-Request-Id', 'X-Sluice-Warning'],
      maxAge: 600,
    });
  });
};
