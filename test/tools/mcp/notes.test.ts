import { Notes } from '../../../src/tools/mcp/notes.ts';
import { concealing } from '../../../src/tools/mcp/secrets.ts';

const listen = (secrets: readonly string[] = []): { notes: Notes; seen: string[]; clock: { now: number } } => {
  const seen: string[] = [];
  const clock = { now: 1_000 };
  const notes = new Notes({ note: (line) => seen.push(line), conceal: concealing(secrets), now: () => clock.now });
  return { notes, seen, clock };
};

describe('the notes of a server', () => {
  it('are passed on without the codes of terminals and empty lines', () => {
    const { notes, seen } = listen();
    notes.push(Buffer.from('\u001b[31mred\u001b[0m\n\n  \nta\tb\u0007\nhalf'));
    notes.end();
    expect(seen).toEqual(['red', 'ta b', 'half']);
  });

  it('are bounded: long lines are cut, and of many in a second the rest is counted', () => {
    const { notes, seen, clock } = listen();
    notes.push(Buffer.from(`${'word '.repeat(1_000)}\n`));
    expect(seen[0]?.length).toBeLessThan(2_000);
    expect(seen[0]).toMatch(/\.\.\.$/);
    for (let i = 0; i < 200; i++) notes.push(Buffer.from(`${i}\n`));
    expect(seen).toHaveLength(50);
    clock.now += 1_000;
    notes.push(Buffer.from('next\n'));
    expect(seen.slice(50)).toEqual(['(151 more lines were left out)', 'next']);
  });

  it('hide secrets, whole and in parts', () => {
    const { notes, seen } = listen(['Bearer abcdef-1', 'abcdef-1-longer', 'true']);
    notes.push(Buffer.from('sent Bearer abcdef-1\ntoken=abcdef-1\nabcdef-1-longer is true\n'));
    expect(seen).toEqual(['sent [secret]', 'token=[secret]', '[secret] is true']);
    notes.push(Buffer.from(`${'x'.repeat(1_019)} abcdef-1 ${'y'.repeat(2_000)}\n`));
    expect(seen[3]).not.toMatch(/abc/);
  });

  it('keep the last lines for an error', () => {
    const { notes } = listen();
    for (let i = 1; i <= 20; i++) notes.push(Buffer.from(`line ${i}\n`));
    expect(notes.last).toBe([13, 14, 15, 16, 17, 18, 19, 20].map((i) => `line ${i}`).join(' | '));
  });
});
