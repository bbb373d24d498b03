import type { Ref } from './openapi.ts';

/** The answers that say no, by status; what is in them is described once, with the shapes of the groups. */
export const REFUSALS = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Gone',
  413: 'TooLarge',
  429: 'TooMany',
  500: 'InternalError',
  503: 'Unavailable',
} as const;
export type RefusalStatus = keyof typeof REFUSALS;

/** Whoever has to show a token can be refused for it, and the keys to check it with can be out of reach. */
const WITH_TOKEN = [401, 403, 500, 503] as const satisfies readonly RefusalStatus[];

const refs = (prefix: string, statuses: readonly RefusalStatus[]): Record<string, Ref> =>
  Object.fromEntries(
    statuses.map((status) => [String(status), { $ref: `#/components/responses/${prefix}${REFUSALS[status]}` }]),
  );

/** Refusals as `{code, message, details?}`. */
export const refusals = (...statuses: readonly RefusalStatus[]): Record<string, Ref> => refs('', statuses);

/** The same of an operation that needs a token. */
export const tokenRefusals = (...more: readonly RefusalStatus[]): Record<string, Ref> =>
  refs('', [...WITH_TOKEN, ...more]);

/** The same as `{error, code}`. */
export const apiTokenRefusals = (...more: readonly RefusalStatus[]): Record<string, Ref> =>
  refs('Api', [...WITH_TOKEN, ...more]);

/** The same as `{detail}`. */
export const orsTokenRefusals = (...more: readonly RefusalStatus[]): Record<string, Ref> =>
  refs('Ors', [...WITH_TOKEN, ...more]);
