/** What an SSE frame may hold; all of it optional, in the order in which it is written. */
export interface Frame {
  readonly retry?: number;
  readonly event?: string;
  readonly id?: string;
  readonly data?: string;
}

const FORBIDDEN = /[\r\n\0]/;

/** A line end in a name or an id would start another field, and a NUL makes clients ignore an id. */
const line = (field: 'event' | 'id', value: string): string => {
  if (FORBIDDEN.test(value)) throw new RangeError(`CR, LF and NUL cannot stand in the ${field} of a frame.`);
  return `${field}: ${value}\n`;
};

export const frame = ({ retry, event, id, data }: Frame): string => {
  let text = '';
  if (retry !== undefined) text += `retry: ${Math.max(0, Math.floor(retry))}\n`;
  if (event !== undefined) text += line('event', event);
  if (id !== undefined) text += line('id', id);
  if (data !== undefined) for (const part of data.split(/\r\n|\r|\n/)) text += `data: ${part}\n`;
  return `${text}\n`;
};

/** A comment, which clients ignore: it keeps proxies from closing an idle connection. */
export const comment = (text: string): string => `: ${text.replace(/[\r\n\0]+/g, ' ')}\n\n`;
