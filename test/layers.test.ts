import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '..');
const cruise = (cwd: string) =>
  spawnSync(join(root, 'node_modules/.bin/depcruise'), ['src'], { cwd, encoding: 'utf8' });

describe('the rooms of the house', () => {
  it('are all named in the dependency check', () => {
    const config = readFileSync(join(root, '.dependency-cruiser.cjs'), 'utf8');
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of rooms) expect(config).toContain(`'${name}'`);
  });

  it('cannot import upwards unnoticed', () => {
    const copy = mkdtempSync(join(tmpdir(), 'layers-'));
    try {
      cpSync(join(root, 'src'), join(copy, 'src'), { recursive: true });
      for (const file of ['package.json', 'tsconfig.json', '.dependency-cruiser.cjs'])
        cpSync(join(root, file), join(copy, file));
      symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
      expect(cruise(copy).status).toBe(0);
      mkdirSync(join(copy, 'src/protocols/x'), { recursive: true });
      writeFileSync(join(copy, 'src/protocols/x/a.ts'), 'export const a = 1;\n');
      writeFileSync(join(copy, 'src/streams/bad.ts'), "export { a } from '../protocols/x/a.ts';\n");
      const { status, stdout } = cruise(copy);
      expect(status).not.toBe(0);
      expect(stdout).toContain('streams-points-downwards');
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }, 30_000);

  it('hold nothing that names a machine or a registry', () => {
    const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
    for (const file of files) {
      if (!/\.(ts|js|cjs|json|md|lua|ya?ml|sh)$/.test(file)) continue;
      expect(
        `${file}: ${/"resolved": "https?:|[\s"'`]\/(work|farm)\//.exec(readFileSync(join(root, file), 'utf8'))?.[0]}`,
      ).toBe(`${file}: undefined`);
    }
  });
});
