/** Something that is written with variables of the environment in it, where one is missing. */
export class MissingVariable extends Error {
  override readonly name = 'MissingVariable';
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** `${NAME}` and `${NAME:-otherwise}`. Throws a `MissingVariable` that names the variable. */
export const expander =
  (env: Readonly<Record<string, string | undefined>>) =>
  (text: string): string =>
    text.replace(VARIABLE, (_, name: string, otherwise: string | undefined) => {
      const value = env[name] || otherwise;
      if (value === undefined) throw new MissingVariable(`The environment variable ${name} is not set.`);
      return value;
    });
