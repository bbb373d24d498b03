/**
 * How bytes stand on the wire. Frames are written to the socket directly, so what HTTP puts around them must already be
 * there: chunks in HTTP/1.1, nothing in HTTP/1.0, where the end of the connection is the end of the body.
 */
export type Framing = 'chunked' | 'plain';

export const framed = (framing: Framing, text: string): Buffer =>
  Buffer.from(framing === 'plain' ? text : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
