import { countIn, listIn, objectIn, parseJson, textIn } from './json.ts';
import type { ModelInfo } from './model.ts';
import { ModelError } from './model-error.ts';

const MAX_MODELS = 10_000;
const MAX_NAME = 256;

/** What `GET /models` has answered. */
export const modelsIn = (text: string): ModelInfo[] => {
  const parsed = parseJson(text);
  const body = objectIn(parsed);
  const list = [parsed, body?.data, body?.models].find(Array.isArray);
  if (!list) throw new ModelError('bad_answer', "The model's backend did not answer with a list of models.");
  return listIn(list)
    .slice(0, MAX_MODELS)
    .flatMap((value): ModelInfo[] => {
      const entry = objectIn(value);
      const id = textIn(entry?.id) ?? textIn(entry?.name) ?? textIn(value);
      if (id === undefined || id.length > MAX_NAME) return [];
      const created = countIn(entry?.created);
      const ownedBy = textIn(entry?.owned_by)?.slice(0, MAX_NAME);
      return [{ id, ...(created !== undefined && { created }), ...(ownedBy !== undefined && { ownedBy }) }];
    });
};
