import type { Finding } from './finding.ts';

/** What manifests must leave to the gateway. */
export interface Reserved {
  /** First segments of paths, in lower case: the gateway's routes and the names of ORS environments. */
  readonly segments: Iterable<string>;
  /** First segments of channels that only the gateway writes. */
  readonly channels: Iterable<string>;
}

/** The first segment of every route, and what could be taken for one. */
const SEGMENTS = [
  ...['livez', 'readyz', 'metrics', 'health', 'openapi.json', 'console', 'auth', 'api'],
  ...['responses', 'v1', 'models'],
  ...['events', 'capabilities', 'agent-status', 'agents', 'channels'],
  ...['list_environments', 'create_session', 'create', 'ping', 'delete', 'delete_session', 'version'],
  ...['tools', 'splits', 'task_tools', 'prompt', 'tasks', 'num_tasks', 'task', 'task_range', 'call'],
  ...['docs', 'redoc'],
];

const CHANNELS = ['gateway', 'runs', 'workflows', 'ors', 'responses'];

/** For a gateway without environments. */
export const RESERVED: Reserved = { segments: SEGMENTS, channels: CHANNELS };

/** The one route that manifests share with the gateway. */
export const EVENTS = '/events';

const PATH = /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/;
const LONGEST_PATH = 255;

const liesUnder = (segment: string): string => `must not lie under /${segment}, which the gateway serves itself`;

/** Whether a manifest was refused because its endpoint is just the path of a segment, and not only something under it. */
export const claimsPath = (findings: readonly Finding[], segment: string): boolean => {
  const told = `${liesUnder(segment)}; it is "/${segment}".`.toLowerCase();
  return findings.some(({ message }) => message.toLowerCase().includes(told));
};

/** What is wrong with an endpoint, as a sentence goes on after its name; undefined if nothing is. */
export const endpointFault = (endpoint: string, { segments }: Reserved): string | undefined => {
  if (!endpoint.startsWith('/')) return 'must be an absolute path that begins with "/"';
  if (/[?#]/.test(endpoint)) return 'must be a path without a query or fragment';
  if (endpoint === '/') return 'must not be "/", which the gateway serves itself';
  if (endpoint.length > LONGEST_PATH || !PATH.test(endpoint)) {
    return `must be segments of letters, digits, ".", "_", "~" and "-" behind "/", at most ${LONGEST_PATH} characters`;
  }
  if (endpoint === EVENTS) return undefined;
  const first = (endpoint.split('/')[1] as string).toLowerCase();
  for (const segment of segments) {
    if (segment.toLowerCase() === first) return liesUnder(segment);
  }
  return undefined;
};

export const isReservedChannel = (channel: string, { channels }: Reserved): boolean => {
  const [first] = channel.split('.', 1);
  for (const reserved of channels) if (reserved === first) return true;
  return false;
};
