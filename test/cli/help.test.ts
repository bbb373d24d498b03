import { runCli } from '../support/child.ts';

describe('--help', () => {
  it.each([
    { args: ['--help'], says: ['serve', 'token', 'publish', 'tail', 'validate', '--version'] },
    { args: ['serve', '--help'], says: ['--port <value>', '--redis-key-prefix <value>', '--config <file>'] },
    { args: ['token', '--help'], says: ['--sub <name>', '--subscribe <patterns>', '--scope <scopes>', '--ttl <time>'] },
    { args: ['publish', '--help'], says: ['<channel>', '<data>', '--url <url>', 'SLUICE_TOKEN', '--idempotency-key'] },
    { args: ['tail', '--help'], says: ['<channels>', '--url <url>', '--after <id>', '--count <n>', '--json'] },
    { args: ['validate', '--help'], says: ['<paths...>', '--strict', '--output <form>', '--ossa-schema <folder>'] },
  ])('explains itself: sluice $args', async ({ args, says }) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const text of says) expect(stdout).toContain(text);
  });

  it('offers no flag for a secret, which every user of the machine could read', async () => {
    const { stdout } = await runCli(['serve', '--help']);
    expect(stdout).not.toMatch(/--jwt-secret|--redis-url|password/);
  });
});

describe('what cannot be understood', () => {
  it.each([
    { args: ['sevre'], says: /unknown command 'sevre'/ },
    { args: ['serve', '--prot', '80'], says: /unknown option '--prot'/ },
    { args: ['token'], says: /--sub/ },
    { args: ['publish', 'demo'], says: /missing required argument 'data'/ },
    { args: ['tail'], says: /missing required argument 'channels'/ },
    { args: ['tail', 'demo', '--count', '0'], says: /whole number above 0/ },
  ])('is refused with 2 and without a stack: sluice $args', async ({ args, says }) => {
    const { code, stdout, stderr } = await runCli(args);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/^ +at /m);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});
