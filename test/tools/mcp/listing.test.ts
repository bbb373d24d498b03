import { listTools, MAX_TOOLS } from '../../../src/tools/mcp/listing.ts';

const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } });
const named = (count: number, from = 0): object[] => Array.from({ length: count }, (_, i) => tool(`t${from + i}`));

describe('listing the tools of a server', () => {
  it('reads all pages, one after another', async () => {
    const asked: unknown[] = [];
    const { tools, warnings } = await listTools(async (cursor) => {
      asked.push(cursor);
      const page = Number(cursor ?? 0);
      return { tools: named(10, page * 10), ...(page < 4 && { nextCursor: String(page + 1) }) };
    });
    expect(tools).toHaveLength(50);
    expect(asked).toEqual([undefined, '1', '2', '3', '4']);
    expect(warnings).toEqual([]);
  });

  it('goes through a circle of pages once', async () => {
    const { tools, warnings } = await listTools(async (cursor) => ({
      tools: [tool(`at${cursor}`)],
      nextCursor: cursor === 'a' ? 'b' : 'a',
    }));
    expect(tools.map(({ name }) => name)).toEqual(['atundefined', 'ata', 'atb']);
    expect(warnings).toEqual(['lists its tools in a circle of pages: every page is read once']);
  });

  it('has limits: so many tools, so many pages', async () => {
    const many = await listTools(async (cursor) => ({
      tools: named(300, Number(cursor ?? 0)),
      nextCursor: String(Number(cursor ?? 0) + 300),
    }));
    expect(many.tools).toHaveLength(MAX_TOOLS);
    expect(many.warnings).toEqual([`lists more than ${MAX_TOOLS} tools: the rest is left out`]);
    const even = await listTools(async (cursor) => ({
      tools: named(100, Number(cursor ?? 0)),
      nextCursor: String(Number(cursor ?? 0) + 100),
    }));
    expect(even.warnings).toEqual(many.warnings);
    let pages = 0;
    const empty = await listTools(async () => ({ tools: [], nextCursor: String(++pages) }));
    expect(empty).toEqual({ tools: [], warnings: ['lists its tools on more than 200 pages: the rest is left out'] });
    expect(pages).toBe(200);
  });

  it('leaves out what cannot be used, and keeps the rest', async () => {
    const { tools, warnings } = await listTools(async () => ({
      tools: [
        tool('a'),
        null,
        { name: '' },
        { name: 'x'.repeat(300) },
        { name: 7 },
        tool('a'),
        { name: 'b', title: 'B' },
      ],
    }));
    expect(tools).toEqual([
      { name: 'a', description: '', inputSchema: { type: 'object' } },
      { name: 'b', description: 'B', inputSchema: { type: 'object' } },
    ]);
    expect(warnings).toEqual([
      'lists a tool without a usable name, which is left out',
      'lists "a" twice: the first one counts',
    ]);
  });
});
