import { SchemaCheck } from '../tools/schema-check.ts';
import type { Schema } from '../tools/tool.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { given, isObject, listOf, numberOf, objectOf, oneOf, type PlainObject, textOf, textsOf } from './plain.ts';
import { pathOf, within } from './pointer.ts';

/** Which tool stands behind a capability; none: the agent itself. */
export interface Binding {
  readonly handler?: string;
  readonly mcpServer?: string;
  readonly tool?: string;
  readonly config?: PlainObject;
}

export type CapabilitySource = 'capabilities' | 'tool' | 'function' | 'command';

export interface Capability {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: Schema;
  readonly outputSchema?: Schema;
  readonly inputCheck?: SchemaCheck;
  readonly outputCheck?: SchemaCheck;
  readonly timeoutSeconds?: number;
  readonly scopes: readonly string[];
  readonly binding?: Binding;
  readonly source: CapabilitySource;
  /** The tool of the manifest that brings it along. */
  readonly tool?: string;
}

const INPUT = ['input_schema', 'inputSchema', 'input'] as const;
const OUTPUT = ['output_schema', 'outputSchema', 'output'] as const;
const TIMEOUT = ['timeout_seconds', 'timeoutSeconds'] as const;

/** A capability where it is written. */
interface Declaration {
  readonly name: string;
  readonly pointer: string;
  readonly source: CapabilitySource;
  /** No more than a name: it may stand beside a full declaration. */
  readonly bare: boolean;
  readonly body: PlainObject;
  readonly tool?: string;
}

const declared = (value: unknown, pointer: string, source: CapabilitySource, tool?: string): Declaration[] => {
  const from = given({ source, tool });
  if (typeof value === 'string') return [{ name: value, pointer, bare: true, body: {}, ...from }];
  const name = textOf(objectOf(value).name);
  return name === undefined ? [] : [{ name, pointer, bare: false, body: objectOf(value), ...from }];
};

const ofMap = (capabilities: PlainObject, pointer: string): Declaration[] =>
  Object.entries(capabilities).map(([name, value]) => ({
    ...{ name, pointer: within(pointer, name), source: 'capabilities', bare: false },
    body: typeof value === 'string' ? { description: value } : objectOf(value),
  }));

/** A function by the names of a capability. */
const ofFunction = (value: unknown): PlainObject => {
  const { name, description, parameters, returns } = objectOf(value);
  return given({ name, description, input: parameters, output: returns });
};

/** Every capability of an agent, from wherever it may be written, in the order of the specification. */
const declarations = (spec: PlainObject): Declaration[] => {
  const list = (values: unknown, pointer: string, source: CapabilitySource, tool?: string): Declaration[] =>
    listOf(values).flatMap((value, i) => declared(value, within(pointer, i), source, tool));
  return [
    ...(isObject(spec.capabilities)
      ? ofMap(spec.capabilities, '/spec/capabilities')
      : list(spec.capabilities, '/spec/capabilities', 'capabilities')),
    ...listOf(spec.tools).flatMap((tool, i) =>
      list(objectOf(tool).capabilities, within('/spec/tools', i, 'capabilities'), 'tool', textOf(objectOf(tool).name)),
    ),
    ...list(listOf(spec.functions).map(ofFunction), '/spec/functions', 'function'),
    ...list(objectOf(spec.messaging).commands, '/spec/messaging/commands', 'command'),
  ];
};

/** A schema that can be used, or a finding. */
export const checkOf = (schema: unknown, pointer: string, document: ManifestDocument): SchemaCheck | undefined => {
  if (!isObject(schema)) return undefined;
  try {
    return new SchemaCheck(schema);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    document.error(pointer, `${pathOf(pointer)}: ${reason.replace(/\.$/, '')}.`);
    return undefined;
  }
};

const spellingOf = (
  body: PlainObject,
  names: readonly string[],
  pointer: string,
  document: ManifestDocument,
): string | undefined => {
  const [first, second] = names.filter((name) => Object.hasOwn(body, name));
  if (second !== undefined) {
    document.error(within(pointer, second), `${pathOf(pointer)} has both ${first} and ${second}: leave one.`, true);
  }
  return first;
};

const bindingOf = (value: unknown): Binding | undefined => {
  if (!isObject(value)) return undefined;
  const { handler, mcp_server, tool, config } = value;
  return given({
    ...{ handler: textOf(handler), mcpServer: textOf(mcp_server), tool: textOf(tool) },
    config: isObject(config) ? config : undefined,
  });
};

export const bindingsOf = (runtime: unknown): ReadonlyMap<string, Binding> =>
  new Map(
    Object.entries(objectOf(objectOf(runtime).bindings)).flatMap(([name, value]) => {
      const binding = bindingOf(value);
      return binding ? [[name, binding] as const] : [];
    }),
  );

/** The capabilities of an agent, each once. A bare name beside a full declaration of the same only refers to it. */
export const readCapabilities = (
  spec: PlainObject,
  bindings: ReadonlyMap<string, Binding>,
  document: ManifestDocument,
): Capability[] => {
  const known = new Map<string, Declaration>();
  for (const one of declarations(spec)) {
    const before = known.get(one.name);
    if (!before) {
      known.set(one.name, one);
    } else if (before.source !== one.source && (before.bare || one.bare)) {
      const [full, bare] = before.bare ? [one, before] : [before, one];
      known.set(one.name, { ...full, ...given({ tool: full.tool ?? bare.tool }) });
    } else {
      const { line } = document.place(before.pointer);
      document.error(one.pointer, `The capability ${one.name} is declared twice; the first time in line ${line}.`);
    }
  }
  return [...known.values()].map(({ name, pointer, source, tool, body }) => {
    const input = spellingOf(body, INPUT, pointer, document);
    const output = spellingOf(body, OUTPUT, pointer, document);
    spellingOf(body, TIMEOUT, pointer, document);
    const schemaOf = (spelling: string | undefined): Schema | undefined => {
      const schema = spelling === undefined ? undefined : body[spelling];
      return isObject(schema) ? schema : undefined;
    };
    // A function's schemas stand under names of their own.
    const placeOf = (spelling: string | undefined): string => {
      const own = source === 'function' ? (spelling === 'input' ? 'parameters' : 'returns') : spelling;
      return within(pointer, own ?? '');
    };
    return given({
      ...{ name, source, tool, scopes: textsOf(body.scopes) },
      description: textOf(body.description),
      inputSchema: schemaOf(input),
      outputSchema: schemaOf(output),
      inputCheck: checkOf(schemaOf(input), placeOf(input), document),
      outputCheck: checkOf(schemaOf(output), placeOf(output), document),
      timeoutSeconds: numberOf(oneOf(body, TIMEOUT)),
      binding: bindings.get(name),
    });
  });
};
