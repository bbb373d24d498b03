/** Channels that only the gateway itself writes. */
const RESERVED = ['gateway', 'runs', 'workflows', 'ors', 'responses'] as const;

export const isReserved = (channel: string): boolean =>
  (RESERVED as readonly string[]).includes(channel.split('.', 1)[0] as string);

export const RESERVED_PATTERNS: readonly string[] = RESERVED.map((name) => `${name}.#`);
