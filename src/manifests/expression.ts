import { type ASTNode, Environment } from '@marcbachmann/cel-js';

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  limits: { maxAstNodes: 500, maxDepth: 32, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 10 },
});

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

/** A condition in CEL, the Common Expression Language: `data.status == "published" && size(data.tags) > 1`. */
export class Expression {
  private readonly evaluate: (context: Readonly<Record<string, unknown>>) => unknown;

  /** Throws one sentence. */
  constructor(text: string) {
    try {
      const parsed = environment.parse(text);
      const { valid, error } = parsed.check();
      if (!valid) throw error ?? new Error('it does not fit together');
      if (calls(parsed.ast, FORBIDDEN)) throw new Error(`${FORBIDDEN}() cannot be used`);
      this.evaluate = parsed;
    } catch (error) {
      const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
      throw new Error(`The expression cannot be understood: ${reason}.`);
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
}
