import { JwksClient, type SigningKey } from 'jwks-rsa';
import { AuthError } from './auth-error.ts';
import { type Algorithm, type KeySource, publicKey, type VerifyKey } from './keys.ts';

export interface JwksOptions {
  readonly url: string;
  /** Keys older than this are fetched again, so that a withdrawn key stops working. Default 10 minutes. */
  readonly maxAgeMs?: number;
  /** At most one fetch in this time, however many unknown key ids come in. Default 10 seconds. */
  readonly cooldownMs?: number;
  /** For one whole fetch. Default 5 seconds. */
  readonly timeoutMs?: number;
  readonly now?: () => number;
}

const MAX_BYTES = 1_048_576;

/** Bounded in time and size; the client's own request is bounded in neither. */
const fetchJson = async (url: string, timeoutMs: number): Promise<unknown> => {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`The JWKS server answered ${response.status}.`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error(`The JWKS is larger than ${MAX_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
};

/** A set may hold keys for other purposes; those are passed over. */
const usable = (signing: SigningKey): VerifyKey[] => {
  try {
    const key = publicKey(signing.getPublicKey(), signing.kid);
    return signing.alg && signing.alg !== key.algorithm ? [] : [key];
  } catch {
    return [];
  }
};

/**
 * The keys behind a JWKS URL. The client's own cache and rate limit stay off: they forget a key at its age even when
 * the server is away, and they answer an outage and an unknown key id alike.
 */
export class JwksKeys implements KeySource {
  private readonly client: JwksClient;
  private readonly maxAgeMs: number;
  private readonly cooldownMs: number;
  private readonly now: () => number;
  private keys: readonly VerifyKey[] | undefined;
  private fetchedAt = Number.NEGATIVE_INFINITY;
  private triedAt = Number.NEGATIVE_INFINITY;
  private failure: unknown;
  private fetching: Promise<void> | undefined;

  constructor({ url, maxAgeMs = 600_000, cooldownMs = 10_000, timeoutMs = 5_000, now = Date.now }: JwksOptions) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new Error('The JWKS URL must be an http or https URL.');
    }
    this.maxAgeMs = maxAgeMs;
    this.cooldownMs = cooldownMs;
    this.now = now;
    this.client = new JwksClient({
      jwksUri: url,
      cache: false,
      rateLimit: false,
      fetcher: async (uri) => (await fetchJson(uri, timeoutMs)) as { keys: unknown },
    });
  }

  async candidates(algorithm: Algorithm, kid: string | undefined): Promise<readonly VerifyKey[]> {
    if (algorithm === 'HS256') return [];
    if (this.now() - this.fetchedAt > this.maxAgeMs) {
      const refreshed = this.refresh();
      // Once a refresh has failed nobody waits for the next one: a server that hangs must not slow every request.
      if (this.keys === undefined || this.failure === undefined) await refreshed;
    }
    let found = this.find(algorithm, kid);
    if (found.length === 0) {
      await this.refresh();
      found = this.find(algorithm, kid);
    }
    if (found.length === 0 && this.failure !== undefined) {
      throw new AuthError('unavailable', 'The keys that verify tokens cannot be fetched at the moment.', {
        cause: this.failure,
      });
    }
    return found;
  }

  private find(algorithm: Algorithm, kid: string | undefined): readonly VerifyKey[] {
    return (this.keys ?? []).filter((key) => key.algorithm === algorithm && (kid === undefined || key.kid === kid));
  }

  /** Never rejects, joins the fetch under way, and does nothing during the cooldown. */
  private refresh(): Promise<void> {
    if (this.fetching !== undefined) return this.fetching;
    if (this.now() - this.triedAt < this.cooldownMs) return Promise.resolve();
    this.triedAt = this.now();
    this.fetching = this.fetchKeys().finally(() => {
      this.fetching = undefined;
    });
    return this.fetching;
  }

  private async fetchKeys(): Promise<void> {
    try {
      // The whole set is replaced: a key that has left it is withdrawn.
      this.keys = (await this.client.getSigningKeys()).flatMap(usable);
      this.fetchedAt = this.triedAt;
      this.failure = undefined;
    } catch (error) {
      this.failure = error ?? new Error('The JWKS could not be fetched.');
    }
  }
}
