import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Catalogue } from '../../src/manifests/catalogue.ts';
import { Manifests, type ManifestsChange, type ManifestsOptions } from '../../src/manifests/manifests.ts';
import { eventually } from '../streams/logs.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { agentWith, manifestWith } from './judged.ts';

const QUIET_MS = 30;

let directory: TestDirectory;
const opened: Manifests[] = [];

beforeEach(() => {
  directory = makeDirectory();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((manifests) => manifests.close()));
  directory.remove();
});

const open = async (options: Partial<ManifestsOptions> = {}): Promise<Manifests> => {
  const manifests = await Manifests.open({
    paths: [directory.path],
    namespace: 'default',
    quietMs: QUIET_MS,
    ...options,
  });
  opened.push(manifests);
  return manifests;
};

const agent = (name: string, role = 'a'): string => manifestWith('Agent', name, `role: ${role}`);
const names = ({ current }: Manifests): string[] => current.agents().map(({ name }) => name);
const roles = ({ current }: Manifests): string[] => current.agents().map(({ name, role }) => `${name} ${role}`);
const told = ({ findings }: Manifests): string[] =>
  findings.map(
    ({ file, line, column, message }) => `${file.replace(`${directory.path}/`, '')}:${line}:${column} ${message}`,
  );

/** Every change that was told. */
const changesOf = (manifests: Manifests): ManifestsChange[] => {
  const changes: ManifestsChange[] = [];
  manifests.onChange((_, change) => changes.push(change));
  return changes;
};

/** Long enough for a change to have been noticed, and for the load that follows. */
const aWhile = (): Promise<void> => sleep(QUIET_MS * 10);

describe('manifests of a folder', () => {
  it('are read with all folders in it, each file once', async () => {
    directory.write('a.ossa.yaml', agent('a'));
    directory.write('deep/er/b.ossa.yml', agent('b'));
    directory.write(
      'deep/c.ossa.json',
      JSON.stringify({ apiVersion: 'ossa/v0.3.2', kind: 'Agent', metadata: { name: 'c' }, spec: {} }),
    );
    for (const skipped of ['node_modules/x', 'dist', '.git', '.hidden', 'deep/.cache']) {
      directory.write(`${skipped}/no.ossa.yaml`, agent('no'));
    }
    for (const other of ['readme.md', 'no.yaml', 'ossa.yaml', '.no.ossa.yaml']) directory.write(other, agent('no'));
    symlinkSync('a.ossa.yaml', join(directory.path, 'link.ossa.yaml'));
    symlinkSync('..', join(directory.path, 'deep/up'));
    const manifests = await open({ watch: false });
    expect(told(manifests)).toEqual([]);
    expect(names(manifests)).toEqual(['a', 'b', 'c']);
    expect(manifests.files).toBe(3);
  });

  it('are read from a file of any name if it is named', async () => {
    const file = directory.write('mine.yaml', agent('a'));
    directory.write('b.ossa.yaml', agent('b'));
    expect(names(await open({ paths: [file], watch: false }))).toEqual(['a']);
    expect(names(await open({ paths: [directory.path, file, file], watch: false }))).toEqual(['a', 'b']);
  });

  it('may not have the same kind and name, and both places are told', async () => {
    directory.write('a.ossa.yaml', agent('same', 'first'));
    directory.write('b.ossa.yaml', `${agent('other')}---\n${agent('same', 'second')}`);
    directory.write('c.ossa.yaml', manifestWith('Task', 'same', 'execution: { type: idempotent }'));
    const manifests = await open({ watch: false });
    expect(told(manifests)).toEqual([
      `b.ossa.yaml:11:9 There is a second Agent called same; the other one is in ${directory.path}/a.ossa.yaml, line 4. Only that one is served.`,
    ]);
    expect(roles(manifests)).toEqual(['other a', 'same first']);
    expect(manifests.current.tasks()).toHaveLength(1);
  });

  it('are found missing, and served as soon as they are there', async () => {
    const folder = join(directory.path, 'not/yet');
    const manifests = await open({ paths: [folder] });
    expect(told(manifests)).toEqual([`not/yet:1:1 There is no ${folder}.`]);
    expect(manifests.missing).toEqual([folder]);
    directory.write('not/yet/a.ossa.yaml', agent('a'));
    await eventually(() => names(manifests).join() === 'a');
    expect(manifests.findings).toEqual([]);
  });

  it('are read up to a limit of files and of documents', async () => {
    for (const name of ['a', 'b', 'c'])
      directory.write(`${name}.ossa.yaml`, `${agent(name)}---\n${agent(`${name}${name}`)}`);
    const files = await open({ watch: false, limits: { files: 2 } });
    expect(names(files)).toEqual(['a', 'aa', 'b', 'bb']);
    expect(told(files)).toEqual([
      'c.ossa.yaml:1:1 There are more than 2 files: this one and all behind it are not read.',
    ]);
    const documents = await open({ watch: false, limits: { documents: 3 } });
    expect(names(documents)).toEqual(['a', 'aa']);
    expect(told(documents)).toEqual([
      'b.ossa.yaml:1:1 There are more than 3 documents: this file and all behind it are not read.',
    ]);
  });

  it('include those that the gateway brings along, and the one of the specification', async () => {
    const root = join(__dirname, '../..');
    const manifests = await open({ paths: [join(root, 'manifests'), join(root, 'test/fixtures/seeds')], watch: false });
    expect(manifests.findings).toEqual([]);
    expect(names(manifests)).toEqual(['editor', 'event-streamer', 'newsroom']);
    expect(manifests.current.workflows().map(({ name }) => name)).toEqual(['review']);
    expect(manifests.current.channel('agent.status')).toMatchObject({
      ...{ heartbeatSeconds: 20, retryMs: 2000, limits: { events: 500, ageMs: 900_000 } },
    });
    const editor = manifests.current.agent('editor');
    expect(editor && manifests.models(editor)).toEqual([
      { provider: 'custom', model: 'demo', temperature: 0.2, maxTokens: 400 },
    ]);
  });
});

describe('a change', () => {
  it('is served when files have been quiet for a while, and told', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open();
    const before = manifests.current;
    const changes = changesOf(manifests);
    directory.write('a.ossa.yaml', agent('a', 'new'));
    directory.write('sub/b.ossa.yaml', agent('b'));
    await eventually(() => roles(manifests).join() === 'a new,b a');
    expect(before.agent('a')?.role).toBe('old');
    const [a, b] = [
      { kind: 'Agent', name: 'a' },
      { kind: 'Agent', name: 'b' },
    ];
    expect(changes.flatMap(({ changed }) => changed)).toEqual([a]);
    expect(changes.flatMap(({ added }) => added)).toEqual([b]);
    expect(changes.flatMap(({ removed, kept }) => [...removed, ...kept])).toEqual([]);
    directory.write('sub/b.ossa.yaml', agent('b', 'new'));
    await eventually(() => roles(manifests).join() === 'a new,b new');
  });

  it('of nothing but comments is none', async () => {
    directory.write('a.ossa.yaml', agent('a'));
    const manifests = await open();
    const changes = changesOf(manifests);
    const before = manifests.current;
    directory.write('a.ossa.yaml', `${agent('a')}# no more\n`);
    await aWhile();
    expect(changes).toEqual([]);
    expect(manifests.current).toBe(before);
  });

  it('that removes a file removes its agents', async () => {
    directory.write('a.ossa.yaml', agent('a'));
    directory.write('sub/b.ossa.yaml', agent('b'));
    const manifests = await open();
    const changes = changesOf(manifests);
    rmSync(join(directory.path, 'sub'), { recursive: true });
    await eventually(() => names(manifests).join() === 'a');
    expect(changes.flatMap(({ removed }) => removed)).toEqual([{ kind: 'Agent', name: 'b' }]);
  });

  it('that moves an agent to another file never loses it', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open();
    const seen: number[] = [];
    manifests.onChange((catalogue: Catalogue) => seen.push(catalogue.agents().length));
    directory.write('b.ossa.yaml', agent('a', 'new'));
    await eventually(() => manifests.findings.length === 1);
    expect(roles(manifests)).toEqual(['a old']); // whoever holds the name keeps it
    rmSync(join(directory.path, 'a.ossa.yaml'));
    await eventually(() => roles(manifests).join() === 'a new');
    expect(new Set(seen)).toEqual(new Set([1]));
    expect(manifests.findings).toEqual([]);
  });

  it('that is bad keeps what was there, and the rest goes on', async () => {
    directory.write('two.ossa.yaml', `${agent('a', 'old')}---\n${agent('b', 'old')}`);
    const manifests = await open();
    const changes = changesOf(manifests);
    directory.write('two.ossa.yaml', `${agent('a', 'new')}---\n${agent('b', '{ not: text }')}`);
    await eventually(() => roles(manifests).join() === 'a new,b old');
    expect(told(manifests)).toEqual([
      'two.ossa.yaml:13:9 spec.role must be text of at most 65536 characters, not {"not":"text"}.',
    ]);
    expect(changes).toEqual([
      expect.objectContaining({
        ...{ added: [], removed: [], changed: [{ kind: 'Agent', name: 'a' }], kept: [{ kind: 'Agent', name: 'b' }] },
        findings: manifests.findings,
      }),
    ]);
    directory.write('two.ossa.yaml', `${agent('a', 'new')}---\n${agent('b', 'new')}`);
    await eventually(() => roles(manifests).join() === 'a new,b new');
    expect(manifests.findings).toEqual([]);
  });

  it.each([
    ['cannot be parsed', 'kind: [\n'],
    ['has a key twice', `${agent('a', 'x')}kind: Agent\n`],
    ['is empty', ''],
    ['is no manifest any more', 'hello: world\n'],
    ['is larger than it may be', `# ${'x'.repeat(1_048_577)}`],
  ])('that %s keeps what was there', async (_, text) => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    directory.write('b.ossa.yaml', agent('b', 'old'));
    const manifests = await open();
    const changes = changesOf(manifests);
    directory.write('a.ossa.yaml', text);
    directory.write('b.ossa.yaml', agent('b', 'new'));
    await eventually(() => manifests.findings.length > 0 && roles(manifests).includes('b new'));
    expect(roles(manifests)).toEqual(['a old', 'b new']);
    expect(changes.at(-1)?.kept).toEqual([{ kind: 'Agent', name: 'a' }]);
  });

  it('that moves an agent and breaks it keeps what was there', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open();
    rmSync(join(directory.path, 'a.ossa.yaml'));
    directory.write('b.ossa.yaml', agent('a', '[]'));
    await eventually(() => manifests.findings.length > 0);
    await aWhile();
    expect(roles(manifests)).toEqual(['a old']);
  });

  it('that takes away the whole folder keeps what was there, and says so', async () => {
    const folder = join(directory.path, 'folder');
    directory.write('folder/a.ossa.yaml', agent('a', 'old'));
    const manifests = await open({ paths: [folder] });
    renameSync(folder, `${folder}-away`);
    await eventually(() => manifests.findings.length > 0);
    expect(roles(manifests)).toEqual(['a old']);
    directory.write('folder/a.ossa.yaml', agent('a', 'new'));
    await eventually(() => roles(manifests).join() === 'a new');
    expect(manifests.findings).toEqual([]);
  });

  it('that is half written is not served', async () => {
    const whole = agentWith('transport:\n  sse:\n    channels:\n      - first\n      - second\n      - third');
    const file = directory.write('a.ossa.yaml', whole);
    const manifests = await open({ quietMs: 250 });
    const seen: number[] = [];
    manifests.onChange((catalogue) => seen.push(catalogue.channelNames().length));
    const changed = whole.replace('third', 'third\n        - fourth');
    // Every few bytes would be a manifest of its own: one without channels, with one, with two.
    const descriptor = openSync(file, 'w');
    for (let at = 0; at < changed.length; at += 12) {
      writeSync(descriptor, changed.slice(at, at + 12));
      await sleep(5);
    }
    closeSync(descriptor);
    await eventually(() => manifests.current.channelNames().length === 4);
    expect(seen.filter((count) => count !== 4)).toEqual([]);
  });

  it('is seen in the end also if something changes without a pause', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open({ quietMs: 20 });
    directory.write('a.ossa.yaml', agent('a', 'new'));
    let running = true;
    const busy = (async () => {
      for (let i = 0; running; i++) {
        directory.write('busy.ossa.yaml', agent('busy', `r${i}`));
        await sleep(5);
      }
    })();
    await eventually(() => roles(manifests).includes('a new'));
    running = false;
    await busy;
  });

  it('is read at once when somebody asks for it', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open({ watch: false });
    directory.write('a.ossa.yaml', agent('a', 'new'));
    await manifests.reload();
    expect(roles(manifests)).toEqual(['a new']);
  });

  it('is told to nobody after the end', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    const manifests = await open();
    const changes = changesOf(manifests);
    await manifests.close();
    directory.write('a.ossa.yaml', agent('a', 'new'));
    await aWhile();
    expect(changes).toEqual([]);
    expect(roles(manifests)).toEqual(['a old']);
  });

  it('that comes between the first reading and the first watching is not lost', async () => {
    directory.write('a.ossa.yaml', agent('a', 'old'));
    directory.write('b.ossa.yaml', manifestWith('Agent', 'b', 'transport: { sse: { endpoint: /mine } }'));
    let changed = false;
    // Asked for while b is judged: a has been read by then, and no folder is watched yet.
    const segments: Iterable<string> = {
      *[Symbol.iterator]() {
        if (!changed) directory.write('a.ossa.yaml', agent('a', 'new'));
        changed = true;
        yield 'api';
      },
    };
    const manifests = await open({ reserved: { segments, channels: [] } });
    expect(manifests.current.agent('a')?.role).toBe('old');
    await eventually(() => manifests.current.agent('a')?.role === 'new');
  });

  it('of a file that was named is seen, also when the file is replaced', async () => {
    const file = directory.write('mine.yaml', agent('a', 'old'));
    const manifests = await open({ paths: [file] });
    for (const role of ['one', 'two', 'three']) {
      writeFileSync(`${file}.new`, agent('a', role));
      renameSync(`${file}.new`, file);
      await eventually(() => roles(manifests).join() === `a ${role}`);
    }
  });
});

/** A folder as the kubelet makes it: everything lies behind the link `..data`, which is swapped as a whole. */
class ConfigMap {
  readonly mount: string;
  private version = 0;
  constructor(mount: string, files: Readonly<Record<string, string>>) {
    this.mount = mount;
    mkdirSync(mount);
    this.swap(files);
    for (const name of Object.keys(files)) this.link(name);
  }

  link(name: string): void {
    symlinkSync(join('..data', name), join(this.mount, name));
  }

  /** The folder of before may stay for a while. */
  swap(files: Readonly<Record<string, string>>, tidy = true): void {
    const before = `..v${this.version}`;
    const now = `..v${++this.version}`;
    mkdirSync(join(this.mount, now));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.mount, now, name), text);
    symlinkSync(now, join(this.mount, '..data_tmp'));
    renameSync(join(this.mount, '..data_tmp'), join(this.mount, '..data'));
    if (tidy) rmSync(join(this.mount, before), { recursive: true, force: true });
  }
}

describe('a mounted ConfigMap', () => {
  it('is read once, and followed through every swap', async () => {
    const map = new ConfigMap(join(directory.path, 'mount'), {
      'a.ossa.yaml': agent('a', 'r0'),
      'b.ossa.yaml': agent('b'),
    });
    const manifests = await open({ paths: [map.mount] });
    expect(manifests.files).toBe(2);
    expect(manifests.findings).toEqual([]);
    expect(manifests.current.agent('a')?.place.file).toBe(join(map.mount, 'a.ossa.yaml'));
    for (const role of ['r1', 'r2', 'r3', 'r4']) {
      map.swap({ 'a.ossa.yaml': agent('a', role), 'b.ossa.yaml': agent('b') });
      await eventually(() => manifests.current.agent('a')?.role === role);
      expect(names(manifests)).toEqual(['a', 'b']);
    }
    expect(manifests.findings).toEqual([]);
  });

  it('keeps what was there when a swap brings something bad', async () => {
    const map = new ConfigMap(join(directory.path, 'mount'), { 'a.ossa.yaml': agent('a', 'old') });
    const manifests = await open({ paths: [map.mount] });
    map.swap({ 'a.ossa.yaml': 'kind: [' });
    await eventually(() => manifests.findings.length > 0);
    expect(roles(manifests)).toEqual(['a old']);
    map.swap({ 'a.ossa.yaml': agent('a', 'new') });
    await eventually(() => roles(manifests).join() === 'a new');
  });

  it.each(['mount', 'mount/a.ossa.yaml'])('is followed while the folder of before is still there: %s', async (path) => {
    const map = new ConfigMap(join(directory.path, 'mount'), { 'a.ossa.yaml': agent('a', 'r0') });
    const manifests = await open({ paths: [join(directory.path, path)] });
    await aWhile(); // what it does after the start would hide that it sees nothing
    for (const role of ['r1', 'r2', 'r3']) {
      map.swap({ 'a.ossa.yaml': agent('a', role) }, false);
      await eventually(() => roles(manifests).join() === `a ${role}`);
    }
  });

  it('is followed also if one file of it was named', async () => {
    const map = new ConfigMap(join(directory.path, 'mount'), { 'a.ossa.yaml': agent('a', 'r0') });
    const manifests = await open({ paths: [join(map.mount, 'a.ossa.yaml')] });
    for (const role of ['r1', 'r2', 'r3']) {
      map.swap({ 'a.ossa.yaml': agent('a', role) });
      await eventually(() => roles(manifests).join() === `a ${role}`);
    }
  });

  it('loses what a swap takes away', async () => {
    const map = new ConfigMap(join(directory.path, 'mount'), { 'a.ossa.yaml': agent('a'), 'b.ossa.yaml': agent('b') });
    const manifests = await open({ paths: [map.mount] });
    map.swap({ 'a.ossa.yaml': agent('a') });
    rmSync(join(map.mount, 'b.ossa.yaml'));
    await eventually(() => names(manifests).join() === 'a');
    expect(manifests.findings).toEqual([]);
  });
});

/** A schema of our own in the place of the official one. */
const SCHEMA = {
  $id: 'https://example.com/same-for-all',
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { colour: { enum: ['red', 'blue'] }, type: { type: 'string', format: 'nonsense' } },
      required: ['colour'],
    },
    metadata: { type: 'object', properties: { name: true }, additionalProperties: false },
  },
};

describe('official schemas', () => {
  const withSchemas = (text: string): Promise<Manifests> => {
    directory.write('schemas/ossa-0.3.1.schema.json', JSON.stringify({ ...SCHEMA, properties: {} }));
    directory.write('schemas/ossa-0.3.2.schema.json', JSON.stringify(SCHEMA));
    directory.write('m/a.ossa.yaml', text);
    return open({ paths: [join(directory.path, 'm')], schemaDirectory: join(directory.path, 'schemas'), watch: false });
  };
  const warnings = ['m/a.ossa.yaml:6:11 OSSA 0.3.2: spec.colour must be one of red, blue.'];

  it('warn, with a place, and do not keep a manifest from being served', async () => {
    const manifests = await withSchemas(agentWith('colour: green'));
    expect(told(manifests)).toEqual(warnings);
    expect(manifests.findings).toEqual([
      expect.objectContaining({ layer: 3, severity: 'warning', pointer: '/spec/colour', document: 1 }),
    ]);
    expect(names(manifests)).toEqual(['worker']);
  });

  it('are strict where that is asked for', async () => {
    await withSchemas(agentWith('colour: green'));
    const manifests = await open({
      ...{
        paths: [join(directory.path, 'm')],
        schemaDirectory: join(directory.path, 'schemas'),
        strict: true,
        watch: false,
      },
    });
    expect(told(manifests)).toEqual(warnings);
    expect(manifests.findings[0]?.severity).toBe('error');
    expect(names(manifests)).toEqual([]);
  });

  it.each([
    ['what is missing', agentWith('{}'), '5:1 OSSA 0.3.2: spec.colour is missing.'],
    [
      'what is too much',
      agentWith('colour: red').replace('worker', 'worker\n  author: me'),
      '5:3 OSSA 0.3.2: metadata.author is not known there.',
    ],
    ['nothing else', agentWith('colour: red\ntype: x'), undefined],
    ['nothing in another version', agentWith('colour: green').replace('0.3.2', '0.3.1'), undefined],
    [
      'that a version is missing',
      agentWith('{}').replace('0.3.2', '0.3.0'),
      '1:13 The manifest is not held against the official schema: that of OSSA 0.3.0 is not there.',
    ],
  ])('tell %s', async (_, text, expected) => {
    const manifests = await withSchemas(text);
    expect(told(manifests)).toEqual(expected === undefined ? [] : [`m/a.ossa.yaml:${expected}`]);
  });

  it('that are newer decide about versions near them', async () => {
    const manifests = await withSchemas(agentWith('colour: green').replace('0.3.2', '0.3.7'));
    expect(told(manifests)).toEqual([
      'm/a.ossa.yaml:1:13 OSSA 0.3.7 is not known to the gateway: it is taken for 0.3.2.',
      ...warnings,
    ]);
  });

  it.each([
    ['there is no folder', {}, 'The folder of the official schemas cannot be read (ENOENT).'],
    [
      'there are none in it',
      { 's/readme.txt': '' },
      'There is no schema in the folder; they are called ossa-0.3.2.schema.json, for instance.',
    ],
    ['one is no JSON', { 's/ossa-0.3.2.schema.json': '{' }, 'The schema cannot be used: '],
    ['one is no schema', { 's/ossa-0.3.2.schema.json': '{"type":"nonsense"}' }, 'The schema cannot be used: '],
  ])('are missed: %s', async (_, files, message) => {
    for (const [name, text] of Object.entries(files)) directory.write(name, text);
    directory.write('m/a.ossa.yaml', agentWith('{}'));
    const manifests = await open({
      paths: [join(directory.path, 'm')],
      schemaDirectory: join(directory.path, 's'),
      watch: false,
    });
    expect(manifests.findings[0]).toMatchObject({ layer: 3, severity: 'error' });
    expect(manifests.findings[0]?.message).toContain(message);
    expect(names(manifests)).toEqual(['worker']);
  });
});

describe('the manifest of the specification', () => {
  it('is there exactly as it stands there', () => {
    const text = readFileSync(join(__dirname, '../fixtures/seeds/event-streamer.ossa.yaml'), 'utf8');
    expect(text.split('\n')[0]).toBe('apiVersion: ossa/v0.3.0');
    expect(text).toContain('        expirySeconds: 300\n');
  });
});
