import { setMaxListeners } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { Patience } from '../../models/patience.ts';

export interface ExchangeRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From the beginning to the head of the answer; 0: for ever. */
  readonly headMs: number;
  /** Between two pieces of the answer; 0: for ever. */
  readonly silentMs: number;
  readonly signal: AbortSignal;
  head(status: number, headers: IncomingHttpHeaders): void;
  /** True: all that was wanted has come. */
  data(bytes: Buffer): boolean;
}

/** There is no whole answer, and the upstream has not said why. */
export class Lost extends Error {
  override readonly name = 'Lost';
  /** Whether the upstream may have got the request. If not, it certainly has not. */
  readonly sent: boolean;
  /** It was given up here: the upstream said nothing for too long. */
  readonly silent: boolean;
  constructor(sent: boolean, silent: boolean, cause?: unknown) {
    super(silent ? 'the upstream said nothing for too long' : 'the connection was lost', { cause });
    this.sent = sent;
    this.silent = silent;
  }
}

/** How long an answer of which all is known may take to end, so that its connection can be used again. */
const TAIL_MS = 1_000;

/**
 * One request over a pool. It is dispatched by hand because the pool tells only there in which moment it begins to write:
 * before it, a failure means that nothing has happened. Throws `Lost`, the reason of the signal, or what `head` and
 * `data` throw.
 */
export const exchange = (pool: Dispatcher, request: ExchangeRequest): Promise<void> =>
  new Promise((resolve, reject) => {
    const { origin, method, path, headers, body, headMs, silentMs, signal } = request;
    let controller: Dispatcher.DispatchController | undefined;
    let patience: Patience | undefined;
    let state: 'open' | 'tail' | 'over' = 'open';

    const close = (): void => {
      state = 'over';
      patience?.end();
      signal.removeEventListener('abort', abort);
    };
    const fail = (error: unknown): void => {
      if (state === 'over') return;
      close();
      reject(error as Error);
      controller?.abort(new Error('not wanted any more'));
    };
    const abort = (): void => fail(signal.reason);
    const wait = (ms: number): void => {
      patience?.end();
      patience = ms === 0 ? undefined : new Patience(ms, () => fail(new Lost(controller !== undefined, true)));
    };
    const attempt = (step: () => void): void => {
      try {
        step();
      } catch (error) {
        fail(error);
      }
    };
    if (signal.aborted) return reject(signal.reason as Error);
    setMaxListeners(0, signal); // one signal may well stop a hundred requests
    signal.addEventListener('abort', abort);
    wait(headMs);

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (given) => {
        controller = given;
        if (state === 'over') given.abort(new Error('not wanted any more')); // while it was connecting: is not written
      },
      onResponseStart: (_, status, answered) => {
        if (state !== 'open' || status < 200) return;
        wait(silentMs);
        attempt(() => request.head(status, answered));
      },
      onResponseData: (_, bytes) => {
        if (state !== 'open') return;
        patience?.renew();
        attempt(() => {
          if (!request.data(bytes)) return;
          resolve();
          signal.removeEventListener('abort', abort);
          state = 'tail';
          wait(TAIL_MS);
        });
      },
      onResponseEnd: () => {
        if (state === 'over') return;
        close();
        resolve();
      },
      onResponseError: (_, error) => fail(new Lost(controller !== undefined, false, error)),
    };
    const sent = { origin, method, path, headers: { ...headers }, headersTimeout: 0, bodyTimeout: 0 };
    attempt(() => {
      pool.dispatch({ ...sent, ...(body !== undefined && { body }) }, handler);
    });
  });
