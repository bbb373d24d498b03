import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startGateway } from '../support/gateway.ts';

it('the metrics are those that the page lists, and of the type it says', async () => {
  const page = readFileSync(join(__dirname, '../../docs/OPERATIONS.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `(sluice_\w+)` \| (\w+) \| (?:`\w+`(?:, )?)* *\|/gm)].map(([, name, type]) => [
    name,
    type,
  ]);
  const { gateway, stop } = await startGateway();
  const metrics = (await gateway.metrics.registry.getMetricsAsJSON()) as unknown as { name: string; type: string }[];
  const real = metrics.filter(({ name }) => name.startsWith('sluice_')).map(({ name, type }) => [name, type]);
  expect(listed.sort()).toEqual(real.sort());
  await stop();
});
