/** How many letters must be typed, taken away or exchanged, also with their neighbours, to get from one word to the other. */
const distance = (a: string, b: string): number => {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next.push(
        Math.min(
          exchanged,
          (row[j] as number) + 1,
          (next[j - 1] as number) + 1,
          swapped ? (before[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = row;
    row = next;
  }
  return row[b.length] as number;
};

const LONGEST = 80;

/** The known word that was probably meant: at most a third of it is wrong, or it is all of the end. */
export const suggestion = (written: string, known: Iterable<string>): string | undefined => {
  if (written.length > LONGEST) return undefined;
  const word = written.toLowerCase();
  let best: { word: string; distance: number } | undefined;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    const far = word.endsWith(`_${other}`) ? 1 : distance(word, other);
    if (far <= Math.max(1, Math.floor(other.length / 3)) && far < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { word: candidate, distance: far };
    }
  }
  return best?.word;
};

export const didYouMean = (written: string, known: Iterable<string>): string => {
  const word = suggestion(written, known);
  return word === undefined ? '' : `; did you mean ${word}?`;
};
