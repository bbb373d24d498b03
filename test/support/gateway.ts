import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DestinationStream } from 'pino';
import { redactUrl } from '../../src/auth/redact.ts';
import { mintToken } from '../../src/auth/token.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { Gateway } from '../../src/gateway.ts';
import { makeLogger } from '../../src/ops/logging.ts';
import type { ImportModule } from '../../src/tools/module/tool-module.ts';
import { running } from './running.ts';

export const SECRET = 'a secret of the tests that is long enough';

export interface TestClaims {
  readonly sub?: string;
  readonly scope?: string;
  readonly subscribe?: readonly string[];
  readonly publish?: readonly string[];
  readonly agents?: readonly string[];
  readonly ttlSeconds?: number;
}

/** A token that the gateways of the tests accept; by default it may use every channel. */
export const tokenFor = ({
  sub = 'tester',
  subscribe = ['#'],
  publish = ['#'],
  ttlSeconds = 600,
  ...rest
}: TestClaims = {}): string => mintToken(SECRET, { sub, channels: { subscribe, publish }, ...rest }, ttlSeconds);

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly url: string;
  readonly port: number;
  readonly config: Config;
  stop(): Promise<void>;
}

/** The examples of this repository are not those of the tests. */
const NO_MANIFESTS = join(tmpdir(), 'sluice-no-manifests');
mkdirSync(NO_MANIFESTS, { recursive: true });

export interface TestGatewayOptions {
  /** Where sluice.yaml is looked for; nowhere if absent. */
  readonly directory?: string;
  readonly load?: ImportModule;
}

/**
 * A whole gateway in this process, on a port of its own. Settings are given as environment variables, as an operator
 * would; by default there is a key, the embedded store and no log.
 */
export const startGateway = async (
  env: Readonly<Record<string, string>> = {},
  destination?: DestinationStream,
  { directory = '/nonexistent', load }: TestGatewayOptions = {},
): Promise<RunningGateway> => {
  const { config } = loadConfig({
    env: {
      SLUICE_JWT_SECRET: SECRET,
      PORT: '0',
      SLUICE_MANIFESTS: NO_MANIFESTS,
      LOG_LEVEL: destination ? 'debug' : 'silent',
      SLUICE_SHUTDOWN_GRACE_SECONDS: '1',
      ...env,
    },
    directory,
  });
  const logger = makeLogger({
    level: config.log.level,
    format: config.log.format,
    redactUrl,
    ...(destination && { destination }),
  });
  const gateway = await Gateway.open({ config, logger, ...(load && { load }) });
  const url = await gateway.start();
  const started: RunningGateway = {
    gateway,
    url,
    port: Number(new URL(url).port),
    config,
    stop: async () => {
      running.delete(started);
      await gateway.stop();
    },
  };
  running.add(started);
  return started;
};
