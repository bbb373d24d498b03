import { accessSync, constants, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { parseRedisUrl } from '../streams/redis/settings.ts';
import { readPublicKey } from './public-key.ts';

const succeeds = (attempt: () => unknown): boolean => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
};

const isHttpUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return /^https?:$/.test(url.protocol) && url.hash === '' && url.username === '' && url.password === '';
};

/** Written exactly as browsers send it, since it is compared with what they send. */
const isOrigin = (text: string): boolean => isHttpUrl(text) && new URL(text).origin === text;

const PROXY_NAMES = ['loopback', 'linklocal', 'uniquelocal'];

const isProxy = (text: string): boolean => {
  if (PROXY_NAMES.includes(text)) return true;
  const [address = '', bits, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
};

const isReadableFile = (path: string): boolean =>
  succeeds(() => accessSync(path, constants.R_OK)) && statSync(path).isFile();

/** What those want that are used in more than one place. */
export const FORMAT_WORDS = {
  'readable-file': 'a file that can be read',
  'http-url': 'an http:// or https:// URL without credentials and fragment',
} as const;

/** The forms that the schema names; files are looked for from a directory. */
export const formatsIn = (directory: string): Record<string, (text: string) => boolean> => ({
  'http-url': isHttpUrl,
  origin: isOrigin,
  proxy: isProxy,
  'redis-url': (text) => succeeds(() => parseRedisUrl(text)),
  'readable-file': (text) => isReadableFile(resolve(directory, text)),
  'public-key': (text) => succeeds(() => readPublicKey(text, directory)),
});
