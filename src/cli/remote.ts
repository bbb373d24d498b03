import { UsageError } from './usage-error.ts';

/** Where a gateway is and what it is asked with. */
export interface Remote {
  readonly url: URL;
  readonly token: string;
}

export interface RemoteOptions {
  readonly url?: string;
  readonly token?: string;
}

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** `localhost:8080` is a URL too, of the scheme "localhost". */
const isHttpUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username + password + search + hash === '';
};

/** Anything else cannot stand in a header, and what would refuse it there would print it. */
export const isHeaderText = (text: string): boolean => /^[!-~]+$/.test(text);

export const remoteOf = ({ url, token }: RemoteOptions, env: NodeJS.ProcessEnv = process.env): Remote => {
  const text = url ?? (env.SLUICE_URL || DEFAULT_URL);
  const key = (token ?? env.SLUICE_TOKEN)?.trim();
  if (!isHttpUrl(text)) throw new UsageError('The URL must be http://host:port or https://host, without a password.');
  if (!key) throw new UsageError('Give a token with --token or SLUICE_TOKEN.');
  if (!isHeaderText(key)) throw new UsageError('The token has characters that no token has.');
  // The path of the URL is kept: the gateway may stand behind a prefix.
  return { url: new URL(text.endsWith('/') ? text : `${text}/`), token: key };
};

/** What an answer that is no success says, in one line. */
export const refusalOf = async (answer: Response): Promise<string> => {
  const body = await answer.text().catch(() => '');
  let message = answer.statusText; // a proxy answers with a page
  try {
    message = (JSON.parse(body) as { message?: string }).message ?? message;
  } catch {}
  return `The gateway answered ${answer.status}: ${message.replace(/\.$/, '')}.`;
};

/** What a failed connection says; some errors have a code only. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error ? String(error.code) : error.name);
};
