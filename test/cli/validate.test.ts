import { validate } from '../../src/cli/validate.ts';
import { agentWith, manifestWith } from '../manifests/judged.ts';
import { runCli } from '../support/child.ts';
import { makeDirectory } from '../support/directory.ts';

const good = agentWith('transport: { sse: { channels: [a.b] } }');
const bad = agentWith('transport:\n  sse:\n    heartbeat: { interval: 0 }');
const doubtful = good.replace('0.3.2', '0.4.0');
const schema = JSON.stringify({ properties: { spec: { required: ['role'] } } });

describe('sluice validate', () => {
  it('is content with good manifests', async () => {
    const files = {
      'm/a.ossa.yaml': good,
      'm/b/c.ossa.yml': manifestWith('Task', 'task', 'execution: { type: idempotent }'),
    };
    expect(await runCli(['validate', 'm'], { files })).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: '2 files, of which can be served: 1 agent, 0 workflows, 1 task. no errors, 0 warnings.\n',
    });
  });

  it('names file, line, column and layer of what is wrong, and fails', async () => {
    expect(await runCli(['validate', 'm/a.ossa.yaml', 'm'], { files: { 'm/a.ossa.yaml': bad } })).toEqual({
      ...{ code: 1, stderr: '' },
      stdout:
        'm/a.ossa.yaml:8:30 error (layer 2: what is served)\n' +
        '  spec.transport.sse.heartbeat.interval must be a number of seconds from 1 to 3600, not 0.\n' +
        '1 file, of which can be served: 0 agents, 0 workflows, 0 tasks. 1 error, 0 warnings.\n',
    });
  });

  it('reads a file of any name', async () => {
    expect((await runCli(['validate', 'mine.yaml'], { files: { 'mine.yaml': bad } })).code).toBe(1);
    expect((await runCli(['validate', '.'], { files: { 'mine.yaml': bad } })).code).toBe(0);
  });

  it('prints JSON for programs', async () => {
    const { code, stdout } = await runCli(['validate', 'a.ossa.yaml', '--output', 'json'], {
      files: { 'a.ossa.yaml': bad },
    });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      findings: [
        {
          ...{ file: 'a.ossa.yaml', document: 1, line: 8, column: 30, layer: 2, severity: 'error' },
          pointer: '/spec/transport/sse/heartbeat/interval',
          message: 'spec.transport.sse.heartbeat.interval must be a number of seconds from 1 to 3600, not 0.',
        },
      ],
      summary: { files: 1, agents: 0, workflows: 0, tasks: 0, errors: 1, warnings: 0, missing: [] },
    });
  });

  it.each([
    { args: ['nowhere'], says: 'There is no nowhere.' },
    { args: ['a.ossa.yaml', 'nowhere.yaml'], says: 'There is no nowhere.yaml.' },
    {
      args: ['a.ossa.yaml', '--ossa-schema', 'nowhere'],
      says: 'The folder of the official schemas cannot be read (ENOENT).',
    },
  ])('ends with 3 if something is not there: $args', async ({ args, says }) => {
    const { code, stdout } = await runCli(['validate', ...args], { files: { 'a.ossa.yaml': good } });
    expect(stdout).toContain(says);
    expect(code).toBe(3);
  });

  it.each([
    { args: [], says: /missing required argument 'paths'/ },
    { args: ['a', '--output', 'xml'], says: /Allowed choices are text, json/ },
    { args: ['a', '--unknown-version', 'maybe'], says: /Allowed choices are warn, reject/ },
    { args: ['a', '--strickt'], says: /unknown option '--strickt'/ },
  ])('ends with 2 if it does not understand: $args', async ({ args, says }) => {
    const { code, stderr, stdout } = await runCli(['validate', ...args]);
    expect(stderr).toMatch(says);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it.each([
    { args: [], code: 0, counted: 'no errors, 1 warning.' },
    { args: ['--unknown-version=reject'], code: 1, counted: '1 error, 0 warnings.' },
  ])('judges unknown versions as it is told: $args', async ({ args, code, counted }) => {
    const ended = await runCli(['validate', 'a.ossa.yaml', ...args], { files: { 'a.ossa.yaml': doubtful } });
    expect(ended.code).toBe(code);
    expect(ended.stdout).toContain(counted);
  });

  it.each([
    { args: [], code: 0, severity: 'warning' },
    { args: ['--strict'], code: 1, severity: 'error' },
  ])('takes official schemas as seriously as it is told: $args', async ({ args, code, severity }) => {
    const files = { 'a.ossa.yaml': good, 'schemas/ossa-0.3.2.schema.json': schema };
    const ended = await runCli(['validate', 'a.ossa.yaml', '--ossa-schema', 'schemas', ...args], { files });
    expect(ended.stdout).toContain(
      `a.ossa.yaml:5:1 ${severity} (layer 3: official schema)\n  OSSA 0.3.2: spec.role is missing.\n`,
    );
    expect(ended.code).toBe(code);
  });

  it('says what strict needs', async () => {
    const ended = await runCli(['validate', 'a.ossa.yaml', '--strict'], { files: { 'a.ossa.yaml': good } });
    expect(ended).toMatchObject({
      code: 0,
      stderr: '--strict has nothing to be strict about without --ossa-schema.\n',
    });
  });

  it('has no colours where nobody looks, and some on a terminal', async () => {
    const directory = makeDirectory();
    const file = directory.write('a.ossa.yaml', bad);
    const lines: string[] = [];
    expect(await validate([file], {}, (line) => lines.push(line), true)).toBe(1);
    expect(lines[0]).toContain('\x1b[31merror\x1b[0m');
    lines.length = 0;
    await validate([file], {}, (line) => lines.push(line), false);
    expect(lines.join('')).not.toContain('\x1b');
    directory.remove();
  });
});
