import { didYouMean } from '../config/suggestion.ts';
import { judgeVersion, type UnknownVersion } from './api-version.ts';
import { shown } from './finding.ts';
import { KINDS, type Kind } from './identity.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { isObject } from './plain.ts';

/** What makes a document a manifest. Each is there if it could be read, also when the rest is wrong. */
export interface Envelope {
  readonly kind: Kind | undefined;
  readonly name: string | undefined;
  readonly apiVersion: string | undefined;
  /** The version whose official schema holds. */
  readonly schemaVersion: string | undefined;
}

const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const LONGEST_NAME = 253;

/** Kinds that belong to OSSA, and to nothing that a gateway could serve. */
const OTHER_KINDS: ReadonlySet<string> = new Set(['Flow', 'Skill', 'Validator', 'Taxonomy', 'MessageRouting']);

export interface EnvelopeOptions {
  readonly unknownVersion: UnknownVersion;
  readonly knownVersions: readonly string[];
}

/** The first layer: everything that is wrong here is an error. */
export const readEnvelope = (document: ManifestDocument, options: EnvelopeOptions): Envelope => {
  const wrong = (pointer: string, message: string, ofKey = false): undefined => {
    document.report(1, 'error', pointer, message, ofKey);
    return undefined;
  };
  const { value } = document;
  if (!isObject(value)) {
    wrong('', `A manifest is made of keys and values, not ${shown(value)}.`);
    return { kind: undefined, name: undefined, apiVersion: undefined, schemaVersion: undefined };
  }

  const readVersion = (): Pick<Envelope, 'apiVersion' | 'schemaVersion'> => {
    const none = { apiVersion: undefined, schemaVersion: undefined };
    const { apiVersion } = value;
    if (apiVersion === undefined) {
      if (Object.hasOwn(value, 'ossaVersion')) {
        wrong(
          '/ossaVersion',
          'This is the legacy form with "ossaVersion": migrate it to apiVersion, kind, metadata and spec.',
          true,
        );
      } else {
        wrong('', 'apiVersion is missing, for instance: apiVersion: ossa/v0.3.2.');
      }
      return none;
    }
    if (typeof apiVersion !== 'string') {
      wrong('/apiVersion', `apiVersion must look like ossa/v0.3.2, not ${shown(apiVersion)}.`);
      return none;
    }
    const verdict = judgeVersion(apiVersion, options.knownVersions);
    if (verdict.outcome === 'wrong') wrong('/apiVersion', verdict.message);
    if (verdict.outcome === 'unknown') {
      const severity = options.unknownVersion === 'reject' ? 'error' : 'warning';
      document.report(1, severity, '/apiVersion', verdict.message);
    }
    return { apiVersion, schemaVersion: verdict.outcome === 'wrong' ? undefined : verdict.as };
  };

  const readKind = (): Kind | undefined => {
    const { kind } = value;
    if (kind === undefined) return wrong('', `kind is missing: it is one of ${KINDS.join(', ')}.`);
    const known = KINDS.find((candidate) => candidate === kind);
    if (known !== undefined) return known;
    if (typeof kind === 'string' && OTHER_KINDS.has(kind)) {
      return wrong('/kind', `A ${kind} is not served: kind is one of ${KINDS.join(', ')}.`);
    }
    const hint = typeof kind === 'string' ? didYouMean(kind, KINDS) : '';
    return wrong('/kind', `kind must be one of ${KINDS.join(', ')}, not ${shown(kind)}${hint || '.'}`);
  };

  const readName = (kind: Kind | undefined): string | undefined => {
    const { metadata } = value;
    if (metadata === undefined) return wrong('', 'metadata is missing: a manifest needs at least metadata.name.');
    if (!isObject(metadata)) return wrong('/metadata', `metadata must be keys and values, not ${shown(metadata)}.`);
    const { name } = metadata;
    if (name === undefined) return wrong('/metadata', 'metadata.name is missing.', true);
    if (typeof name !== 'string' || name.length > LONGEST_NAME || !NAME.test(name)) {
      return wrong(
        '/metadata/name',
        `metadata.name must be lower-case letters, digits and "-", at most ${LONGEST_NAME}, that begins and ends with a letter or digit, not ${shown(name)}.`,
      );
    }
    if (name === 'runs' && kind !== 'Task') {
      return wrong('/metadata/name', 'metadata.name cannot be "runs": under that name the gateway serves all runs.');
    }
    return name;
  };

  const version = readVersion();
  const kind = readKind();
  const name = readName(kind);
  if (!Object.hasOwn(value, 'spec')) wrong('', 'spec is missing.');
  else if (!isObject(value.spec)) wrong('/spec', `spec must be keys and values, not ${shown(value.spec)}.`);
  return { kind, name, ...version };
};
