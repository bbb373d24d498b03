import type { SchemaCheck } from '../tools/schema-check.ts';
import type { Schema } from '../tools/tool.ts';
import type { Binding } from './capability.ts';
import type { Identity } from './identity.ts';

export interface Task extends Identity {
  readonly kind: 'Task';
  readonly execution: { readonly type: string; readonly runtime?: string; readonly entrypoint?: string };
  readonly timeoutSeconds: number;
  readonly capabilities: readonly string[];
  readonly inputSchema?: Schema;
  readonly inputCheck?: SchemaCheck;
  readonly outputSchema?: Schema;
  readonly outputCheck?: SchemaCheck;
  /** By capability. */
  readonly bindings: Readonly<Record<string, Binding>>;
}
