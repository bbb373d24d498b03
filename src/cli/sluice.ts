#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { type Flags, flagOptions } from '../config/text-sources.ts';
import { version } from '../version.ts';
import { type PublishOptions, publishTo } from './publish.ts';
import { type RemoteOptions, remoteOf } from './remote.ts';
import { type TailOptions, tail } from './tail.ts';
import { makeToken, type TokenOptions } from './token.ts';
import type { ToolsOptions } from './tools.ts';
import { UsageError } from './usage-error.ts';
import type { ValidateOptions } from './validate.ts';

const list = (value: string, before: string[]): string[] => [...before, ...value.split(',').map((part) => part.trim())];

const positive = (value: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(value);
};

const withRemote = (command: Command): Command =>
  command
    .option('--url <url>', 'where the gateway is (SLUICE_URL, else http://127.0.0.1:8080)')
    .option('--token <token>', 'the token to use (SLUICE_TOKEN)');

const program = new Command('sluice')
  .description('One gate for every event stream of an AI agent platform.')
  .version(version())
  .exitOverride();

const serving = program
  .command('serve')
  .description('run the gateway; every setting may also stand in sluice.yaml or in the environment')
  .action(async (flags: Flags) => {
    const { serve } = await import('../main.ts'); // the other commands start faster without a gateway
    await serve(flags);
  });
for (const { flags, description } of flagOptions()) serving.option(flags, description);

program
  .command('token')
  .description('sign a token with the configured key')
  .requiredOption('--sub <name>', 'who it is for')
  .option('--subscribe <patterns>', 'channels that may be followed, e.g. "content.*,agent.#"', list, [])
  .option('--publish <patterns>', 'channels that may be published to', list, [])
  .option('--scope <scopes>', 'capabilities, ors, agents, responses, admin', list, [])
  .option('--agent <uris>', 'agents that may be spoken for, e.g. agent://default/writer', list, [])
  .option('--ttl <time>', 'how long it is good for', '24h')
  .option('--config <file>', 'the settings file')
  .action((options: TokenOptions) => {
    console.log(makeToken(options));
  });

withRemote(program.command('publish'))
  .description('publish an event and print its id')
  .argument('<channel>')
  .argument('<data>', 'JSON, or text; - reads it from standard input')
  .option('--type <type>', 'message, status, capability_response or error')
  .option('--agent-id <uri>', 'the agent it comes from')
  .option('--correlation-id <id>', 'the request it belongs to')
  .option('--idempotency-key <key>', 'publish once, however often this is repeated')
  .action(async (channel: string, data: string, options: PublishOptions & RemoteOptions) => {
    console.log(await publishTo(remoteOf(options), channel, data, options));
  });

withRemote(program.command('tail'))
  .description('follow channels; reconnects by itself and says when events were lost')
  .argument('<channels>', 'names and patterns with commas between them, e.g. "content.*,agent.status"')
  .option('--after <id>', 'go on after this event id')
  .option('--count <n>', 'end after so many events', positive)
  .option('--json', 'print the whole events')
  .action((channels: string, options: TailOptions & RemoteOptions) =>
    tail(remoteOf(options), channels, options, console.log, console.error),
  );

const tools = program.command('tools').description('see and try the configured tools, in a process of their own');
tools
  .command('list')
  .description('every tool, with what it comes from')
  .option('--json', 'print everything about them')
  .option('--config <file>', 'the settings file')
  .action(async (options: ToolsOptions) => {
    const { listTools } = await import('./tools.ts');
    await listTools(options, console.log, console.error);
  });
tools
  .command('call')
  .description('call a tool and print its result; exits with 1 if the tool says that it failed')
  .argument('<name>')
  .argument('[input]', 'JSON', '{}')
  .option('--json', 'print the whole result')
  .option('--config <file>', 'the settings file')
  .action(async (name: string, input: string, options: ToolsOptions) => {
    const { callTool } = await import('./tools.ts');
    if (!(await callTool(name, input, options, console.log, console.error))) process.exitCode = 1;
  });

program
  .command('validate')
  .description('check manifests; exits with 0 if they can be served, 1 if not, 3 if a path is not there')
  .argument('<paths...>', 'folders, which are searched for *.ossa.yaml, *.ossa.yml and *.ossa.json, and files')
  .option('--strict', 'what the official schema does not allow is an error')
  .addOption(new Option('--output <form>', 'for people or for programs').choices(['text', 'json']).default('text'))
  .option('--ossa-schema <folder>', 'where the official schemas are, as ossa-0.3.2.schema.json and so on')
  .addOption(
    new Option('--unknown-version <rule>', 'what a version is that the gateway does not know')
      .choices(['warn', 'reject'])
      .default('warn'),
  )
  .action(async (paths: string[], options: ValidateOptions) => {
    if (options.strict && options.ossaSchema === undefined) {
      console.error('--strict has nothing to be strict about without --ossa-schema.');
    }
    const { validate } = await import('./validate.ts');
    const colours = process.stdout.isTTY === true && !process.env.NO_COLOR;
    process.exitCode = await validate(paths, options, console.log, colours);
  });

// `sluice tail demo | head -1`: whoever has seen enough is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

/** 2: what was asked for cannot be understood or is set wrongly; 1: it was understood and failed. */
const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2; // help, too, is thrown
  return error instanceof UsageError || error instanceof ConfigError ? 2 : 1;
};

const linesOf = (error: unknown): readonly string[] => {
  if (error instanceof CommanderError) return []; // it has been said
  if (error instanceof ConfigError) return error.problems;
  return [error instanceof Error ? error.message : String(error)];
};

try {
  await program.parseAsync();
} catch (error) {
  for (const line of linesOf(error)) console.error(line);
  process.exitCode = exitCodeOf(error);
}
