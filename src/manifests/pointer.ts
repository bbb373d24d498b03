/** The JSON pointer of a part. */
export const within = (pointer: string, ...parts: readonly (string | number)[]): string =>
  parts.reduce<string>(
    (whole, part) => `${whole}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`,
    pointer,
  );

export const partsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

/** As people write it: `spec.tools[2].name`. */
export const pathOf = (pointer: string): string =>
  partsOf(pointer).reduce(
    (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`),
    '',
  );
