import { bindingsOf, checkOf } from './capability.ts';
import type { Identity } from './identity.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { given, isObject, numberOf, objectOf, textOf, textsOf } from './plain.ts';
import type { Task } from './task.ts';

const TIMEOUT_SECONDS = 300;

export const readTask = (document: ManifestDocument, identity: Identity): Task => {
  const manifest = objectOf(document.value);
  const { execution, capabilities, input, output } = objectOf(manifest.spec);
  const { type, runtime, entrypoint, timeout_seconds } = objectOf(execution);
  return {
    ...identity,
    kind: 'Task',
    ...given({
      execution: given({
        type: textOf(type) ?? '',
        runtime: textOf(runtime),
        entrypoint: textOf(entrypoint),
      }),
      timeoutSeconds: numberOf(timeout_seconds) ?? TIMEOUT_SECONDS,
      capabilities: textsOf(capabilities),
      inputSchema: isObject(input) ? input : undefined,
      inputCheck: checkOf(input, '/spec/input', document),
      outputSchema: isObject(output) ? output : undefined,
      outputCheck: checkOf(output, '/spec/output', document),
      bindings: Object.fromEntries(bindingsOf(manifest.runtime)),
    }),
  };
};
