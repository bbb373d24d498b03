import type { Agent } from './agent.ts';
import type { Task } from './task.ts';
import type { Workflow } from './workflow.ts';

export type Manifest = Agent | Task | Workflow;
