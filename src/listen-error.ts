type Sentence = (host: string, port: number) => string;

const unknownHost: Sentence = (host) => `The host ${host} is not known.`;

const SENTENCES: Readonly<Record<string, Sentence>> = {
  EADDRINUSE: (host, port) => `Port ${port} of ${host} is in use by another program.`,
  EACCES: (host, port) => `This user may not listen on port ${port} of ${host}.`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine.`,
  ENOTFOUND: unknownHost,
  EAI_AGAIN: unknownHost,
};

/** Why the gateway cannot listen, in one sentence. */
export class ListenError extends Error {
  override readonly name = 'ListenError';

  constructor(host: string, port: number, cause: NodeJS.ErrnoException) {
    const sentence = SENTENCES[cause.code ?? ''];
    super(sentence?.(host, port) ?? `Cannot listen on port ${port} of ${host}: ${cause.message}.`, { cause });
  }
}
