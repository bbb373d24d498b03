import { messageOf } from '../../tools/message-of.ts';
import { exportsOf, type ImportModule } from '../../tools/module/tool-module.ts';
import type { Environment } from '../environment.ts';
import { isDefinedEnvironment } from './define-environment.ts';
import { ModuleEnvironment, type ModuleEnvironmentOptions } from './module-environment.ts';

/** A JavaScript file of the operator that exports environments. Throws one sentence that names the file. */
export const loadEnvironmentModule = async (
  path: string,
  load?: ImportModule,
  options: ModuleEnvironmentOptions = {},
): Promise<readonly Environment[]> => {
  try {
    const exported = await exportsOf(path, load);
    const defined = [...new Set(Object.values(exported).flat())].filter(isDefinedEnvironment);
    if (defined.length === 0) throw new Error('It exports nothing that defineEnvironment has made.');
    if (options.name !== undefined && defined.length > 1) {
      throw new Error(`It exports ${defined.length} environments, which cannot all be called ${options.name}.`);
    }
    const environments = defined.map((one) => new ModuleEnvironment(one, options));
    const twice = environments.find(({ name }, i) => environments.findIndex((other) => other.name === name) !== i);
    if (twice) throw new Error(`It has two environments called ${twice.name}.`);
    return environments;
  } catch (error) {
    const reason = messageOf(error);
    throw new Error(`The environments of ${path} cannot be used: ${reason}`, { cause: error });
  }
};
