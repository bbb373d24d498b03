const CR = 13;
const LF = 10;

/**
 * Passes bytes on until there are too many of them: in all, or between the empty lines of an event stream, which may go
 * on for ever. Then it calls `exceeded` and fails.
 */
export const sizeLimit = (
  most: number,
  perEvent: boolean,
  exceeded: () => void,
): TransformStream<Uint8Array, Uint8Array> => {
  let size = 0;
  let emptyLine = true;
  /** How many bytes of the event that is still open are in this chunk and before it. */
  const count = (chunk: Uint8Array): void => {
    for (const byte of chunk) {
      size++;
      if (byte === LF) {
        if (emptyLine) size = 0;
        emptyLine = true;
      } else if (byte !== CR) {
        emptyLine = false;
      }
      if (size > most) return;
    }
  };
  return new TransformStream({
    transform(chunk, controller) {
      if (perEvent) count(chunk);
      else size += chunk.length;
      if (size <= most) return controller.enqueue(chunk);
      exceeded();
      controller.error(new Error('The answer is too large.'));
    },
  });
};
