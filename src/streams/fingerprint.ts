import { hash } from 'node:crypto';
import type { NewEvent } from './log.ts';

/** Lengths keep ('a','bc') and ('ab','c') apart. */
const sha256 = (...parts: string[]): string =>
  hash('sha256', parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(''), 'base64url');

/** What an idempotency key was used for: equal for equal events in equal order only. */
export const fingerprint = (events: readonly NewEvent[]): string =>
  sha256(...events.flatMap((event) => [event.channel, event.data]));

/** An idempotency key belongs to its principal; hashed, because both come from outside and have any length. */
export const idempotencyName = (principal: string, key: string): string => sha256(principal, key);

export const principalName = (principal: string): string => sha256(principal);
