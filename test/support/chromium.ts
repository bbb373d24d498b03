import { type Browser, chromium } from 'playwright-core';
import { running } from './running.ts';

const FLAGS = [
  '--no-sandbox', // root has none
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Debian's Chromium, without a window. */
export const startChromium = async (): Promise<Browser> => {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
  const started = { stop: () => browser.close() };
  running.add(started);
  browser.on('disconnected', () => running.delete(started));
  return browser;
};
