import { didYouMean } from '../config/suggestion.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { listOf, objectOf, textOf } from './plain.ts';
import { within } from './pointer.ts';

interface Node {
  readonly id: string;
  readonly pointer: string;
  /** The step around it. */
  readonly around: string | undefined;
  readonly dependsOn: readonly { readonly id: string; readonly pointer: string }[];
  readonly goto: string | undefined;
}

const nodesOf = (steps: unknown, pointer: string, around: string | undefined): Node[] =>
  listOf(steps).flatMap((value, i) => {
    const step = objectOf(value);
    const place = within(pointer, i);
    const id = textOf(step.id);
    const inside = [
      ...nodesOf(step.parallel, within(place, 'parallel'), id),
      ...listOf(step.branches).flatMap((branch, j) =>
        nodesOf(objectOf(branch).steps, within(place, 'branches', j, 'steps'), id),
      ),
      ...nodesOf(step.else, within(place, 'else'), id),
      ...nodesOf(step.steps, within(place, 'steps'), id),
    ];
    if (id === undefined) return inside;
    const dependsOn = listOf(step.depends_on).flatMap((one, j) =>
      typeof one === 'string' ? [{ id: one, pointer: within(place, 'depends_on', j) }] : [],
    );
    return [{ id, pointer: place, around, dependsOn, goto: textOf(objectOf(step.on_error).goto) }, ...inside];
  });

/**
 * A step begins and ends. It ends after what is inside it has ended, begins after what it depends on has ended, and what is
 * inside it begins after it has begun: so a step that waits for the one around it is a cycle too.
 */
const waitsFor = (nodes: ReadonlyMap<string, Node>): Map<string, string[]> => {
  const begins = (id: string): string => `begin ${id}`;
  const ends = (id: string): string => `end ${id}`;
  const waits = new Map<string, string[]>();
  for (const { id } of nodes.values()) {
    waits.set(begins(id), []);
    waits.set(ends(id), [begins(id)]);
  }
  for (const { id, around, dependsOn } of nodes.values()) {
    for (const { id: other } of dependsOn) if (nodes.has(other)) waits.get(begins(id))?.push(ends(other));
    if (around === undefined || !nodes.has(around)) continue;
    waits.get(begins(id))?.push(begins(around));
    waits.get(ends(around))?.push(ends(id));
  }
  return waits;
};

/** The first cycle, in the order in which it waits, its beginning again at its end. */
export const cycleIn = (waits: ReadonlyMap<string, readonly string[]>): string[] | undefined => {
  const done = new Set<string>();
  for (const start of waits.keys()) {
    if (done.has(start)) continue;
    // By hand, not by recursion: a chain of steps may be as long as a document can hold.
    const path: { readonly id: string; next: number }[] = [{ id: start, next: 0 }];
    const open = new Set([start]);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const other = waits.get(top.id)?.[top.next++];
      if (other === undefined) {
        done.add(top.id);
        open.delete(top.id);
        path.pop();
      } else if (open.has(other)) {
        const ids = path.map(({ id }) => id);
        return [...ids.slice(ids.indexOf(other)), other];
      } else if (!done.has(other)) {
        path.push({ id: other, next: 0 });
        open.add(other);
      }
    }
  }
  return undefined;
};

/** What a schema cannot say of steps: their ids, and what waits for what. */
export const checkGraph = (document: ManifestDocument): void => {
  const spec = objectOf(objectOf(document.value).spec);
  const { compensation_steps: compensation } = objectOf(spec.error_handling);
  const nodes = new Map<string, Node>();
  const main = nodesOf(spec.steps, '/spec/steps', undefined);
  for (const node of [...main, ...nodesOf(compensation, '/spec/error_handling/compensation_steps', undefined)]) {
    const before = nodes.get(node.id);
    if (before) {
      const { line } = document.place(before.pointer);
      document.error(
        within(node.pointer, 'id'),
        `The step id ${node.id} is used twice; the first time in line ${line}.`,
      );
    } else {
      nodes.set(node.id, node);
    }
  }
  const ids = [...nodes.keys()];
  for (const { id, pointer, dependsOn, goto } of nodes.values()) {
    for (const { id: other, pointer: where } of dependsOn) {
      if (nodes.has(other)) continue;
      document.error(where, `The step ${id} depends on ${other}, which is no step${didYouMean(other, ids) || '.'}`);
    }
    if (goto !== undefined && !nodes.has(goto)) {
      const message = `On an error the step ${id} goes to ${goto}, which is no step${didYouMean(goto, ids) || '.'}`;
      document.error(within(pointer, 'on_error', 'goto'), message);
    }
  }
  const cycle = cycleIn(waitsFor(nodes))?.map((moment) => moment.replace(/^(begin|end) /, ''));
  if (!cycle) return;
  const steps = cycle.filter((id, i) => id !== cycle[i - 1]);
  const told = steps.length === 1 ? [...steps, ...steps] : steps;
  const pointer = nodes.get(told[0] as string)?.pointer ?? '/spec/steps';
  document.error(pointer, `These steps wait for each other in a circle: ${told.join(' -> ')}.`);
};
