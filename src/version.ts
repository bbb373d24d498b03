import { readFileSync } from 'node:fs';

/** From package.json, which stands above both src and dist. */
export const version = (): string => {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
};
