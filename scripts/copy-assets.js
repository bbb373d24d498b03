// What the compiler does not carry over: the Lua scripts stand beside the code that loads them, package.json above it.
import { cpSync } from 'node:fs';

const out = process.argv[2] ?? 'dist';
for (const room of ['streams', 'limits', 'jobs', 'environments'])
  cpSync(`src/${room}/lua`, `${out}/${room}/lua`, { recursive: true });
if (out !== 'dist') cpSync('package.json', `${out}/../package.json`);
