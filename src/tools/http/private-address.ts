import { BlockList, isIP } from 'node:net';

const reserved = new BlockList();
for (const [address, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  reserved.addSubnet(address, bits, 'ipv4');
}
// Only what is assigned to the world at large (2000::/3) is public; these are the exceptions in it.
for (const [address, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  reserved.addSubnet(address, bits, 'ipv6');
}
const assigned = new BlockList();
assigned.addSubnet('2000::', 3, 'ipv6');
const mapped = new BlockList();
mapped.addSubnet('::ffff:0:0', 96, 'ipv6');

/** The IPv4 address in an IPv4-mapped one; written with dots or as two groups. */
const innerIpv4 = (address: string): string => {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1); // ::ffff:7f00:1, whatever was written
  const [high = '0', low = '0'] = text.split(':').slice(-2);
  const number = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
};

/**
 * Whether an address is one that the public internet does not reach: loopback, private and link-local networks, metadata
 * services of clouds, multicast, and everything that is not assigned. Anything that is no address counts as one.
 */
export const isPrivateAddress = (address: string): boolean => {
  const bare = address.replace(/%.*$/, '');
  const family = isIP(bare);
  if (family === 4) return reserved.check(bare, 'ipv4');
  if (family !== 6) return true;
  if (mapped.check(bare, 'ipv6')) return isPrivateAddress(innerIpv4(bare));
  return !assigned.check(bare, 'ipv6') || reserved.check(bare, 'ipv6');
};
