import { redactUrl } from './auth/redact.ts';
import { loadConfig } from './config/config.ts';
import { describe } from './config/describe.ts';
import type { Flags } from './config/text-sources.ts';
import { Gateway } from './gateway.ts';
import { makeLogger } from './ops/logging.ts';
import { version } from './version.ts';

/** What a newcomer needs to see something within a minute. */
const welcome = (url: string, store: string, token: string): string => `
Sluice ${version()} listens on ${url} with ${store}, for this machine only. No key is configured, so it has
made one for this run; this token may do everything and is good for 24 hours:

  ${token}

It serves the agents of your manifests (GET /agents), their channels (/events) and capabilities (/capabilities), tickets
and cookies for browsers (/auth), health and metrics (/livez, /readyz, /metrics).
Follow a channel, in a browser or a terminal:

  ${url}/events?channels=demo&token=${token}

Publish to it from another terminal:

  curl ${url}/events -H "Authorization: Bearer ${token}" \\
    -d '{"channel":"demo","data":{"hello":"world"}}'

Everything about how the agents are, every five seconds:

  ${url}/agent-status?token=${token}

`;

/** The process: reads the settings, builds, listens, and stops in order when told to. */
export const serve = async (flags: Flags): Promise<void> => {
  const { config, warnings } = loadConfig({ flags });
  const logger = makeLogger({ level: config.log.level, format: config.log.format, redactUrl });
  for (const warning of warnings) logger.warn(warning);
  logger.debug({ settings: describe(config) }, 'These settings are in force.');

  const gateway = await Gateway.open({ config, logger });
  // Before anything is announced: whoever starts it may stop it the moment it says that it listens.
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1); // asked twice: at once
    stopping = true;
    logger.info({ signal }, 'The gateway is about to stop.');
    gateway.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'The gateway did not stop in order.');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('SIGHUP', () => {
    gateway.reload().catch((error: unknown) => logger.error({ err: error }, 'What has changed could not be loaded.'));
  });

  const url = await gateway.start();
  const embedded = config.redis.url === undefined;
  logger.info({ url, version: version(), store: embedded ? 'embedded' : 'redis' }, 'The gateway is listening.');
  const token = gateway.ownToken();
  if (token !== undefined) process.stdout.write(welcome(url, embedded ? 'an embedded store' : 'Redis', token));
};
