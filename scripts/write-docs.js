// Reference pages that are derived from the code. A test fails when one of them is stale.
import { mkdirSync, writeFileSync } from 'node:fs';
import { referencePage } from '../dist/config/reference.js';

mkdirSync('docs', { recursive: true });
writeFileSync('docs/CONFIGURATION.md', referencePage());
