import { register } from 'node:module';

let registered = false;

/**
 * Modules of operators import from this package by its name, wherever they lie: a file beside the settings has no
 * node_modules in which Node would find it. The hook runs in a thread of its own, so it is given as text.
 */
export const makeOwnNameKnown = (entry: string): void => {
  if (registered) return;
  registered = true;
  const hook = `
    export const resolve = (specifier, context, next) =>
      specifier === 'sluice' ? { url: ${JSON.stringify(entry)}, shortCircuit: true } : next(specifier, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
};
