export type Environment = Readonly<Record<string, string | undefined>>;

/** What a text has become, and which values of the environment are in it now. */
export interface Filled {
  readonly text: string;
  readonly values: readonly string[];
}

/** A variable that is needed and not set. */
export class MissingVariable extends Error {
  override readonly name = 'MissingVariable';
  readonly variable: string;
  constructor(variable: string) {
    super(`the environment variable ${variable} is not set`);
    this.variable = variable;
  }
}

const PLACEHOLDER = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Puts the environment into `${NAME}` and `${NAME:-otherwise}`; the second also holds when the variable is empty. */
export const fill = (text: string, env: Environment): Filled => {
  const values: string[] = [];
  const filled = text.replace(PLACEHOLDER, (_, name: string, otherwise: string | undefined) => {
    const value = env[name];
    if (value === undefined || (value === '' && otherwise !== undefined)) {
      if (otherwise === undefined) throw new MissingVariable(name);
      return otherwise;
    }
    values.push(value);
    return value;
  });
  return { text: filled, values };
};
