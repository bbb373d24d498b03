import type { ModelEvent } from '../../src/models/model.ts';
import { ModelError } from '../../src/models/model-error.ts';

export interface Collected {
  readonly events: ModelEvent[];
  readonly error?: ModelError;
}

/** All events, and the error that ended them if one did. Another kind of error is a defect. */
export const collect = async (source: AsyncIterable<ModelEvent>): Promise<Collected> => {
  const events: ModelEvent[] = [];
  try {
    for await (const event of source) events.push(event);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return { events, error: error as ModelError };
  }
  return { events };
};

export const ask = (
  content: string,
): { readonly model: string; readonly messages: [{ readonly role: 'user'; readonly content: string }] } => ({
  model: 'asked',
  messages: [{ role: 'user', content }],
});
