import { judgeVersion } from '../../src/manifests/api-version.ts';

describe('a version', () => {
  it.each(['0.3.0', '0.3.1', '0.3.2'])('%s is known', (version) => {
    expect(judgeVersion(`ossa/v${version}`)).toEqual({ outcome: 'known', as: version });
  });

  it.each([
    ['0.3.3', '0.3.2'],
    ['0.3.99', '0.3.2'],
    ['0.3.2-rc.1', '0.3.1'], // what comes before a version is below it
    ['0.3.1-dev', '0.3.0'],
    ['0.3.7-beta', '0.3.2'],
    ['0.3.1.7', '0.3.1'],
    ['0.3', '0.3.2'],
  ])('%s is taken for %s', (version, as) => {
    expect(judgeVersion(`ossa/v${version}`)).toMatchObject({ outcome: 'unknown', as });
  });

  it.each(['0.3.0-rc.1', '0.2.2', '0.2.9', '0.2.5-dev', '0.4.1', '0.5', '1', '1.0', '2.0.0'])(
    '%s is read, and held against no official schema',
    (version) => {
      const verdict = judgeVersion(`ossa/v${version}`);
      expect(verdict.outcome).toBe('unknown');
      expect(verdict).not.toHaveProperty('as');
    },
  );

  it('may be known from a folder of official schemas', () => {
    const known = ['0.3.2', '0.4.0'];
    expect(judgeVersion('ossa/v0.4.0', known)).toEqual({ outcome: 'known', as: '0.4.0' });
    expect(judgeVersion('ossa/v0.4.3', known)).toMatchObject({ outcome: 'unknown', as: '0.4.0' });
  });

  it.each([
    ['ossa/v0.3.x', '0.3.x'],
    ['ossa/v0.3.X', '0.3.X'],
    ['ossa/v{{VERSION}}', '{{VERSION}}'],
    ['ossa/v${OSSA_VERSION}', '${OSSA_VERSION}'],
    ['ossa/${OSSA_VERSION:-v0.3.2}', '${OSSA_VERSION:-v0.3.2}'],
    ['ossa/v<version>', '<version>'],
  ])('%s still holds a placeholder', (apiVersion, placeholder) => {
    expect(judgeVersion(apiVersion)).toMatchObject({
      outcome: 'wrong',
      message: expect.stringContaining(`the placeholder ${placeholder}:`),
    });
  });

  it.each(['', 'v1', 'ossa/0.3.2', 'ossa/v', 'ossa/v0.3.2 ', 'OSSA/v0.3.2', 'ossa/v0.2.1', 'ossa/v0.1', 'apps/v1'])(
    '%j is wrong',
    (apiVersion) => {
      expect(judgeVersion(apiVersion).outcome).toBe('wrong');
    },
  );
});
