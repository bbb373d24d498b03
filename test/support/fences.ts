import { readFileSync } from 'node:fs';

export interface Fence {
  /** The heading that it stands under, without its marks. */
  readonly heading: string;
  /** What stands behind the language: the name of a file, in our own pages. */
  readonly name: string;
  readonly code: string;
}

/** The blocks of code in a Markdown page, in their order. */
export const fencesIn = (file: string): Fence[] => {
  const page = readFileSync(file, 'utf8');
  let heading = '';
  return [...page.matchAll(/^#+ (.+)$|^```\w* ?(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, title, name = '', code = '']) => {
    if (title === undefined) return [{ heading, name, code }];
    heading = title;
    return [];
  });
};
