// The rooms of the house, from the ground up: a room may import what stands below it, and what stands beside all of them.
// protocols -> agents, environments, manifests -> tools, models -> jobs -> sse -> streams
const floors = [
  ['streams'],
  ['sse'],
  ['jobs'],
  ['tools', 'models'],
  ['agents', 'environments', 'manifests'],
  ['protocols'],
];
const beside = ['auth', 'limits', 'config', 'ops'];
// These know everything and are known by nobody.
const roof = ['cli', 'console'];

const folder = (names) => `^src/(${names.join('|')})/`;
const above = (i) => floors.slice(i + 1).flat();

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-orphan-imports', severity: 'error', from: {}, to: { couldNotResolve: true } },
    ...floors.slice(0, -1).map((names, i) => ({
      name: `${names.join('-')}-points-downwards`,
      severity: 'error',
      from: { path: folder(names) },
      to: { path: folder(above(i)) },
    })),
    {
      name: 'beside-imports-no-protocol',
      severity: 'error',
      from: { path: folder(beside) },
      to: { path: folder(floors.slice(1).flat()) },
    },
    {
      name: 'nobody-imports-the-roof',
      severity: 'error',
      from: { pathNot: `${folder(roof)}|^src/main` },
      to: { path: folder(roof) },
    },
    {
      name: 'only-entries-import-the-root',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: folder(roof) },
      to: { path: '^src/(main|gateway)\\.' },
    },
    {
      name: 'streams-knows-no-http',
      severity: 'error',
      from: { path: '^src/streams/' },
      to: { path: '^(node:)?https?$|node_modules/express' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
