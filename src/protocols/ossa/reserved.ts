import { isReservedChannel, RESERVED } from '../../manifests/reserved.ts';

/** Channels that only the gateway itself writes. */
export const isReserved = (channel: string): boolean => isReservedChannel(channel, RESERVED);

export const RESERVED_PATTERNS: readonly string[] = [...RESERVED.channels].map((name) => `${name}.#`);
