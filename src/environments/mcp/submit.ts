import type { McpEnvironmentSettings } from '../../config/structures.ts';
import type { Schema, ToolResult } from '../../tools/tool.ts';
import { textResult } from '../../tools/tool.ts';
import type { ToolSpec } from '../environment.ts';

const NAME = 'submit';
const DESCRIPTION = 'Hands in the answer. This ends the episode.';
const INPUT: Schema = {
  type: 'object',
  properties: { answer: { type: 'string', description: 'The answer.' } },
  required: ['answer'],
  additionalProperties: false,
};

export const SUBMITTED: ToolResult = textResult('Submitted.');

/** The tool of the gateway's own with which an episode ends, if there is to be one. */
export const submitTool = (settings: McpEnvironmentSettings['submit']): ToolSpec | undefined => {
  if (settings === undefined || settings === false) return undefined;
  const { name = NAME, description = DESCRIPTION, input = INPUT } = settings === true ? {} : settings;
  if (input.type !== 'object') throw new Error('submit.input must be the schema of an object.');
  return { name, description, input_schema: input };
};
