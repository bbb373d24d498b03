import { setTimeout as sleep } from 'node:timers/promises';
import { Lingering } from '../../src/jobs/lingering.ts';
import { eventually } from '../streams/logs.ts';

describe('what lingers', () => {
  it('is let go of after its time, in the order in which it came', async () => {
    const gone: string[] = [];
    const lingering = new Lingering(5, (id) => gone.push(id));
    for (const id of ['a', 'b', 'c']) lingering.put(id);
    expect(gone).toEqual([]);
    await eventually(() => gone.length === 3);
    lingering.put('d'); // also when everything had left
    await eventually(() => gone.length === 4);
    expect(gone).toEqual(['a', 'b', 'c', 'd']);
  });

  it('stays if it is kept, and for the whole time again if it comes back', async () => {
    const gone: string[] = [];
    const lingering = new Lingering(40, (id) => gone.push(id));
    for (const id of ['kept', 'again', 'first']) lingering.put(id);
    lingering.keep('kept');
    lingering.keep('again');
    await sleep(2);
    lingering.put('again');
    await eventually(() => gone.length === 2);
    expect(gone).toEqual(['first', 'again']);
  });

  it('is not let go of behind the end', async () => {
    const gone: string[] = [];
    const lingering = new Lingering(1, (id) => gone.push(id));
    lingering.put('a');
    lingering.close();
    await sleep(5);
    expect(gone).toEqual([]);
  });
});
