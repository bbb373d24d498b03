import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Express, Request } from 'express';
import type { Logger } from 'pino';
import { AgentGate } from './agents/agent-gate.ts';
import { apiDocument } from './api-document.ts';
import { makeApp } from './app.ts';
import { AuthError } from './auth/auth-error.ts';
import { openAuth } from './auth/open-auth.ts';
import { SCOPES } from './auth/principal.ts';
import { authRoutes } from './auth/routes.ts';
import { SessionCookie } from './auth/session.ts';
import { mintToken } from './auth/token.ts';
import type { Config } from './config/config.ts';
import { ConfigError } from './config/config-error.ts';
import { redisSettings } from './config/redis.ts';
import { corsFor } from './cors.ts';
import { EpisodeLog, linesToFile, linesToRedis } from './environments/episode-log.ts';
import { MemoryDirectory } from './environments/memory-directory.ts';
import { openEnvironments } from './environments/open-environments.ts';
import { RedisDirectory } from './environments/redis-directory.ts';
import type { Hosted } from './environments/sessions.ts';
import { Jobs } from './jobs/jobs.ts';
import { MemoryJobStore } from './jobs/memory-store.ts';
import { RedisJobStore } from './jobs/redis/redis-store.ts';
import { AgentRate } from './limits/agent-rate.ts';
import { Board } from './limits/board.ts';
import { Connections } from './limits/connections.ts';
import { EventRate } from './limits/event-rate.ts';
import { PublishRate } from './limits/publish-rate.ts';
import { ListenError } from './listen-error.ts';
import type { Catalogue } from './manifests/catalogue.ts';
import type { Manifests } from './manifests/manifests.ts';
import { serversOf } from './manifests/mcp-servers.ts';
import { openManifests } from './manifests/open-manifests.ts';
import { claimsPath } from './manifests/reserved.ts';
import type { Models } from './models/models.ts';
import { openModels } from './models/open-models.ts';
import { requestLogger } from './ops/logging.ts';
import { Metrics } from './ops/metrics.ts';
import { opsRoutes } from './ops/routes.ts';
import { watchStore } from './ops/store-watch.ts';
import { parseTraceparent } from './ops/traceparent.ts';
import { toolRoutes } from './protocols/agents/tools.ts';
import { type Ors, openOrs } from './protocols/ors/open-ors.ts';
import { agentRoutes } from './protocols/ossa/agent-routes.ts';
import { capabilityDialect } from './protocols/ossa/capability-event.ts';
import { capabilityRoutes } from './protocols/ossa/capability-routes.ts';
import { ossaDialect } from './protocols/ossa/dialect.ts';
import { storedForm } from './protocols/ossa/event.ts';
import { GatewayReports, type ReplicaStats } from './protocols/ossa/gateway-reports.ts';
import { Invocations } from './protocols/ossa/invocations.ts';
import { ossaRoutes } from './protocols/ossa/routes.ts';
import { type ReplicaStatus, StatusReports } from './protocols/ossa/status-reports.ts';
import { statusRoutes } from './protocols/ossa/status-routes.ts';
import { Subscriptions } from './protocols/ossa/subscriptions.ts';
import { CLOSE_REASONS, type CloseReason } from './sse/closing.ts';
import type { Drainable } from './sse/drainable.ts';
import { TimerWheel } from './sse/timer-wheel.ts';
import { Hub } from './streams/hub.ts';
import type { LimitsOf, StreamLog } from './streams/log.ts';
import { MemoryLog } from './streams/memory-log.ts';
import type { RedisPartition } from './streams/redis/partition.ts';
import { RedisLog } from './streams/redis/redis-log.ts';
import type { ImportModule } from './tools/module/tool-module.ts';
import { Toolbox } from './tools/toolbox.ts';
import { version } from './version.ts';

const DAY_SECONDS = 86_400;
/** Clients that a stopping replica sends away come back spread over this time. */
const RETURN_WITHIN_MS = 5_000;

export interface GatewayOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** How modules of tools and environments are loaded; as Node does if absent. */
  readonly load?: ImportModule;
}

/** What is made before the gateway itself, because it takes a moment or may be what stops the start. */
interface Prepared {
  readonly manifests: Manifests;
  readonly metrics: Metrics;
  readonly models: Models;
  readonly toolbox: Toolbox;
  readonly hosted: readonly Hosted[];
}

/** The composition root: every part of the daemon is made and wired here, once, and nowhere else. */
export class Gateway {
  readonly log: StreamLog;
  readonly hub: Hub;
  readonly jobs: Jobs;
  readonly toolbox: Toolbox;
  readonly models: Models;
  readonly manifests: Manifests;
  readonly metrics: Metrics;
  readonly app: Express;
  private readonly config: Config;
  private readonly logger: Logger;
  private readonly server: Server;
  private readonly wheel = new TimerWheel().start();
  private readonly connections: Connections;
  private readonly runningJobs: Connections;
  private readonly sessionPlaces: Connections;
  private readonly ors: Ors;
  private readonly reports: StatusReports;
  private readonly gatewayReports: GatewayReports;
  private readonly subscriptions: Subscriptions;
  private readonly streams = new Set<Drainable>();
  /** Made at every start while no key is configured. */
  private readonly ownSecret: string | undefined;
  private readonly endWatch: () => void;
  private draining = false;
  /** Nobody stays any more: whoever still comes in is sent away as well. */
  private leaving = false;

  private constructor({ config, logger, toolbox, models, manifests, metrics, hosted }: GatewayOptions & Prepared) {
    this.config = config;
    this.logger = logger;
    this.toolbox = toolbox;
    this.models = models;
    this.manifests = manifests;
    this.metrics = metrics;
    this.ownSecret = config.keyConfigured ? undefined : randomBytes(32).toString('base64url');
    const replica = randomUUID();
    const { limits } = config;

    const catalogue = (): Catalogue => manifests.current;
    const limitsOf: LimitsOf = (channel) => {
      const { events = config.buffer.events, ageMs = config.buffer.seconds * 1_000 } =
        catalogue().channel(channel)?.limits ?? {};
      return { events, ageMs };
    };
    const settings = redisSettings(config);
    const shared = settings && new RedisLog({ settings, limitsOf, replica, observe: this.metrics.observeStore });
    this.log = shared ?? new MemoryLog({ limitsOf });
    this.hub = new Hub(this.log);

    const failed = (error: unknown): void => logger.warn({ err: error }, 'Limits are counted by this replica alone.');
    const counts = shared && { redis: () => shared.connection(), keyPrefix: shared.sharedPrefix };
    this.connections = new Connections({
      total: limits.maxConnections,
      perPrincipal: limits.maxConnectionsPerPrincipal,
      replica,
      failed,
      ...counts,
    });
    this.runningJobs = new Connections({
      total: 0,
      perPrincipal: limits.maxJobsPerPrincipal,
      name: 'running',
      replica,
      failed,
      ...counts,
    });
    this.jobs = new Jobs({
      store: shared ? new RedisJobStore(shared.parts) : new MemoryJobStore(),
      replica,
      observe: this.metrics.jobs,
      admit: (principal) => this.runningJobs.acquire(principal),
      failed: (message, error) => logger.error({ err: error }, message),
    });
    this.sessionPlaces = new Connections({
      total: 0,
      perPrincipal: config.ors.maxSessionsPerPrincipal,
      name: 'sessions',
      replica,
      failed,
      ...counts,
    });
    const publishRate = new PublishRate({ perSecond: limits.maxPublishPerSecond, failed, ...counts });

    const { authenticator, tickets } = openAuth({
      ...{ config, shared, ownSecret: this.ownSecret },
      requireTls: process.env.NODE_ENV === 'production',
      warn: (message) => logger.warn(message),
    });
    const adminOr =
      (message: string) =>
      async (req: Request): Promise<void> => {
        const principal = await authenticator.require(req);
        if (!principal.scopes.has('admin')) throw new AuthError('forbidden', message);
      };
    const requireAdmin = adminOr('This needs the scope admin.');
    // In the words that clients of this API know.
    const requireServiceRole = adminOr("This endpoint requires the project's service role key");

    const agentId = `agent://${config.namespace}/gateway`;
    const gate = new AgentGate(new AgentRate({ failed, ...counts }));
    const invocations = new Invocations(this.jobs, gate, { registry: toolbox.registry, models, env: process.env });
    this.subscriptions = new Subscriptions({ hub: this.hub, invocations, warn: (message) => logger.warn(message) });
    this.subscriptions.use(catalogue());
    manifests.onChange((current) => this.subscriptions.use(current));
    const isFailing = (model: string | undefined): boolean => {
      const backend = models.backendOf(model ?? 'default');
      return models.health().some((report) => report.backend === backend && report.state === 'failing');
    };
    this.reports = new StatusReports({
      board: new Board<ReplicaStatus>({ name: 'status', replica, freshMs: 15_000, ...counts }),
      ...{ catalogue, gate, log: this.log },
      delivered: () => Object.values(this.hub.stats().delivered).reduce((sum, count) => sum + count, 0),
      health: { hasTool: (name) => toolbox.registry.find(name) !== undefined, isFailing },
      failed: (error) => logger.debug({ err: error }, 'The status of the agents could not be reported.'),
    });
    this.gatewayReports = new GatewayReports({
      board: new Board<ReplicaStats>({ name: 'stats', replica, freshMs: 6_000, ...counts }),
      ...{ hub: this.hub, log: this.log, agentId },
      connections: () => this.connections.size,
      published: () => this.metrics.publishedEvents,
      jobs: () => this.jobs.running(),
      failed: (error) => logger.debug({ err: error }, 'The gateway could not report about itself.'),
    });
    const opened = (stream: Drainable): void => {
      this.streams.add(stream);
      if (this.leaving) this.sendAway(stream);
    };
    const closed = (stream: Drainable, reason: CloseReason | undefined): void => {
      this.streams.delete(stream);
      if (reason !== undefined) this.metrics.closed(reason);
      if (reason === 'slow') logger.warn('A stream was cut because its reader took nothing.');
    };
    const [firstPart] = shared?.parts ?? [];
    this.ors = openOrs({
      ...{ config, logger, replica, authenticator, hosted, jobs: this.jobs, wheel: this.wheel, opened, closed },
      version: version(),
      directory: firstPart ? new RedisDirectory(firstPart, firstPart.keys.base) : new MemoryDirectory(),
      counts: this.metrics.ors,
      episodes: this.episodeLog(firstPart),
      acquire: async (principal) => {
        const verdict = await this.sessionPlaces.acquire(principal);
        return verdict.allowed ? verdict.release : undefined;
      },
    });
    this.app = makeApp({
      ors: { prefix: config.ors.prefix, router: this.ors.router },
      isEndpoint: (path) => catalogue().hasEndpoint(path),
      trustProxy: config.trustProxy,
      before: [requestLogger({ logger }), corsFor(config.cors.origins)],
      ops: opsRoutes({
        version: version(),
        document: apiDocument(version(), { prefix: config.ors.prefix, open: config.ors.public }),
        publicUrl: config.publicUrl,
        metrics: this.metrics,
        metricsPublic: config.metrics.public,
        authenticate: (req) => authenticator.authenticate(req),
        requireAdmin,
        health: {
          store: () => this.log.health(),
          loaded: () => this.hub.loaded,
          draining: () => this.draining,
        },
        details: () => ({ mcpServers: this.toolbox.mcpStates(), models: this.models.health() }),
      }),
      agents: toolRoutes({ registry: this.toolbox.registry, requireAdmin: requireServiceRole }),
      auth: authRoutes({ authenticator, tickets, cookie: new SessionCookie(config.auth.cookie) }),
      ossa: [
        capabilityRoutes({
          ...{ authenticator, tickets, jobs: this.jobs, catalogue, wheel: this.wheel },
          invocations,
          dialect: capabilityDialect(config.ossa.retryMs),
          heartbeatSeconds: config.ossa.heartbeatSeconds,
          slowMs: limits.slowReaderSeconds * 1_000,
          publicUrl: config.publicUrl,
          acquire: (principal) => this.connections.acquire(principal),
          opened,
          closed,
        }),
        statusRoutes({
          ...{ authenticator, agentId, opened, closed, reports: this.reports, wheel: this.wheel },
          heartbeatSeconds: config.ossa.heartbeatSeconds,
          retryMs: config.ossa.retryMs,
          slowMs: limits.slowReaderSeconds * 1_000,
          acquire: (principal) => this.connections.acquire(principal),
        }),
        agentRoutes({
          ...{ authenticator, catalogue, log: this.log },
          followersOf: (channel) => this.hub.followersOf(channel) + this.gatewayReports.elsewhere(channel),
        }),
        ossaRoutes({
          authenticator,
          catalogue,
          hub: this.hub,
          wheel: this.wheel,
          dialect: ossaDialect(agentId),
          heartbeatSeconds: config.ossa.heartbeatSeconds,
          retryMs: config.ossa.retryMs,
          slowMs: limits.slowReaderSeconds * 1_000,
          maxChannels: limits.maxChannelsPerStream,
          publishing: {
            log: this.log,
            maxEventBytes: limits.maxEventBytes,
            maxEvents: limits.maxEventsPerPost,
            isDeclared: (channel) => config.channels.allowUndeclared || catalogue().channel(channel) !== undefined,
            dataFault: (channel, data, agent) => catalogue().channel(channel)?.payloadFault(data, agent),
            agentOf: (channel) => catalogue().channel(channel)?.agents[0]?.uri ?? agentId,
            admit: (principal, events) => publishRate.take(principal, events),
          },
          acquire: (principal) => this.connections.acquire(principal),
          pace: () => new EventRate(limits.maxEventsPerSecond),
          opened,
          closed,
          traceparentOf: (header) => parseTraceparent(header)?.text,
          published: (events, seconds) => this.metrics.published(events, seconds),
        }),
      ],
    });
    const bringServers = (): void => {
      toolbox.bring(serversOf(catalogue())).catch((error: unknown) => {
        logger.error({ err: error }, 'MCP servers of the manifests could not be started.');
      });
    };
    bringServers();
    manifests.onChange(bringServers);
    manifests.onChange((_, { added, changed, removed, kept, findings }) => {
      const errors = findings.filter(({ severity }) => severity === 'error');
      this.metrics.manifests({ kept: kept.length, errors: errors.length });
      const data = { replica, added, changed, removed, kept, errors };
      const event = { type: 'message', channel: 'gateway.manifests', data, metadata: { agentId } } as const;
      this.log.append([{ channel: event.channel, data: storedForm(event) }]).catch((error: unknown) => {
        logger.debug({ err: error }, 'A change of the manifests could not be published.');
      });
    });
    this.metrics.manifests({
      kept: 0,
      errors: manifests.findings.filter(({ severity }) => severity === 'error').length,
    });
    this.endWatch = watchStore(() => this.log.health(), logger);
    this.metrics.watch({
      hub: () => this.hub.stats(),
      store: () => this.log.health(),
      connections: () => this.connections.size,
      jobs: () => this.jobs.running(),
      sessions: () => this.ors.sessions.counts(),
      mcpServers: () => this.toolbox.mcpStates(),
      closeReasons: CLOSE_REASONS,
    });
    // Room for a URL with many channels and a token in it.
    this.server = createServer({ keepAlive: true, noDelay: true, maxHeaderSize: 65_536 }, this.app);
    this.server.keepAliveTimeout = 65_000; // longer than proxies keep theirs: who closes first must not be us
    this.server.requestTimeout = 60_000; // of the request itself; a stream's answer may last for ever
  }

  /** Throws a `ConfigError` when what the settings name cannot be used; nothing is left running then. */
  static async open({ config, logger, load }: GatewayOptions): Promise<Gateway> {
    const metrics = new Metrics();
    const warn = (message: string): void => logger.warn(message);
    const note = (server: string, line: string): void => logger.debug({ server }, line);
    const opened: { close(): void | Promise<void> }[] = [];
    const keep = <T extends { close(): void | Promise<void> }>(part: T): T => {
      opened.push(part);
      return part;
    };
    try {
      const models = keep(openModels({ settings: config, env: process.env, observe: metrics.models }));
      const hosted = await openEnvironments({ settings: config, env: process.env, ...(load && { load }), warn, note });
      for (const { environment } of hosted) keep(environment);
      const taken = config.ors.prefix === '/' ? hosted.map(({ environment }) => environment.name) : [];
      const prefix = config.ors.prefix.split('/')[1] as string;
      const manifests = keep(await openManifests(config, logger, prefix === '' ? taken : [prefix]));
      const clashes = taken.filter((name) => claimsPath(manifests.findings, name));
      if (clashes.length > 0) {
        throw new ConfigError(
          clashes.map(
            (name) => `ors.environments: no environment can be called ${name}, which is a manifest's endpoint.`,
          ),
        );
      }
      const toolbox = await Toolbox.open({
        ...{ settings: config, env: process.env, observe: metrics.tools, warn, note },
        ...(load && { load }),
        mcpState: ({ name, state, lastError }) => {
          if (state === 'ready') logger.info({ server: name }, 'An MCP server is ready.');
          else if (state === 'failed')
            logger.warn({ server: name, reason: lastError }, 'An MCP server does not start.');
        },
      });
      return new Gateway({ config, logger, metrics, toolbox, models, manifests, hosted });
    } catch (error) {
      for (const part of opened) await part.close();
      throw error;
    }
  }

  /** Reads again what may have changed: manifests, the files of MCP servers and of tools. */
  async reload(): Promise<void> {
    await Promise.all([this.toolbox.reload(), this.manifests.reload()]);
    this.logger.info('Manifests and tools were loaded again.');
  }

  /** Listens; resolves to the address. Throws a `ListenError`, and is over then. */
  async start(): Promise<string> {
    const { host, port } = this.config;
    const failure = await new Promise<Error | undefined>((resolve) => {
      this.server.once('error', resolve);
      this.server.listen(port, host, () => {
        this.server.off('error', resolve);
        resolve(undefined);
      });
    });
    if (failure) {
      await this.release();
      throw new ListenError(host, port, failure);
    }
    return this.url;
  }

  get url(): string {
    const { address, port, family } = this.server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /** A token that may do everything, for whoever has started a gateway without a key. */
  ownToken(): string | undefined {
    if (this.ownSecret === undefined) return undefined;
    const channels = { subscribe: ['#'], publish: ['#'] };
    return mintToken(this.ownSecret, { sub: 'owner', scope: SCOPES.join(' '), channels }, DAY_SECONDS);
  }

  /**
   * Not ready at once; goes on serving for the delay, so that whoever balances the load notices; then sends the streams
   * away, each to come back at another moment, and waits for what is left.
   */
  async stop(): Promise<void> {
    if (this.draining) return;
    this.draining = true;
    const { delaySeconds, graceSeconds } = this.config.shutdown;
    await sleep(delaySeconds * 1_000);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.leaving = true;
    this.subscriptions.close();
    for (const stream of this.streams) this.sendAway(stream);
    this.server.keepAliveTimeout = 1; // connections whose last answer is still to come close behind it
    const begin = performance.now();
    const left = (): number => Math.max(0, graceSeconds * 1_000 - (performance.now() - begin));
    await this.jobs.stop(left());
    await this.ors.close();
    const late = new AbortController();
    await Promise.race([closed, sleep(left(), undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
    this.server.closeAllConnections();
    await closed;
    await this.release();
    this.logger.info('The gateway has stopped.');
  }

  /** Lets go of everything but the server. */
  private async release(): Promise<void> {
    this.endWatch();
    this.reports.close();
    this.gatewayReports.close();
    this.subscriptions.close();
    await this.jobs.close();
    await this.ors.close();
    this.hub.close();
    this.wheel.stop();
    await this.connections.close();
    await this.runningJobs.close();
    await this.sessionPlaces.close();
    await this.manifests.close();
    await this.toolbox.close();
    this.models.close();
    await this.log.close();
  }

  private episodeLog(part: RedisPartition | undefined): EpisodeLog | undefined {
    const { episodeLog } = this.config.ors;
    if (episodeLog === undefined) return undefined;
    const write =
      episodeLog === 'redis' && part ? linesToRedis(part, `${part.keys.base}ors:episodes`) : linesToFile(episodeLog);
    return new EpisodeLog({ write, warn: (message) => this.logger.warn(message) });
  }

  private sendAway(stream: Drainable): void {
    stream.drain(this.config.ossa.retryMs + Math.random() * RETURN_WITHIN_MS);
  }
}
