import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Finding } from './finding.ts';
import { Manifests } from './manifests.ts';
import { RESERVED } from './reserved.ts';

/** Where manifests are looked for when nobody says otherwise. */
const DEFAULT_FOLDER = 'manifests';

const place = ({ file, line, column }: Finding): string => `${file}:${line}:${column}`;

/**
 * The manifests of the settings; what is wrong with them is said in the log, and everything else is served. `taken` are
 * first segments of paths that belong to somebody else, beside the gateway's own.
 */
export const openManifests = async (
  config: Config,
  logger: Logger,
  taken: readonly string[] = [],
): Promise<Manifests> => {
  const { paths, schemas, strict } = config.manifests;
  const folder = resolve(DEFAULT_FOLDER);
  const wanted = paths.length > 0 ? paths : existsSync(folder) ? [folder] : [];
  const manifests = await Manifests.open({
    paths: wanted,
    namespace: config.namespace,
    env: process.env,
    reserved: { ...RESERVED, segments: [...RESERVED.segments, ...taken] },
    strict,
    watch: wanted.length > 0,
    ...(schemas !== undefined && { schemaDirectory: schemas }),
  });
  const said = new Set<string>();
  const say = (findings: readonly Finding[]): void => {
    for (const finding of findings) {
      const text = `${place(finding)} ${finding.message}`;
      if (said.has(text)) continue;
      said.add(text);
      if (finding.severity === 'error') logger.error({ pointer: finding.pointer }, text);
      else logger.warn({ pointer: finding.pointer }, text);
    }
  };
  say(manifests.findings);
  manifests.onChange((_, change) => {
    said.clear();
    say(change.findings);
    const { added, changed, removed, kept } = change;
    logger.info({ added, changed, removed, kept }, 'The manifests have changed.');
  });
  return manifests;
};
