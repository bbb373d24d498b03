/** FNV-1a over the name: every replica, and every version of this program, must agree on it. */
export const partitionOf = (name: string, partitions: number): number => {
  if (partitions === 1) return 0;
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % partitions;
};
