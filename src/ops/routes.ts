import express, { type Request, type Router } from 'express';
import type { Principal } from '../auth/principal.ts';
import { type HealthSources, readiness } from './health.ts';
import type { Metrics } from './metrics.ts';
import type { ApiDocument } from './openapi.ts';

export interface OpsOptions {
  readonly version: string;
  readonly document: Omit<ApiDocument, 'servers'>;
  /** Where clients find the gateway; undefined: wherever they have found it. */
  readonly publicUrl: string | undefined;
  readonly health: HealthSources;
  /** What else an administrator may want to know; it makes nobody unready. */
  readonly details: () => Readonly<Record<string, unknown>>;
  readonly metrics: Metrics;
  readonly metricsPublic: boolean;
  /** Who asks; undefined without a token. Throws for a bad one. */
  readonly authenticate: (req: Request) => Promise<Principal | undefined>;
  /** Refuses whoever has not the scope `admin`. */
  readonly requireAdmin: (req: Request) => Promise<void>;
}

/** For those who run the gateway. Probes need no token; details need an administrator's. */
export const opsRoutes = ({
  version,
  document,
  publicUrl,
  health,
  details: more,
  metrics,
  metricsPublic,
  authenticate,
  requireAdmin,
}: OpsOptions): Router => {
  const router = express.Router({ caseSensitive: true });
  router.get('/', (_, res) => {
    res.json({ message: 'Sluice is running.', version });
  });
  router.get('/health', (_, res) => {
    res.json({ status: 'ok' });
  });
  router.get('/livez', (_, res) => {
    res.json({ status: 'ok' });
  });
  router.get('/readyz', async (req, res) => {
    const { ready, reasons, store } = readiness(health);
    // A probe must not fail because of a token that it happens to carry.
    const principal = await authenticate(req).catch(() => undefined);
    const details = principal?.scopes.has('admin') ? { reasons, store, ...more() } : {};
    res
      .status(ready ? 200 : 503)
      .set('Cache-Control', 'no-store')
      .json({ status: ready ? 'ready' : 'not_ready', ...details });
  });
  router.get('/openapi.json', (req, res) => {
    const url = publicUrl?.replace(/\/$/, '') ?? (req.host ? `${req.protocol}://${req.host}` : '/'); // HTTP/1.0 needs no host
    res.set('Cache-Control', 'no-store').json({ ...document, servers: [{ url }] });
  });
  router.get('/metrics', async (req, res) => {
    if (!metricsPublic) await requireAdmin(req);
    res.set('Content-Type', metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  return router;
};
