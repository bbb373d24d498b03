import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { makeDirectory } from './directory.ts';
import { running } from './running.ts';

/** A script in Python (with httpx), JavaScript or Bash as somebody would run it, in a directory of its own. */
export class Script {
  stdout = '';
  stderr = '';
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  constructor(
    files: Readonly<Record<string, string>>,
    main: string,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const directory = makeDirectory();
    for (const [name, content] of Object.entries(files)) directory.write(name, content);
    const [, ending = ''] = /\.(\w+)$/.exec(main) ?? [];
    const command = { py: '/usr/bin/python3', sh: 'bash' }[ending] ?? process.execPath;
    // setpriv: the kernel kills it when this process dies
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', command, join(directory.path, main), ...args], {
      cwd: directory.path,
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: join(__dirname, 'python'),
        PYTHONDONTWRITEBYTECODE: '1',
        ...env,
      },
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    running.add(this);
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code) => {
        running.delete(this);
        directory.remove();
        resolve(code);
      });
    });
  }

  /** What it reads on standard input. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
