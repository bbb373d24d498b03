import { ProtocolError, SdkError, SdkErrorCode, SseError } from '@modelcontextprotocol/client';
import { ToolError } from '../tool.ts';
import { HttpStatus, NetworkFailure } from './http-error.ts';
import { AnswerLost } from './transport.ts';

const LONGEST = 1_000;
const GONE = 'it has gone away';

/** The session is over, and a request that named it was refused: it may be made again in another one. */
export class SessionGone extends Error {
  override readonly name = 'SessionGone';
}

/** The server has answered, even if with an error: it lives. */
export const isAnswer = (error: unknown): error is ProtocolError =>
  error instanceof ProtocolError && !(error.data instanceof AnswerLost);

const isTimeout = (error: unknown): boolean => error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;

export const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Why something failed, to be put behind a colon. */
export const reasonOf = (error: unknown): string => {
  if (error instanceof ProtocolError && error.data instanceof AnswerLost) return error.data.message;
  if (error instanceof SseError) return error.code ? new HttpStatus(error.code).message : causeOf(error);
  if (isTimeout(error)) return 'it did not answer in time';
  if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) return GONE;
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown };
  if (name === 'AbortError') return GONE; // the connection was closed while this was being sent
  return (typeof message === 'string' ? message : String(error)).slice(0, LONGEST);
};

/** An event source only has words for it. */
const causeOf = (error: SseError): string => {
  const words = /the connection failed(?: \(\w+\))?/.exec(error.message)?.[0];
  return words ?? 'the connection failed';
};

/** What the caller of a tool is told. It says whether the call may have been carried out, as far as that is known. */
export const callFailure = (
  error: unknown,
  server: string,
  tool: string,
  conceal: (text: string) => string,
): ToolError => {
  if (error instanceof ToolError) return error;
  if (isAnswer(error)) return new ToolError('failed', conceal(`${tool}: ${reasonOf(error)}`.slice(0, LONGEST)), error);
  const lost = error instanceof ProtocolError && error.data instanceof AnswerLost ? error.data.reason : undefined;
  if (lost === 'too_large') return new ToolError('too_large', `The result of ${tool} is larger than it may be.`);
  const refused = error instanceof HttpStatus && error.status < 500;
  const unsent = error instanceof NetworkFailure && !error.sent;
  const outcome =
    refused || unsent ? 'The call was not carried out.' : 'Whether the call was carried out is not known.';
  return new ToolError(
    'unavailable',
    `${sentence(`The MCP server ${server} failed during the call of ${tool}: ${conceal(reasonOf(error))}`)} ${outcome}`,
    error,
  );
};
