import type { Catalogue } from './catalogue.ts';
import type { PlainObject } from './plain.ts';

const UNFIT = /[^A-Za-z0-9_-]/g;

/** The MCP servers that agents bring along, by the names of their tools; the first of a name counts. */
export const serversOf = (catalogue: Catalogue): ReadonlyMap<string, PlainObject> => {
  const servers = new Map<string, PlainObject>();
  for (const { mcpServers } of catalogue.agents()) {
    for (const { name, entry } of mcpServers()) {
      const known = name.replaceAll(UNFIT, '-').slice(0, 64);
      if (!servers.has(known)) servers.set(known, entry);
    }
  }
  return servers;
};
