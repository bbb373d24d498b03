import { createParser, type EventSourceParser } from 'eventsource-parser';
import { EnvironmentError } from '../environment.ts';

export type CallEnd =
  | { readonly kind: 'end'; readonly json: string }
  | { readonly kind: 'error'; readonly message: string };

const tooLarge = (maxBytes: number): EnvironmentError =>
  new EnvironmentError('failed', `The upstream's result is larger than ${maxBytes} bytes.`);

/** One connection's view of a call: its id, then the pieces of its result, from the first on. */
export class CallStream {
  taskId: string | undefined;
  ended: CallEnd | undefined;
  private readonly maxBytes: number;
  private readonly decoder = new TextDecoder();
  private readonly parser: EventSourceParser;
  private readonly pieces: string[] = [];
  private size = 0;
  private overflow = false;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.parser = createParser({
      maxBufferSize: maxBytes,
      onEvent: ({ event, data }) => this.take(event, data),
      onError: ({ type }) => {
        this.overflow ||= type === 'max-buffer-size-exceeded'; // fields that are not known may be there
      },
    });
  }

  /** True when the call has ended. Throws when the result is too large. */
  feed(bytes: Buffer): boolean {
    this.parser.feed(this.decoder.decode(bytes, { stream: true }));
    if (this.overflow && !this.ended) throw tooLarge(this.maxBytes);
    return this.ended !== undefined;
  }

  private take(event: string | undefined, data: string): void {
    if (this.ended) return;
    if (event === 'task_id') this.taskId = data.trim();
    else if (event === 'error') this.ended = { kind: 'error', message: data };
    else if (event === 'chunk' || event === 'end') {
      this.size += Buffer.byteLength(data);
      this.overflow ||= this.size > this.maxBytes;
      if (this.overflow) return;
      this.pieces.push(data); // as it is: white space at its ends belongs to the result
      if (event === 'end') this.ended = { kind: 'end', json: this.pieces.join('') };
    }
  }
}
