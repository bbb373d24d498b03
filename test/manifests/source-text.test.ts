import fc from 'fast-check';
import { READING_LIMITS } from '../../src/manifests/limits.ts';
import { SourceText } from '../../src/manifests/source-text.ts';
import { agentWith, judged } from './judged.ts';

const faultsOf = (text: string, limits = READING_LIMITS): string[] => {
  const source = new SourceText(Buffer.from(text), limits, false);
  return [...source.faults, ...source.documents.flatMap(({ faults }) => faults)].map(({ offset, message }) => {
    const { line, column } = source.placeOf(offset);
    return `${line}:${column} ${message}`;
  });
};

const deep = 'Maps and lists are nested more than 64 deep.';

describe('limits of a text', () => {
  it.each([
    ['lists in brackets', '['.repeat(500_000), 193],
    ['maps in braces', '{a: '.repeat(200_000), 384],
    ['lists in one line', '- '.repeat(500_000), 384],
    ['keys in one line', '? '.repeat(500_000), 384],
  ])('stop %s before the parser descends into them', (_, text, column) => {
    // A parser that uses up its stack inside a regular expression takes the whole process with it.
    expect(faultsOf(text)).toEqual([`1:${column} ${deep}`]);
  });

  it('stop what is indented ever deeper', () => {
    const text = Array.from({ length: 1_300 }, (_, i) => `${' '.repeat(i)}k:`).join('\n');
    expect(faultsOf(text)).toEqual([`192:194 ${deep}`]);
  });

  it('count the depth exactly', () => {
    const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    expect(faultsOf(nested(64))).toEqual([]);
    expect(faultsOf(nested(65))).toEqual([`1:65 ${deep}`]);
  });

  it('stop an alias bomb at its hundred and first alias', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const bomb = names.map((name, i) =>
      i === 0
        ? 'a: &a [x, x, x, x, x, x, x, x, x]'
        : `${name}: &${name} [${Array(9)
            .fill(`*${names[i - 1]}`)
            .join(', ')}]`,
    );
    expect(faultsOf(bomb.join('\n'))).toEqual([
      expect.stringMatching(/^\d:\d+ The document has more than 100 aliases\.$/),
    ]);
  });

  it('count what an alias stands for every time', () => {
    const text = `a: &a [${Array(50).fill('x').join(', ')}]\nb: [${Array(20).fill('*a').join(', ')}]\n`;
    expect(faultsOf(text, { ...READING_LIMITS, values: 1_200 })).toEqual([]);
    expect(faultsOf(text, { ...READING_LIMITS, values: 1_000 })).toEqual([
      expect.stringContaining('The document holds more than 1000 values.'),
    ]);
  });

  it('stop a file of too many words, without a comparison of each with each', () => {
    const text = Array.from({ length: 100_000 }, (_, i) => `k${i}:`).join('\n');
    expect(faultsOf(text)).toEqual([expect.stringContaining('The file holds too many words and signs.')]);
  });

  it('stop a file of too many documents, and keep those before', () => {
    const text = '---\na: 1\n'.repeat(5);
    const source = new SourceText(Buffer.from(text), { ...READING_LIMITS, documentsPerFile: 3 }, false);
    expect(source.documents).toHaveLength(3);
    expect(source.faults).toEqual([expect.objectContaining({ message: 'The file holds more than 3 documents.' })]);
  });

  it('stop a file that is too large', () => {
    const { told } = judged(`# ${'x'.repeat(1_048_576)}\n${agentWith('{}')}`);
    expect(told).toEqual(['1:1 error The file is larger than 1048576 bytes and is not read.']);
  });
});

describe('bytes', () => {
  it('must be UTF-8', () => {
    expect(judged(Buffer.from([0x61, 0x3a, 0x20, 0xff])).told).toEqual(['1:1 error The file is not UTF-8.']);
  });

  it('of UTF-16 are told', () => {
    expect(judged(Buffer.from('\uFEFFkind: Agent', 'utf16le')).told).toEqual(['1:1 error The file is not UTF-8.']);
  });
});

/** Texts that look a little like manifests, so that more of the code sees them. */
const pieces = fc.constantFrom(
  ...[
    'apiVersion: ossa/v0.3.2\n',
    'kind: Agent\n',
    'kind: Workflow\n',
    'metadata:\n  name: a\n',
    'spec:\n',
    '  steps:\n',
  ],
  ...[
    '    - id: a\n',
    '      depends_on: [a, b]\n',
    '  transport: {sse: {channels: [a.b]}}\n',
    '  capabilities:\n',
    '    - a\n',
  ],
  ...[
    '    a: {input: {type: object}}\n',
    '---\n',
    '...\n',
    '&a ',
    '*a',
    '<<: ',
    '!t ',
    '[',
    ']',
    '{',
    '}',
    ': ',
    '- ',
    '? ',
    '"',
    "'",
  ],
  ...[
    '|\n',
    '>\n',
    '#',
    '%YAML 1.1\n',
    '\t',
    '  ',
    '\r\n',
    '\u0000',
    '\uFEFF',
    '__proto__: 1\n',
    'null',
    '1e999',
    '.nan',
    '~',
  ],
);

describe('any text', () => {
  it('is read without a throw, and what is told about it has a place in it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join('')),
          fc.string({ unit: 'binary', maxLength: 200 }),
        ),
        fc.boolean(),
        (text, json) => {
          const { findings, manifests } = judged(text, { path: json ? 'a.ossa.json' : 'a.ossa.yaml' });
          const lines = text.split('\n').length;
          for (const { line, column, message } of findings) {
            expect(line).toBeGreaterThanOrEqual(1);
            expect(line).toBeLessThanOrEqual(lines + 1);
            expect(column).toBeGreaterThanOrEqual(1);
            expect(message).toMatch(/[.?]$/);
          }
          expect(findings.length + manifests.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('is read without a throw, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        judged(bytes);
      }),
      { numRuns: 300 },
    );
  });

  it('of values in the places that are read is told, not thrown', () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const spec = fc.record(
      {
        ...{
          role: value,
          prompts: value,
          llm: value,
          tools: value,
          capabilities: value,
          functions: value,
          access: value,
        },
        ...{ safety: value, constraints: value, autonomy: value, steps: value, execution: value, input: value },
        messaging: fc.oneof(value, fc.record({ publishes: value, subscribes: value, commands: value })),
        transport: fc.oneof(
          value,
          fc.record({ sse: fc.oneof(value, fc.record({ endpoint: value, channels: value, buffer: value })) }),
        ),
      },
      { requiredKeys: [] },
    );
    const kind = fc.constantFrom('Agent', 'Workflow', 'Task');
    fc.assert(
      fc.property(spec, kind, value, (written, which, runtime) => {
        const manifest = { apiVersion: 'ossa/v0.3.2', kind: which, metadata: { name: 'a' }, spec: written, runtime };
        const { findings, manifests } = judged(JSON.stringify(manifest), { path: 'a.ossa.json' });
        const wrong = findings.some(({ severity }) => severity === 'error');
        expect(manifests).toHaveLength(wrong ? 0 : 1);
      }),
      { numRuns: 300 },
    );
  });
});
