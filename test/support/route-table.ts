import type { Express } from 'express';

/** What Express keeps of a router; it has no types for it. */
interface Layer {
  readonly slash: boolean;
  readonly route?: {
    readonly path: string | RegExp | readonly string[];
    readonly methods: Readonly<Record<string, true>>;
  };
  readonly handle: { readonly stack?: readonly Layer[] };
  /** Leaves what it has matched in `path`. */
  match(path: string): boolean;
  readonly path?: string;
}

/** Express forgets where a router was mounted; it still knows whether a path would reach it. */
const mountOf = (layer: Layer, mounts: readonly string[]): string => {
  if (layer.slash) return '';
  const found = mounts.find((mount) => layer.match(`${mount}/x`) && layer.path === mount);
  if (found === undefined) throw new Error(`A router is mounted at none of ${mounts.join(', ')}: name its path.`);
  return found;
};

const pathsOf = (path: string | RegExp | readonly string[]): string[] =>
  [path].flat().map((one) => String(one).replaceAll(/:(\w+)/g, '{$1}'));

const routesIn = (stack: readonly Layer[], prefix: string, mounts: readonly string[]): string[] =>
  stack.flatMap((layer) => {
    const { route, handle } = layer;
    if (route) {
      const methods = Object.keys(route.methods).map((method) => method.toUpperCase());
      return pathsOf(route.path).flatMap((path) => methods.map((method) => `${method} ${prefix}${path}`));
    }
    return handle.stack ? routesIn(handle.stack, prefix + mountOf(layer, mounts), mounts) : [];
  });

/** `GET /path/{parameter}` of every route of an app, sorted. `mounts`: where routers are mounted, "/" apart. */
export const routeTable = (app: Express, mounts: readonly string[]): string[] => {
  const { stack } = app.router as unknown as { stack: readonly Layer[] };
  return [...new Set(routesIn(stack, '', mounts))].sort();
};
