import { watchStore } from '../../src/ops/store-watch.ts';
import type { PartitionHealth } from '../../src/streams/log.ts';

it('says once that the store went away and why, and once that it is back', () => {
  let health: PartitionHealth[] = [{ up: true, markAgeMs: 1, lastError: undefined }];
  const lines: string[] = [];
  let look = (): void => {};
  const log = (fields: unknown, text?: string): void => void lines.push(text ?? String(fields), JSON.stringify(fields));
  watchStore(
    () => health,
    { info: log, warn: log },
    (each) => {
      look = each;
      return () => {};
    },
  );
  look();
  expect(lines).toEqual([]);
  health = [{ up: false, markAgeMs: 1, lastError: 'ECONNREFUSED' }];
  look();
  look();
  expect(lines).toHaveLength(2);
  expect(lines.join()).toMatch(/away.*ECONNREFUSED/s);
  health = [{ up: true, markAgeMs: 1, lastError: undefined }];
  look();
  look();
  expect(lines).toHaveLength(4);
  expect(lines[2]).toMatch(/back/);
});
