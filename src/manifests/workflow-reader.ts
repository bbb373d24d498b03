import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { bindingsOf, checkOf } from './capability.ts';
import { shown } from './finding.ts';
import type { Identity } from './identity.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { given, isObject, listOf, numberOf, objectOf, type PlainObject, textOf, textsOf } from './plain.ts';
import { pathOf, within } from './pointer.ts';
import type { Reference, Retry, Step, StepKind, Workflow } from './workflow.ts';
import { checkGraph } from './workflow-graph.ts';
import { STEP_KINDS } from './workflow-schema.ts';

const isInside = (folder: string, file: string): boolean => {
  const way = relative(folder, file);
  return way !== '' && !way.startsWith('..') && !isAbsolute(way);
};

/** What looks like a file is one; everything else is a manifest's name. */
const looksLikeFile = (ref: string): boolean => /[/\\]|\.(ya?ml|json)$/i.test(ref);

const referenceOf = (ref: string, pointer: string, document: ManifestDocument): Reference | undefined => {
  if (ref.includes('${')) return { by: 'expression', written: ref };
  if (/^[a-z][a-z0-9+.-]*:/i.test(ref)) {
    document.error(pointer, `${pathOf(pointer)} must be a file or a name, not the address ${shown(ref)}.`);
    return undefined;
  }
  if (!looksLikeFile(ref)) return { by: 'name', name: ref };
  const { absolute, root } = document.file;
  const target = resolve(dirname(absolute), ref);
  if (!isInside(root, target)) {
    document.error(pointer, `${pathOf(pointer)} leaves the folder of the manifests: ${shown(ref)}.`);
    return undefined;
  }
  return { by: 'file', absolute: target, written: ref };
};

const kindOf = (step: PlainObject): StepKind => {
  const named = STEP_KINDS.find((kind) => kind === step.kind);
  if (named !== undefined) return named;
  if (step.parallel !== undefined) return 'Parallel';
  if (step.branches !== undefined) return 'Conditional';
  return step.loop === undefined ? 'Task' : 'Loop';
};

/** What a step of a kind cannot do without: of every row one. */
const NEEDS: Readonly<Partial<Record<StepKind, readonly (readonly string[])[]>>> = {
  Parallel: [['parallel', 'steps']],
  Conditional: [['branches', 'steps']],
  Loop: [['loop'], ['steps', 'ref', 'inline']],
};

const retryOf = (value: unknown): Retry | undefined => {
  if (!isObject(value)) return undefined;
  return given({
    maxAttempts: numberOf(value.max_attempts),
    backoff: textOf(value.backoff_strategy),
    initialDelayMs: numberOf(value.initial_delay_ms),
    maxDelayMs: numberOf(value.max_delay_ms),
    errors: textsOf(value.retryable_errors),
  });
};

const onErrorOf = (value: unknown): Step['onError'] => {
  const { action, goto, compensation } = objectOf(value);
  if (action !== 'fail' && action !== 'continue' && action !== 'goto' && action !== 'compensate') return undefined;
  return given({ action, goto: textOf(goto), compensation });
};

const loopOf = (value: unknown): Step['loop'] => {
  const { over, as, index, parallelism } = objectOf(value);
  if (typeof over !== 'string' && !Array.isArray(over)) return undefined;
  return {
    over,
    as: textOf(as) ?? 'item',
    index: textOf(index) ?? 'index',
    parallelism: numberOf(parallelism) ?? 1,
  };
};

const stepsOf = (values: unknown, pointer: string, document: ManifestDocument): Step[] =>
  listOf(values).flatMap((value, i) => (isObject(value) ? [stepOf(value, within(pointer, i), document)] : []));

const stepOf = (step: PlainObject, pointer: string, document: ManifestDocument): Step => {
  const kind = kindOf(step);
  for (const needed of NEEDS[kind] ?? []) {
    if (needed.some((name) => step[name] !== undefined)) continue;
    document.error(pointer, `${pathOf(pointer)} is a ${kind} step without ${needed.join(' or ')}.`);
  }
  if (objectOf(step.on_error).action === 'goto' && objectOf(step.on_error).goto === undefined) {
    document.error(
      within(pointer, 'on_error'),
      `${pathOf(pointer)}.on_error goes to a step and does not say which: goto is missing.`,
    );
  }
  const { to, fields } = objectOf(step.output);
  return given({
    ...{ id: textOf(step.id) ?? '', name: textOf(step.name), kind, condition: textOf(step.condition) },
    ref: typeof step.ref === 'string' ? referenceOf(step.ref, within(pointer, 'ref'), document) : undefined,
    inline: isObject(step.inline) ? step.inline : undefined,
    input: objectOf(step.input),
    output: isObject(step.output) ? given({ to: textOf(to), fields }) : undefined,
    dependsOn: textsOf(step.depends_on),
    parallel: stepsOf(step.parallel, within(pointer, 'parallel'), document),
    branches: listOf(step.branches).map((branch, i) => ({
      condition: textOf(objectOf(branch).condition) ?? '',
      steps: stepsOf(objectOf(branch).steps, within(pointer, 'branches', i, 'steps'), document),
    })),
    otherwise: stepsOf(step.else, within(pointer, 'else'), document),
    loop: loopOf(step.loop),
    steps: stepsOf(step.steps, within(pointer, 'steps'), document),
    retry: retryOf(step.retry),
    timeoutSeconds: numberOf(step.timeout_seconds),
    continueOnError: step.continue_on_error === true,
    onError: onErrorOf(step.on_error),
    place: document.place(pointer),
  });
};

const waits = (steps: readonly Step[]): boolean =>
  steps.some(
    ({ dependsOn, parallel, branches, otherwise, steps: inside }) =>
      dependsOn.length > 0 ||
      waits([...parallel, ...branches.flatMap((branch) => branch.steps), ...otherwise, ...inside]),
  );

export const readWorkflow = (document: ManifestDocument, identity: Identity): Workflow => {
  const manifest = objectOf(document.value);
  const spec = objectOf(manifest.spec);
  for (const name of ['triggers', 'concurrency'] as const) {
    if (spec[name] === undefined) continue;
    document.warning(within('/spec', name), `spec.${name} is not served: the workflow is started by request.`, true);
  }
  checkGraph(document);
  const { on_failure, compensation_steps } = objectOf(spec.error_handling);
  const steps = stepsOf(spec.steps, '/spec/steps', document);
  return {
    ...identity,
    kind: 'Workflow',
    ...given({
      inputs: isObject(spec.inputs) ? spec.inputs : undefined,
      inputCheck: checkOf(spec.inputs, '/spec/inputs', document),
      outputs: isObject(spec.outputs) ? spec.outputs : undefined,
      variables: objectOf(objectOf(spec.context).variables),
      steps,
      sequential: !waits(steps),
      timeoutSeconds: numberOf(spec.timeout_seconds),
      onFailure: textOf(on_failure),
      compensationSteps: stepsOf(compensation_steps, '/spec/error_handling/compensation_steps', document),
      bindings: Object.fromEntries(bindingsOf(manifest.runtime)),
    }),
  };
};
