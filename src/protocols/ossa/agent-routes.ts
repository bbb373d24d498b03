import express, { type Router } from 'express';
import type { Authenticator } from '../../auth/authenticate.ts';
import type { Principal } from '../../auth/principal.ts';
import { type Agent, channelsOf } from '../../manifests/agent.ts';
import type { Catalogue } from '../../manifests/catalogue.ts';
import { encodeUuid } from '../../streams/id.ts';
import type { StreamLog } from '../../streams/log.ts';
import { Problem, quoted } from '../problem.ts';
import { EVENT_TYPES, readStoredForm } from './event.ts';
import { mayFollow } from './wanted.ts';

export interface AgentRoutesOptions {
  readonly authenticator: Authenticator;
  readonly catalogue: () => Catalogue;
  readonly log: StreamLog;
  /** How many follow a channel. */
  readonly followersOf: (channel: string) => number;
}

const MAX_CHANNELS = 500;

/** What is loaded, without secrets, and of channels only what the token may see. */
const shown = (agent: Agent, principal: Principal): Readonly<Record<string, unknown>> => ({
  name: agent.name,
  uri: agent.uri,
  version: agent.version ?? null,
  description: agent.description ?? null,
  role: agent.role ?? null,
  endpoint: agent.sse.enabled ? agent.sse.endpoint : null,
  channels: channelsOf(agent).filter((channel) => mayFollow(principal, channel)),
  capabilities: agent.capabilities.map(({ name, description, inputSchema, outputSchema, scopes, timeoutSeconds }) => ({
    name,
    qualifiedName: `${agent.name}.${name}`,
    description: description ?? null,
    inputSchema: inputSchema ?? null,
    outputSchema: outputSchema ?? null,
    scopes,
    timeoutSeconds: timeoutSeconds ?? null,
  })),
  tools: agent.tools.map(({ name, type, description }) => ({
    name: name ?? null,
    type: type ?? null,
    description: description ?? null,
  })),
  model: agent.llm?.model ?? null,
  access: agent.access?.tier ?? null,
});

export const agentRoutes = ({ authenticator, catalogue, log, followersOf }: AgentRoutesOptions): Router => {
  const router = express.Router({ caseSensitive: true });

  router.get('/agents', async (req, res) => {
    const principal = await authenticator.require(req);
    const agents = catalogue().agents();
    res.set('Cache-Control', 'no-store').json({ agents: agents.map((agent) => shown(agent, principal)) });
  });

  router.get('/agents/:name', async (req, res) => {
    const principal = await authenticator.require(req);
    const agent = catalogue().agent(req.params.name);
    if (!agent) throw new Problem('NOT_FOUND', `There is no agent ${quoted(req.params.name)}.`);
    res.set('Cache-Control', 'no-store').json(shown(agent, principal));
  });

  /** Every channel that a manifest declares or somebody has published to. */
  router.get('/channels', async (req, res) => {
    const principal = await authenticator.require(req);
    const current = catalogue();
    const known = [...new Set([...current.channelNames(), ...(await log.names('#'))])].sort();
    const names = known.filter((name) => mayFollow(principal, name)).slice(0, MAX_CHANNELS);
    const kept = new Map<string, { readonly events: number; readonly lastId: string | null }>();
    for (let partition = 0; partition < log.partitions; partition++) {
      const here = names.filter((name) => log.partitionOf(name) === partition);
      if (here.length === 0) continue;
      const { channels, epoch } = await log.tails(partition, here, (name) => log.limitsOf(name).events);
      for (const [name, { events }] of channels) {
        const last = events.at(-1);
        const lastId =
          last && `${EVENT_TYPES[readStoredForm(last.data).type]}-${encodeUuid({ ...last, partition, epoch })}`;
        kept.set(name, { events: events.length, lastId: lastId ?? null });
      }
    }
    res.set('Cache-Control', 'no-store').json({
      channels: names.map((name) => ({
        name,
        agents: current.channel(name)?.agents.map(({ uri }) => uri) ?? [],
        lastId: kept.get(name)?.lastId ?? null,
        events: kept.get(name)?.events ?? 0,
        subscribers: followersOf(name),
      })),
    });
  });
  return router;
};
