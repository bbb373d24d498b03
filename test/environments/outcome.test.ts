import { invalidInput, reasonIn, unknownTool } from '../../src/environments/outcome.ts';

describe('a call that is refused', () => {
  it('names a tool that is not there, and not more of it than anybody reads', () => {
    expect(unknownTool('nope')).toEqual({ ok: false, error: "'nope' is not a valid tool", reason: 'not_found' });
    expect(unknownTool('x'.repeat(1_000)).error).toBe(`'${'x'.repeat(200)}' is not a valid tool`);
  });

  it('is known by its words alone', () => {
    for (const { error, reason } of [unknownTool('nope'), invalidInput('city must be string.')]) {
      expect(reasonIn(error)).toBe(reason);
    }
    expect(reasonIn('It broke.')).toBeUndefined();
  });
});
