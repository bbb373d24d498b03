import { Catalogue } from '../../src/manifests/catalogue.ts';
import { judged, manifestWith } from './judged.ts';

const catalogueOf = (agents: Readonly<Record<string, string>>): Catalogue => {
  const texts = Object.entries(agents).map(([name, spec]) => manifestWith('Agent', name, spec));
  const { manifests, told } = judged(texts.join('---\n'));
  expect(told).toEqual([]);
  return new Catalogue(manifests);
};

describe('a channel in the catalogue', () => {
  const shared = catalogueOf({
    small:
      'transport: { sse: { channels: [a, b], heartbeat: { interval: 10 }, reconnect: { retry: 9000 }, buffer: { maxSize: 10, expirySeconds: 900 } } }',
    large:
      'transport: { sse: { channels: [a], heartbeat: { interval: 60 }, reconnect: { retry: 1000 }, buffer: { maxSize: 500, expirySeconds: 60 } } }',
    off: 'transport: { sse: { enabled: false, channels: [a, c], heartbeat: { interval: 1 }, buffer: { maxSize: 9999 } } }',
  });

  it('keeps the most that one of its agents asks for, and beats and retries as the most impatient one', () => {
    expect(shared.channel('a')).toMatchObject({
      name: 'a',
      limits: { events: 500, ageMs: 900_000 },
      heartbeatSeconds: 10,
      retryMs: 1000,
    });
    expect(shared.channel('a')?.agents.map(({ name }) => name)).toEqual(['small', 'large', 'off']);
    expect(shared.channel('b')?.limits).toEqual({ events: 10, ageMs: 900_000 });
  });

  it('leaves to the settings what nobody says', () => {
    const { channel } = { channel: catalogueOf({ one: 'transport: { sse: { channels: [a] } }' }).channel('a') };
    expect(channel?.limits).toEqual({});
    expect(channel).not.toHaveProperty('heartbeatSeconds');
    expect(channel).not.toHaveProperty('retryMs');
  });

  it('is declared also by a block that is switched off, and served at no endpoint then', () => {
    expect(shared.channel('c')?.limits).toEqual({});
    expect(shared.channelsOf('/events')).toEqual(['a', 'b']);
    expect(shared.channel('d')).toBeUndefined();
    expect(shared.channelNames()).toEqual(['a', 'b', 'c']);
  });

  it('belongs to the endpoints of its agents', () => {
    const catalogue = catalogueOf({
      one: 'transport: { sse: { channels: [a] } }\nmessaging: { publishes: [{ channel: b }] }',
      two: 'transport: { sse: { endpoint: /mine/own, channels: [b] } }',
      three: 'transport: { sse: { endpoint: /empty } }',
      four: 'messaging: { publishes: [{ channel: z }] }',
    });
    expect(catalogue.endpoints()).toEqual(['/events', '/mine/own', '/empty']);
    expect(catalogue.channelsOf('/events')).toEqual(['a', 'b']);
    expect(catalogue.channelsOf('/mine/own')).toEqual(['b']);
    expect(catalogue.channelsOf('/empty')).toEqual([]);
    expect(catalogue.channelsOf('/nowhere')).toEqual([]);
    expect(catalogue.channel('z')).toBeDefined();
  });

  it('checks what is published by the schema of whoever speaks, else by any of them', () => {
    const channel = catalogueOf({
      one: 'messaging: { publishes: [{ channel: a, schema: { type: object, required: [x] } }] }',
      two: 'messaging: { publishes: [{ channel: a, schema: { type: string } }] }',
      three: 'messaging: { publishes: [{ channel: a }] }',
    }).channel('a');
    expect(channel?.payloadFault({}, 'agent://default/one')).toBe('x is missing.');
    expect(channel?.payloadFault('text', 'agent://default/one')).toBe('The input must be object.');
    expect(channel?.payloadFault('text', 'agent://default/two')).toBeUndefined();
    expect(channel?.payloadFault('text', 'agent://default/three')).toBeUndefined();
    expect(channel?.payloadFault({ x: 1 })).toBeUndefined();
    expect(channel?.payloadFault(5)).toBe('The input must be object.');
  });

  it('takes everything where no schema is', () => {
    expect(catalogueOf({ one: 'transport: { sse: { channels: [a] } }' }).channel('a')?.payloadFault(5)).toBeUndefined();
  });
});

describe('a capability in the catalogue', () => {
  const catalogue = catalogueOf({
    one: 'capabilities: [alone, both, code.complete]',
    two: 'capabilities: [both]',
    code: 'capabilities: [complete]',
  });
  const found = (name: string): string | readonly string[] | undefined => {
    const lookup = catalogue.capability(name);
    if (lookup?.outcome === 'ambiguous') return lookup.names;
    return lookup && `${lookup.agent.name} ${lookup.capability.name}`;
  };

  it.each([
    ['alone', 'one alone'],
    ['one.alone', 'one alone'],
    ['one.both', 'one both'],
    ['two.both', 'two both'],
    ['both', ['one.both', 'two.both']],
    ['code.complete', 'code complete'],
    ['one.code.complete', 'one code.complete'],
    ['nobody.both', undefined],
    ['nothing', undefined],
    ['constructor', undefined],
  ])('%s is %j', (name, expected) => {
    expect(found(name)).toEqual(expected);
  });
});

describe('the catalogue', () => {
  it('knows subscriptions that start something', () => {
    const { manifests } = judged(
      manifestWith(
        'Agent',
        'one',
        'capabilities: [a]\nmessaging: { subscribes: [{ channel: x.*, handler: a }, { channel: y }] }',
      ),
    );
    const catalogue = new Catalogue(manifests);
    expect(catalogue.subscriptions()).toEqual([
      expect.objectContaining({ channel: 'x.*', handler: 'a', agent: catalogue.agent('one') }),
    ]);
  });

  it('knows manifests by kind and name, and by what refers to them', () => {
    const { manifests } = judged(
      [
        manifestWith('Agent', 'same', '{}'),
        manifestWith('Task', 'same', 'execution: { type: idempotent }'),
        manifestWith(
          'Workflow',
          'same',
          'steps: [{ id: a, ref: same }, { id: b, ref: ./a.ossa.yaml }, { id: c, ref: gone }]',
        ),
      ].join('---\n'),
    );
    const catalogue = new Catalogue(manifests);
    expect([catalogue.agents(), catalogue.tasks(), catalogue.workflows()].map(({ length }) => length)).toEqual([
      1, 1, 1,
    ]);
    expect(catalogue.task('same')).toMatchObject({ kind: 'Task', timeoutSeconds: 300 });
    expect(catalogue.workflow('other')).toBeUndefined();
    const refs = catalogue.workflow('same')?.steps.flatMap(({ ref }) => ref ?? []) ?? [];
    expect(refs.map((ref) => catalogue.referred(ref, 'Agent')?.kind)).toEqual(['Agent', 'Agent', undefined]);
    expect(refs.map((ref) => catalogue.referred(ref, 'Task')?.kind)).toEqual(['Task', 'Task', undefined]);
  });
});
