/**
 * How bytes stand on the wire. Frames are written to the socket directly, so what HTTP puts around them must already be
 * there: chunks in HTTP/1.1, nothing in HTTP/1.0, where the end of the connection is the end of the body.
 */
export type Framing = 'chunked' | 'plain';

const CRLF = Buffer.from('\r\n');

export const framed = (framing: Framing, text: string): Buffer => {
  if (framing === 'plain') return Buffer.from(text);
  const body = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, CRLF]);
};
