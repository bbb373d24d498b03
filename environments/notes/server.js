// A notebook as an MCP server, in plain JavaScript: messages are lines of JSON on standard input and output. What is
// written down is kept in memory: every session of the gateway has a process, and so a notebook, of its own.
import { createInterface } from 'node:readline';

const notes = new Map();
const text = (said, isError = false) => ({ content: [{ type: 'text', text: said }], isError });
const texts = (...names) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
  additionalProperties: false,
});

const tools = {
  write_note: {
    description: 'Writes a note under a title; one that is there already is replaced.',
    inputSchema: texts('title', 'text'),
    run: ({ title, text: said }) => {
      notes.set(title, said);
      return text(`Written. Notes: ${notes.size}.`);
    },
  },
  read_note: {
    description: 'Reads the note with this title.',
    inputSchema: texts('title'),
    run: ({ title }) => (notes.has(title) ? text(notes.get(title)) : text(`There is no note "${title}".`, true)),
  },
  list_notes: {
    description: 'Lists the titles of all notes.',
    inputSchema: texts(),
    run: () => ({ ...text([...notes.keys()].join('\n')), structuredContent: { titles: [...notes.keys()] } }),
  },
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'notes', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
  }),
  'tools/call': ({ name, arguments: input = {} }) => tools[name].run(input),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`);
}
