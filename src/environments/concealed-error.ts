/**
 * An error of an environment as it may stand in a log: where it came from, in words without secrets. Its own causes and
 * fields are left out, because nobody knows what is in them.
 */
export const concealedError = (error: unknown, conceal: (text: string) => string): Error => {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const clean = new Error(conceal(message));
  clean.name = name;
  clean.stack = conceal(stack ?? `${name}: ${message}`);
  return clean;
};
