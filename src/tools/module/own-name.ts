import { register } from 'node:module';

/** What modules of operators mean by the name of this package. */
const ENTRY = new URL('../../index.js', import.meta.url).href;

let registered = false;

/**
 * Modules of operators import from this package by its name, wherever they lie: a file beside the settings has no
 * node_modules in which Node would find it. The hook runs in a thread of its own, so it is given as text.
 */
export const makeOwnNameKnown = (): void => {
  if (registered) return;
  registered = true;
  const hook = `
    export const resolve = (specifier, context, next) =>
      specifier === 'sluice' ? { url: ${JSON.stringify(ENTRY)}, shortCircuit: true } : next(specifier, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
};
