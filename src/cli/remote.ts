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

export const remoteOf = ({ url, token }: RemoteOptions, env: NodeJS.ProcessEnv = process.env): Remote => {
  const text = url ?? env.SLUICE_URL ?? DEFAULT_URL;
  const key = token ?? env.SLUICE_TOKEN;
  if (!URL.canParse(text)) throw new UsageError(`"${text}" is not a URL.`);
  if (!key) throw new UsageError('Give a token with --token or SLUICE_TOKEN.');
  // The path of the URL is kept: the gateway may stand behind a prefix.
  return { url: new URL(text.endsWith('/') ? text : `${text}/`), token: key };
};
