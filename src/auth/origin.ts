import type { Request } from 'express';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

export const isSafeMethod = (method: string): boolean => SAFE_METHODS.has(method);

/** The parts of an Express request that tell where it came from; `trust proxy` has had its say in them. */
export type OriginCarrier = Pick<Request, 'headers' | 'host' | 'protocol'>;

const originOf = (text: string): URL | undefined => {
  if (!URL.canParse(text)) return undefined; // "null" of a sandboxed frame among them
  const url = new URL(text);
  return url.protocol === 'https:' || url.protocol === 'http:' ? url : undefined;
};

/**
 * A browser sends the cookie along with what any page asks it to send, so an unsafe request must come from a page of
 * ours or of a listed origin. Pages can set neither of the two headers.
 */
export const isTrustedOrigin = (request: OriginCarrier, listed: readonly string[]): boolean => {
  if (request.headers['sec-fetch-site'] === 'same-origin') return true;
  const origin = originOf(request.headers.origin ?? '');
  if (!origin) return false;
  if (listed.some((entry) => originOf(entry)?.origin === origin.origin)) return true;
  const own = originOf(`${origin.protocol}//${request.host ?? ''}`); // drops a default port, as the browser does
  // A proxy that ends TLS may not say so, and then an https page is ours over what looks like http. The other way round
  // it is somebody on the wire.
  return own?.host === origin.host && (origin.protocol === 'https:' || request.protocol === 'http');
};
