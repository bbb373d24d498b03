import type { FinishReason, ModelEvent, Usage } from './model.ts';
import { ModelError } from './model-error.ts';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** All that a model has said, in one piece. */
export interface Answer {
  readonly id: string;
  readonly model: string;
  readonly created: number;
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCall[];
  /** Absent if the backend does not tell. */
  readonly usage?: Usage;
  readonly finish: FinishReason;
}

/** Puts an answer together while its events go by. */
export class AnswerFold {
  private head: { readonly id: string; readonly model: string; readonly created: number } | undefined;
  private readonly said = { text: '', reasoning: '', refusal: '' };
  private readonly toolCalls: ToolCall[] = [];
  private usage: Usage | undefined;
  private finish: FinishReason | undefined;

  add(event: ModelEvent): void {
    switch (event.type) {
      case 'start':
        this.head = { id: event.id, model: event.model, created: event.created };
        break;
      case 'text':
      case 'reasoning':
      case 'refusal':
        this.said[event.type] += event.delta;
        break;
      case 'tool_call_end':
        this.toolCalls.push({ id: event.id, name: event.name, arguments: event.arguments });
        break;
      case 'usage': {
        const { type: _, ...usage } = event;
        this.usage = usage;
        break;
      }
      case 'finish':
        this.finish = event.reason;
        break;
      case 'tool_call':
      case 'tool_arguments':
        break; // the call's end repeats them
    }
  }

  /** Throws while the answer is not complete. */
  get answer(): Answer {
    const { head, said, toolCalls, usage, finish } = this;
    if (!head || !finish) throw new ModelError('bad_answer', 'The answer of the model is not complete.');
    return { ...head, ...said, toolCalls, ...(usage && { usage }), finish };
  }
}

/** Waits for the whole answer. */
export const wholeAnswer = async (events: AsyncIterable<ModelEvent>): Promise<Answer> => {
  const fold = new AnswerFold();
  for await (const event of events) fold.add(event);
  return fold.answer;
};
