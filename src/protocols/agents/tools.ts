import express, { type Request, type Router } from 'express';
import type { ToolRegistry } from '../../tools/registry.ts';

export interface ToolRoutesOptions {
  readonly registry: ToolRegistry;
  /** Refuses whoever has not the scope `admin`. */
  readonly requireAdmin: (req: Request) => Promise<void>;
}

/** `GET /api/tools`: what there is to call. */
export const toolRoutes = ({ registry, requireAdmin }: ToolRoutesOptions): Router => {
  const router = express.Router({ caseSensitive: true });
  router.get('/tools', async (req, res) => {
    await requireAdmin(req);
    const tools = registry.list().map(({ name, fullName, tool }) => ({
      name,
      full_name: fullName,
      description: tool.description,
      input_schema: tool.inputSchema,
      output_schema: tool.outputSchema ?? null,
      source: tool.source,
      approval: tool.approval,
      timeout_seconds: tool.timeoutMs === 0 ? null : tool.timeoutMs / 1_000,
    }));
    res.set('Cache-Control', 'no-store').json({ tools, total: tools.length });
  });
  return router;
};
