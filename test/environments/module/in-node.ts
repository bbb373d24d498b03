import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const LOADER = join(__dirname, '../../../dist/environments/module/environment-module.js');

/**
 * Loads a module with environments as the built gateway would, in a process of its own, and runs the body of a function
 * there: it knows `environments`, `signal` and `request(split, index)`. What it returns comes back as JSON.
 */
export const inNode = async (file: string, body: string): Promise<unknown> => {
  const script = `
    import { loadEnvironmentModule } from ${JSON.stringify(LOADER)};
    const environments = await loadEnvironmentModule(${JSON.stringify(file)});
    const { signal } = new AbortController();
    const request = (split, index) => ({ sid: 's', principal: 'p', choice: { split, index }, secrets: {} });
    const run = async () => { ${body} };
    process.stdout.write(JSON.stringify(await run()));`;
  const args = ['--pdeathsig', 'KILL', process.execPath, '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)('setpriv', args, { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout);
};
