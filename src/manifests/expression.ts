import { type ASTNode, Environment } from '@marcbachmann/cel-js';

const limits = { maxAstNodes: 500, maxDepth: 32, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 10 };
const anything = new Environment({ unlistedVariablesAreDyn: true, limits });

/** The types of variables: `int` is a BigInt, a number of JSON is a `double`. */
export type Variables = Readonly<Record<string, 'string' | 'int' | 'double' | 'bool' | 'map' | 'dyn'>>;

const environmentOf = (variables: Variables): Environment =>
  Object.entries(variables).reduce(
    (all, [name, type]) => all.registerVariable(name, type),
    new Environment({ limits }),
  );

/** A regular expression of somebody else's can run for longer than anybody lives. */
const FORBIDDEN = 'matches';

const isNode = (value: unknown): value is ASTNode =>
  typeof value === 'object' && value !== null && 'op' in value && 'args' in value;

const calls = (value: unknown, name: string): boolean => {
  if (Array.isArray(value)) return value.some((part) => calls(part, name));
  if (!isNode(value)) return false;
  const { op, args } = value;
  return ((op === 'call' || op === 'rcall') && args[0] === name) || calls(args, name);
};

const isNamed = (value: unknown, name: string): boolean => {
  if (Array.isArray(value)) return value.some((part) => isNamed(part, name));
  if (!isNode(value)) return false;
  return (value.op === 'id' && value.args === name) || isNamed(value.args, name);
};

/** CEL shows the place in the text on further lines. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';

/** A condition in CEL, the Common Expression Language: `data.status == "published" && size(data.tags) > 1`. */
export class Expression {
  /** What it gives, as far as that is known: `dyn` if it is not. */
  readonly type: string;
  private readonly evaluate: (context: Readonly<Record<string, unknown>>) => unknown;
  private readonly ast: ASTNode;

  /** With variables, a name that is none of them is a mistake. Throws one sentence. */
  constructor(text: string, variables?: Variables) {
    try {
      const parsed = (variables ? environmentOf(variables) : anything).parse(text);
      const { valid, error, type } = parsed.check();
      if (!valid) throw error ?? new Error('it does not fit together');
      if (calls(parsed.ast, FORBIDDEN)) throw new Error(`${FORBIDDEN}() cannot be used`);
      this.evaluate = parsed;
      this.ast = parsed.ast;
      this.type = String(type ?? 'dyn');
    } catch (error) {
      throw new Error(`The expression cannot be understood: ${reasonOf(error)}.`);
    }
  }

  /** What cannot be evaluated, because something is missing or of another type, does not hold. */
  holds(context: Readonly<Record<string, unknown>>): boolean {
    try {
      return this.evaluate(context) === true;
    } catch {
      return false;
    }
  }

  /** What it gives; whole numbers as numbers. Throws one sentence if it cannot be evaluated. */
  value(context: Readonly<Record<string, unknown>>): unknown {
    try {
      const value = this.evaluate(context);
      return typeof value === 'bigint' ? Number(value) : value;
    } catch (error) {
      throw new Error(`The expression cannot be evaluated: ${reasonOf(error)}.`);
    }
  }

  /** Whether it speaks of this variable. */
  mentions(variable: string): boolean {
    return isNamed(this.ast, variable);
  }
}
