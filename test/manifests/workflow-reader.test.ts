import { allSteps, type Workflow } from '../../src/manifests/workflow.ts';
import { cycleIn } from '../../src/manifests/workflow-graph.ts';
import { judged, manifestWith } from './judged.ts';

const workflowOf = (spec: string, path = 'flows/a.ossa.yaml'): Workflow => {
  const { manifests, told } = judged(manifestWith('Workflow', 'flow', spec), { path });
  expect(told).toEqual([]);
  return manifests[0] as Workflow;
};

describe('a workflow', () => {
  it('is a graph of steps', () => {
    const workflow = workflowOf(`
inputs: { type: object, required: [id] }
timeout_seconds: 60
context: { variables: { a: 1 } }
error_handling: { on_failure: compensate, compensation_steps: [{ id: undo }] }
steps:
  - { id: fetch, ref: ./tasks/fetch.ossa.yaml, input: { id: "\${{ workflow.input.id }}" } }
  - { id: judge, kind: Agent, ref: analyzer, depends_on: [fetch], timeout_seconds: 5, continue_on_error: true }
  - id: both
    depends_on: [judge]
    parallel:
      - { id: left, retry: { max_attempts: 3, initial_delay_ms: 100 } }
      - { id: right, depends_on: [left], on_error: { action: goto, goto: fetch } }
  - id: each
    depends_on: [both]
    loop: { over: "\${{ steps.fetch.output.items }}", parallelism: 4 }
    steps: [{ id: one }]
  - id: choice
    depends_on: [each]
    branches: [{ condition: "\${{ item > 1 }}", steps: [{ id: many }] }]
    else: [{ id: few, condition: x, output: { to: y } }]
`);
    expect(workflow).toMatchObject({
      sequential: false,
      timeoutSeconds: 60,
      onFailure: 'compensate',
      variables: { a: 1 },
    });
    expect(workflow.inputCheck?.fault({})).toBe('id is missing.');
    expect(workflow.compensationSteps.map(({ id }) => id)).toEqual(['undo']);
    expect(allSteps(workflow.steps).map(({ id, kind }) => `${id} ${kind}`)).toEqual([
      ...['fetch Task', 'judge Agent', 'both Parallel', 'left Task', 'right Task'],
      ...['each Loop', 'one Task', 'choice Conditional', 'many Task', 'few Task'],
    ]);
    const [fetch, judge, both, each] = workflow.steps;
    expect(fetch).toMatchObject({
      ref: { by: 'file', absolute: '/manifests/flows/tasks/fetch.ossa.yaml' },
      dependsOn: [],
    });
    expect(judge).toMatchObject({ ref: { by: 'name', name: 'analyzer' }, dependsOn: ['fetch'], continueOnError: true });
    expect(both?.parallel[0]?.retry).toEqual({ maxAttempts: 3, initialDelayMs: 100, errors: [] });
    expect(both?.parallel[1]?.onError).toEqual({ action: 'goto', goto: 'fetch' });
    expect(each?.loop).toEqual({ over: '${{ steps.fetch.output.items }}', as: 'item', index: 'index', parallelism: 4 });
    expect(fetch?.place).toEqual({ file: 'flows/a.ossa.yaml', document: 1, line: 11, column: 7 });
  });

  it('runs in the order of its list if nothing depends on anything', () => {
    expect(workflowOf('steps: [{ id: a }, { id: b }]').sequential).toBe(true);
    expect(workflowOf('steps: [{ id: a, parallel: [{ id: b }, { id: c, depends_on: [b] }] }]').sequential).toBe(false);
  });

  it('may refer to what is not there, as long as it stays inside the folder', () => {
    expect(workflowOf('steps: [{ id: a, ref: ../other/x.ossa.yaml }]').steps[0]?.ref).toEqual({
      ...{ by: 'file', absolute: '/manifests/other/x.ossa.yaml', written: '../other/x.ossa.yaml' },
    });
  });

  it('may have references that are known only later, and conditions around steps', () => {
    const [step] = workflowOf(
      'steps: [{ id: a, kind: Conditional, condition: x, steps: [{ id: b, ref: "../${{ item }}.yaml" }] }]',
    ).steps;
    expect(step?.steps[0]?.ref).toEqual({ by: 'expression', written: '../${{ item }}.yaml' });
  });

  it('may be a long chain', () => {
    const steps = Array.from(
      { length: 900 },
      (_, i) => `  - { id: s${i}${i === 0 ? '' : `, depends_on: [s${i - 1}]`} }`,
    );
    expect(workflowOf(`steps:\n${steps.join('\n')}`).steps).toHaveLength(900);
  });

  it('may meet again where it parted', () => {
    const spec =
      'steps: [{ id: a }, { id: b, depends_on: [a] }, { id: c, depends_on: [a] }, { id: d, depends_on: [b, c] }]';
    expect(workflowOf(spec).steps).toHaveLength(4);
  });
});

describe('a circle', () => {
  it('is found behind what is none', () => {
    const waits = new Map([
      ['a', ['b', 'c']],
      ['b', []],
      ['c', ['d']],
      ['d', ['e', 'b']],
      ['e', ['c']],
    ]);
    expect(cycleIn(waits)).toEqual(['c', 'd', 'e', 'c']);
  });

  it('is not found where two ways lead to one place', () => {
    expect(
      cycleIn(
        new Map([
          ['a', ['b', 'c']],
          ['b', ['d']],
          ['c', ['d']],
          ['d', []],
        ]),
      ),
    ).toBeUndefined();
  });

  it('is found in a hundred thousand', () => {
    const waits = new Map(Array.from({ length: 100_000 }, (_, i) => [`${i}`, [`${(i + 1) % 100_000}`]]));
    expect(cycleIn(waits)).toHaveLength(100_001);
  });
});
