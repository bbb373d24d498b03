import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing else is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** Where a `setpriv` is that knows `--pdeathsig`. */
  readonly setpriv: string | undefined;
  readonly output: (chunk: Buffer) => void;
  readonly notes: (chunk: Buffer) => void;
}

/** Between two steps of stopping: the end of input, SIGTERM, SIGKILL. */
const STEP_MS = 1_000;
/** Who has left the group may hold the output open for ever. */
const OUTPUT_MS = 500;
/** Waits until its input ends, which also happens when this process is killed, and then ends a group of processes. */
const GUARD = 'read -r line; kill -s KILL -- "-$1"';

const windows = process.platform === 'win32';

/** A `setpriv` that can bind a child's life to ours, or undefined. Only Linux has it, and not in every build. */
export const findSetpriv = (): Promise<string | undefined> =>
  new Promise((found) => {
    if (process.platform !== 'linux') return found(undefined);
    execFile('setpriv', ['--pdeathsig', 'KILL', '--', 'true'], { timeout: 5_000 }, (error) =>
      found(error ? undefined : 'setpriv'),
    );
  });

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Looked up here and not by the wrapper, so that the error names what is missing. */
const findProgram = ({ command, env, cwd = '.' }: ProcessOptions): string => {
  if (windows) return command;
  if (command.includes('/')) {
    const path = isAbsolute(command) ? command : resolve(cwd, command);
    if (isProgram(path)) return path;
    throw new Error(`"${command}" is not a program that can be run.`);
  }
  for (const directory of (env.PATH ?? '').split(delimiter)) {
    const path = join(directory || '.', command);
    if (isProgram(path)) return path;
  }
  throw new Error(`"${command}" is not found on the PATH.`);
};

/**
 * A child process with everything it starts: they are a process group, which ends as a whole. It also ends when this
 * process is killed: the child itself by the kernel where there is `setpriv`, the group by a guard that waits for the
 * end of its input.
 */
export class ServerProcess {
  /** Resolves to how it ended, once its group is gone and its output is read. */
  readonly ended: Promise<string>;
  private readonly child: ChildProcessWithoutNullStreams;
  private over = false;

  private constructor(child: ChildProcessWithoutNullStreams, { output, notes }: ProcessOptions) {
    this.child = child;
    child.stdout.on('data', output);
    child.stderr.on('data', notes);
    // It may close them, or end, whenever it likes; the end itself is told below.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {});
    const guard = this.guard();
    this.ended = new Promise((tell) => {
      child.once('exit', (code, signal) => {
        this.over = true;
        this.kill('SIGKILL'); // whoever is left has lost the one it belongs to
        const late = setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, OUTPUT_MS);
        child.once('close', () => {
          clearTimeout(late);
          guard?.kill('SIGKILL');
          tell(signal ? `was ended by ${signal}` : `ended with code ${code}`);
        });
      });
    });
  }

  /** Rejects with one sentence if it cannot be started. */
  static start(options: ProcessOptions): Promise<ServerProcess> {
    return new Promise((started, failed) => {
      const { args, env, cwd, setpriv } = options;
      const program = findProgram(options);
      const [file, all] = setpriv ? [setpriv, ['--pdeathsig', 'KILL', '--', program, ...args]] : [program, [...args]];
      const child = spawn(file, all, {
        env,
        ...(cwd !== undefined && { cwd }),
        stdio: 'pipe',
        detached: !windows, // a group of its own
        windowsHide: true,
      });
      child.once('error', (error: NodeJS.ErrnoException) => {
        const where = cwd === undefined ? '' : ` in ${cwd}`;
        failed(new Error(`"${options.command}" could not be started${where} (${error.code ?? error.message}).`));
      });
      child.once('spawn', () => started(new ServerProcess(child, options)));
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Resolves when the bytes are on their way. */
  write(text: string): Promise<void> {
    return new Promise((written, failed) => {
      if (this.over) failed(new Error('The process has ended.'));
      else this.child.stdin.write(text, (error) => (error ? failed(error) : written()));
    });
  }

  /** Asks it to end, then tells it to, then ends it. */
  async stop(): Promise<void> {
    this.child.stdin.end();
    if (await this.endsSoon()) return;
    this.kill('SIGTERM');
    if (await this.endsSoon()) return;
    this.kill('SIGKILL');
    await this.endsSoon();
  }

  private async endsSoon(): Promise<boolean> {
    const given = new AbortController();
    const late = sleep(STEP_MS, false, { signal: given.signal }).catch(() => false);
    try {
      return await Promise.race([this.ended.then(() => true), late]);
    } finally {
      given.abort();
    }
  }

  private kill(signal: NodeJS.Signals): void {
    try {
      if (windows) this.child.kill(signal);
      else process.kill(-this.pid, signal);
    } catch {
      // The group is gone already.
    }
  }

  private guard(): { kill(signal: NodeJS.Signals): boolean } | undefined {
    if (windows) return undefined;
    const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(this.pid)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true, // a Ctrl-C is for us, not for it
      env: {},
    });
    guard.on('error', () => {}); // without a shell there is still the end of input
    guard.stdin.on('error', () => {});
    guard.unref();
    return guard;
  }
}
