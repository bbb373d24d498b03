import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { makeDirectory } from './directory.ts';
import { running } from './running.ts';

const CLI = join(__dirname, '../../dist/cli/sluice.js');

export interface CliOptions {
  /** Instead of this process's own, so that no setting of whoever runs the tests gets in. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it reads on standard input. */
  readonly input?: string;
  /** Files of its working directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Ended {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);

/** The built command line as a process of its own, in an empty directory that is also its HOME. */
export class Cli {
  readonly child: ChildProcess;
  /** Where it works. */
  readonly directory: string;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], { env = {}, input = '', files = {} }: CliOptions = {}) {
    const directory = makeDirectory();
    this.directory = directory.path;
    for (const [name, content] of Object.entries(files)) directory.write(name, content);
    // setpriv: the kernel kills it when this process dies, even by SIGKILL
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, CLI, ...args], {
      cwd: directory.path,
      env: { PATH: process.env.PATH, HOME: directory.path, ...env },
    });
    this.child.stdin?.on('error', () => {}); // it may end without reading
    this.child.stdin?.end(input);
    this.child.stdout?.on('data', (bytes: Buffer) => {
      this.stdout += bytes.toString();
    });
    this.child.stderr?.on('data', (bytes: Buffer) => {
      this.stderr += bytes.toString();
    });
    running.add(this);
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code) => {
        running.delete(this);
        directory.remove();
        resolve({ code, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Whole lines of standard output. */
  get lines(): string[] {
    return linesOf(this.stdout);
  }

  /** Whole lines of standard error. */
  get notes(): string[] {
    return linesOf(this.stderr);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

/** Runs a command to its end. */
export const runCli = (args: readonly string[], options?: CliOptions): Promise<Ended> => new Cli(args, options).ended;
