import type { ModelError, ModelErrorCode } from './model-error.ts';

export interface HealthReport {
  readonly backend: string;
  /** By the last answer. `unknown`: not asked yet. */
  readonly state: 'unknown' | 'ok' | 'failing';
  /** In milliseconds. */
  readonly lastOkAt?: number;
  readonly lastError?: { readonly code: ModelErrorCode; readonly message: string; readonly at: number };
}

/** These are about the request, or about whoever sent it: the backend is as well as before. */
const NOT_ITS_FAULT: ReadonlySet<ModelErrorCode> = new Set([
  'invalid_request',
  'context_length',
  'content_filter',
  'not_found',
  'too_large',
  'cancelled',
]);

/** How a backend has fared. Nobody asks it only to know that: what it answered last tells. */
export class BackendHealth {
  private readonly backend: string;
  private lastOkAt: number | undefined;
  private lastError: HealthReport['lastError'];
  private failing = false;

  constructor(backend: string) {
    this.backend = backend;
  }

  answered(now: number): void {
    this.failing = false;
    this.lastOkAt = now;
  }

  failed({ code, message }: ModelError, now: number): void {
    if (NOT_ITS_FAULT.has(code)) return;
    this.failing = true;
    this.lastError = { code, message, at: now };
  }

  get report(): HealthReport {
    const { backend, lastOkAt, lastError } = this;
    return {
      backend,
      state: this.failing ? 'failing' : lastOkAt === undefined ? 'unknown' : 'ok',
      ...(lastOkAt !== undefined && { lastOkAt }),
      ...(lastError && { lastError }),
    };
  }
}
