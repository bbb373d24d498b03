export type UnknownVersion = 'warn' | 'reject';

/** What the gateway was written against. */
export const KNOWN_VERSIONS: readonly string[] = ['0.3.0', '0.3.1', '0.3.2'];

export type VersionVerdict =
  /** `as`: the version whose official schema holds; none: there is no such schema. */
  | { readonly outcome: 'known'; readonly as: string }
  | { readonly outcome: 'unknown'; readonly as?: string; readonly message: string }
  | { readonly outcome: 'wrong'; readonly message: string };

const FORM = /^ossa\/v(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\.(\d+))?(-[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*)?$/;

/** What stands for a version that somebody was to put in. */
const PLACEHOLDERS = [/\$\{[^}]*\}?/, /\{\{[^}]*\}{0,2}/, /<[^>]*>/, /\d+(?:\.\d+)*\.[xX*](?!\w)/, /%[^%]+%/];

const placeholderIn = (text: string): string | undefined => {
  for (const pattern of PLACEHOLDERS) {
    const found = pattern.exec(text);
    if (found) return found[0];
  }
  return undefined;
};

const numbers = (version: string): number[] => version.split(/[.-]/).slice(0, 3).map(Number);

const compare = (a: readonly number[], b: readonly number[]): number => {
  for (let i = 0; i < 3; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
};

/** The newest known one of the same minor version that is not above. What comes before a version is below it. */
const nearest = (wanted: readonly number[], before: boolean, known: readonly string[]): string | undefined =>
  known
    .filter((version) => {
      const have = numbers(version);
      const order = compare(have, wanted);
      return have[0] === wanted[0] && have[1] === wanted[1] && (order < 0 || (order === 0 && !before));
    })
    .sort((a, b) => compare(numbers(b), numbers(a)))[0];

/** Judges `apiVersion`. */
export const judgeVersion = (apiVersion: string, known: readonly string[] = KNOWN_VERSIONS): VersionVerdict => {
  const placeholder = placeholderIn(apiVersion);
  if (placeholder !== undefined) {
    return {
      outcome: 'wrong',
      message: `apiVersion still holds the placeholder ${placeholder}: put a version in its place, for instance ossa/v0.3.2.`,
    };
  }
  const [form, major = '', minor, patch, more, before] = FORM.exec(apiVersion) ?? [];
  if (form === undefined) {
    return { outcome: 'wrong', message: `apiVersion must look like ossa/v0.3.2, not ${JSON.stringify(apiVersion)}.` };
  }
  const version = apiVersion.slice('ossa/v'.length);
  if (known.includes(version)) return { outcome: 'known', as: version };
  const wanted = [Number(major), Number(minor ?? 0), patch === undefined ? Number.MAX_SAFE_INTEGER : Number(patch)];
  if (compare(wanted, [0, 2, 2]) < 0) {
    return { outcome: 'wrong', message: `OSSA ${version} is too old: the gateway reads 0.2.2 and newer.` };
  }
  const as = minor === undefined ? undefined : nearest(wanted, before !== undefined && more === undefined, known);
  return as === undefined
    ? {
        outcome: 'unknown',
        message: `OSSA ${version} is not known to the gateway: only what it serves is checked, not the rest of the manifest.`,
      }
    : { outcome: 'unknown', as, message: `OSSA ${version} is not known to the gateway: it is taken for ${as}.` };
};
