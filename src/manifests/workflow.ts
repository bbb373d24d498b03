import type { SchemaCheck } from '../tools/schema-check.ts';
import type { Schema } from '../tools/tool.ts';
import type { Binding } from './capability.ts';
import type { Identity, Place } from './identity.ts';
import type { PlainObject } from './plain.ts';
import type { STEP_KINDS } from './workflow-schema.ts';

export type StepKind = (typeof STEP_KINDS)[number];

/** What a step runs: a manifest by its name, or whatever stands in a file. It need not be there before it is run. */
export type Reference =
  | { readonly by: 'name'; readonly name: string }
  | { readonly by: 'file'; readonly absolute: string; readonly written: string }
  /** Known only when it is run; whoever runs it must see to it that it does not leave the folder of the manifests. */
  | { readonly by: 'expression'; readonly written: string };

export interface Retry {
  readonly maxAttempts?: number;
  readonly backoff?: string;
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
  readonly errors: readonly string[];
}

export interface Step {
  readonly id: string;
  readonly name?: string;
  readonly kind: StepKind;
  readonly ref?: Reference;
  readonly inline?: PlainObject;
  readonly input: PlainObject;
  readonly output?: { readonly to?: string; readonly fields?: unknown };
  readonly condition?: string;
  readonly dependsOn: readonly string[];
  readonly parallel: readonly Step[];
  readonly branches: readonly { readonly condition: string; readonly steps: readonly Step[] }[];
  readonly otherwise: readonly Step[];
  readonly loop?: {
    readonly over: string | readonly unknown[];
    readonly as: string;
    readonly index: string;
    readonly parallelism: number;
  };
  readonly steps: readonly Step[];
  readonly retry?: Retry;
  readonly timeoutSeconds?: number;
  readonly continueOnError: boolean;
  readonly onError?: {
    readonly action: 'fail' | 'continue' | 'goto' | 'compensate';
    readonly goto?: string;
    readonly compensation?: unknown;
  };
  readonly place: Place;
}

export interface Workflow extends Identity {
  readonly kind: 'Workflow';
  readonly inputs?: Schema;
  readonly inputCheck?: SchemaCheck;
  readonly outputs?: PlainObject;
  readonly variables: PlainObject;
  readonly steps: readonly Step[];
  /** No step names another that it waits for: they run in the order in which they are written. */
  readonly sequential: boolean;
  readonly timeoutSeconds?: number;
  readonly onFailure?: string;
  readonly compensationSteps: readonly Step[];
  readonly bindings: Readonly<Record<string, Binding>>;
}

/** The steps directly inside a step. */
export const insideOf = (step: Step): readonly Step[] => [
  ...step.parallel,
  ...step.branches.flatMap(({ steps }) => steps),
  ...step.otherwise,
  ...step.steps,
];

/** Every step, however deep. */
export const allSteps = (steps: readonly Step[]): Step[] =>
  steps.flatMap((step) => [step, ...allSteps(insideOf(step))]);
