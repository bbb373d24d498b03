import type { SchemaObject } from 'ajv';
import { block, map, prose, text } from './schema-parts.ts';

/** Of every manifest, whatever its kind. */
export const METADATA_SCHEMA: SchemaObject = block({
  metadata: block({
    name: true,
    namespace: {
      type: 'string',
      pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
      expects: 'lower-case letters, digits, "-" and "."',
    },
    version: text(128, 'text, in quotes if it looks like a number'),
    description: prose(16_384),
    labels: map({ type: ['string', 'number', 'boolean'], expects: 'text' }, 'labels by name'),
    annotations: true,
    author: true,
    tags: true,
  }),
});
