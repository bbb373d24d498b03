// A tool of one's own: a module that exports what defineTool has made. See docs/TOOLS.md.
import { defineTool } from 'sluice';

export const countWords = defineTool({
  name: 'count_words',
  description: 'Counts the words of a text.',
  input: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
  run: ({ text }) => ({ words: text.split(/\s+/).filter(Boolean).length }),
});
