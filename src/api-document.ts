import { authPart, TOKEN_OR_TICKET } from './auth/openapi.ts';
import { type ApiDocument, type ApiPart, openapiDocument } from './ops/openapi.ts';
import { opsPart } from './ops/ops-paths.ts';
import { agentsApiPart } from './protocols/agents/openapi.ts';
import { refusalPart } from './protocols/openapi.ts';
import { type OrsPlace, orsPart } from './protocols/ors/openapi.ts';
import { agentsPart } from './protocols/ossa/agent-paths.ts';
import { capabilitiesPart } from './protocols/ossa/capability-paths.ts';
import { eventsPart } from './protocols/ossa/events-paths.ts';

/** Every group of routes, in the order in which they are mounted. */
const partsOf = (ors: OrsPlace): readonly ApiPart[] => [
  opsPart,
  authPart,
  agentsApiPart,
  eventsPart,
  capabilitiesPart,
  agentsPart,
  orsPart(ors),
  refusalPart,
];

/** What the gateway says of itself; without its servers, which depend on where it is found. */
export const apiDocument = (version: string, ors: OrsPlace): Omit<ApiDocument, 'servers'> =>
  openapiDocument({ version, parts: partsOf(ors), security: TOKEN_OR_TICKET });
