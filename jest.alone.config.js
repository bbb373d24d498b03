import all from './jest.config.js';

/** What says something only while nothing else runs: one file after the other, behind all others (see `posttest`). */
/** @type {import('jest').Config} */
export default { ...all, testMatch: ['<rootDir>/test/**/*.alone.ts'], maxWorkers: 1 };
