import type { Tool } from '../../tools/tool.ts';
import type { ToolSpec } from '../environment.ts';

const specOf = ({ name, description, inputSchema }: Tool): ToolSpec => ({
  name,
  description,
  input_schema: inputSchema,
});

/** The tools of the server as clients know them, and behind them the gateway's own. */
export const specsOf = (tools: readonly Tool[], submit: ToolSpec | undefined): readonly ToolSpec[] => {
  // A server may come to have the name of ours later: the one that was there first stays.
  const theirs = tools.filter(({ name }) => name !== submit?.name).map(specOf);
  return submit ? [...theirs, submit] : theirs;
};
