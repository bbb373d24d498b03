import { agentWith, judged, manifestWith } from './judged.ts';

const head = 'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata:\n  name: worker\n';
const sse = (block: string): string => agentWith(`transport:\n  sse:\n${block.replaceAll(/^/gm, '    ')}`);
const workflow = (steps: string): string =>
  manifestWith('Workflow', 'flow', `steps:\n${steps.replaceAll(/^/gm, '  ')}`);

/** What is wrong, the file, and everything that is said about it: where, how grave, and in which words. */
const BAD_FILES: readonly (readonly [what: string, text: string, ...told: readonly string[]])[] = [
  // The text
  ['an empty file', '', '1:1 error The file is empty.'],
  ['a file of blanks', ' \n\n', '1:1 error The file is empty.'],
  ['a list', '- a\n- b\n', '1:1 error A manifest is made of keys and values, not ["a","b"].'],
  ['plain text', 'hello', '1:1 error A manifest is made of keys and values, not "hello".'],
  [
    'a key that stands twice',
    `${head}spec:\n  role: a\n  llm: { provider: x, model: y }\n  role: b\n`,
    '8:3 error The key "role" stands here a second time; the first one is in line 6.',
  ],
  ['a tab as indentation', 'kind: Agent\nmetadata:\n\tname: x\n', '3:1 error Tabs are not allowed as indentation.'],
  ['a quote that is not closed', 'kind: "Agent\nmetadata: {}\n', '3:1 error Missing closing "quote.'],
  ['a word that cannot begin so', 'kind: @agent\n', '1:7 error Plain value cannot start with reserved character @.'],
  [
    'a merge key',
    `${head}x: &x { role: a }\nspec: { <<: *x }\n`,
    '6:9 error Merge keys (<<) are not read: write the keys out, or use an alias.',
  ],
  ['a tag', `${head}spec: !secret { role: a }\n`, '5:7 error The tag !secret is not read: write plain values.'],
  ['bytes', `${head}spec: { role: !!binary aGk= }\n`, '5:15 error The tag !!binary is not read: write plain values.'],
  ['an alias of nothing', `${head}spec: *nothing\n`, '5:7 error There is no anchor &nothing above this alias.'],
  [
    'an alias inside itself',
    `${head}spec: &a { x: *a }\n`,
    '5:15 error The alias *a stands inside what it stands for.',
  ],
  ['a key that is a list', `${head}spec:\n  ? [a]\n  : b\n`, '6:5 error A key in spec is not text.'],
  [
    'a key that reaches the prototype',
    `${head}spec: { __proto__: {} }\n`,
    '5:9 error The key "__proto__" cannot be used.',
  ],
  [
    'a control character',
    `${head}spec: { role: "a\u0007" }\n`,
    '5:17 error The file holds the control character U+0007.',
  ],

  // The envelope
  [
    'no apiVersion',
    'kind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:1 error apiVersion is missing, for instance: apiVersion: ossa/v0.3.2.',
  ],
  [
    'the legacy form',
    'ossaVersion: "1.0"\nkind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:1 error This is the legacy form with "ossaVersion": migrate it to apiVersion, kind, metadata and spec.',
  ],
  [
    'a placeholder for a version',
    'apiVersion: ossa/v0.3.x\nkind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:13 error apiVersion still holds the placeholder 0.3.x: put a version in its place, for instance ossa/v0.3.2.',
  ],
  [
    'a variable for a version',
    'apiVersion: ossa/v${VERSION}\nkind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:13 error apiVersion still holds the placeholder ${VERSION}: put a version in its place, for instance ossa/v0.3.2.',
  ],
  [
    'a version of something else',
    'apiVersion: v1\nkind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:13 error apiVersion must look like ossa/v0.3.2, not "v1".',
  ],
  [
    'a version that is too old',
    'apiVersion: ossa/v0.2.1\nkind: Agent\nmetadata: { name: a }\nspec: {}\n',
    '1:13 error OSSA 0.2.1 is too old: the gateway reads 0.2.2 and newer.',
  ],
  [
    'no kind',
    'apiVersion: ossa/v0.3.2\nmetadata: { name: a }\nspec: {}\n',
    '1:1 error kind is missing: it is one of Agent, Task, Workflow.',
  ],
  [
    'a kind that is misspelt',
    'apiVersion: ossa/v0.3.2\nkind: Agnet\nmetadata: { name: a }\nspec: {}\n',
    '2:7 error kind must be one of Agent, Task, Workflow, not "Agnet"; did you mean Agent?',
  ],
  [
    'a kind that is not served',
    'apiVersion: ossa/v0.3.2\nkind: Flow\nmetadata: { name: a }\nspec: {}\n',
    '2:7 error A Flow is not served: kind is one of Agent, Task, Workflow.',
  ],
  [
    'no metadata',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nspec: {}\n',
    '1:1 error metadata is missing: a manifest needs at least metadata.name.',
  ],
  [
    'no name',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata:\n  version: 1.0.0\nspec: {}\n',
    '3:1 error metadata.name is missing.',
  ],
  [
    'a name in capitals',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata: { name: My_Agent }\nspec: {}\n',
    '3:19 error metadata.name must be lower-case letters, digits and "-", at most 253, that begins and ends with a letter or digit, not "My_Agent".',
  ],
  [
    'the name that means all runs',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata: { name: runs }\nspec: {}\n',
    '3:19 error metadata.name cannot be "runs": under that name the gateway serves all runs.',
  ],
  ['no spec', 'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata: { name: a }\n', '1:1 error spec is missing.'],
  [
    'a spec of text',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata: { name: a }\nspec: nothing\n',
    '4:7 error spec must be keys and values, not "nothing".',
  ],
  [
    'a version that YAML takes for a number',
    'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata:\n  name: a\n  version: 1.5\nspec: {}\n',
    '5:12 error metadata.version must be text, in quotes if it looks like a number, not 1.5.',
  ],

  // The SSE block
  [
    'an SSE block of text',
    agentWith('transport:\n  sse: on'),
    '7:10 error spec.transport.sse must be keys and values, not "on".',
  ],
  [
    'channels that are no list',
    sse('channels: 42'),
    '8:17 error spec.transport.sse.channels must be a list of channels, not 42.',
  ],
  [
    'a channel with a comma',
    sse('channels:\n  - a,b'),
    '9:11 error That is no channel name: "a,b"; a name is letters, digits, "_" and "-" in segments with dots between them, at most 255 characters.',
  ],
  [
    'a pattern among the channels',
    sse('channels: [content.*]'),
    '8:18 error A pattern declares no channel: "content.*"; a name is letters, digits, "_" and "-" in segments with dots between them, at most 255 characters.',
  ],
  [
    'a reserved channel',
    sse('channels: [ok.then, gateway.stats]'),
    '8:27 error The channel "gateway.stats" is reserved: only the gateway itself writes to it.',
  ],
  [
    'a heartbeat below zero',
    sse('heartbeat: { interval: -1 }'),
    '8:30 error spec.transport.sse.heartbeat.interval must be a number of seconds from 1 to 3600, not -1.',
  ],
  [
    'a heartbeat that is misspelt',
    sse('heartbeat:\n  intervall: 5'),
    '9:9 error spec.transport.sse.heartbeat.intervall is not read; did you mean interval?',
  ],
  [
    'a block that is misspelt',
    sse('chanels: [a.b]'),
    '8:7 error spec.transport.sse.chanels is not read; did you mean channels?',
  ],
  [
    'a retry in words',
    sse('reconnect: { retry: 5s }'),
    '8:27 error spec.transport.sse.reconnect.retry must be a whole number of milliseconds from 0 to 3600000, not "5s".',
  ],
  [
    'half an event in the buffer',
    sse('buffer: { maxSize: 0.5, expirySeconds: -3 }'),
    '8:26 error spec.transport.sse.buffer.maxSize must be a whole number from 0 to 1000000, not 0.5.',
    '8:46 error spec.transport.sse.buffer.expirySeconds must be a number of seconds from 0 to 31536000, not -3.',
  ],
  [
    'an endpoint that is no path',
    sse('endpoint: events'),
    '8:17 error spec.transport.sse.endpoint must be an absolute path that begins with "/"; it is "events".',
  ],
  [
    'an endpoint with a query',
    sse('endpoint: /mine?x=1'),
    '8:17 error spec.transport.sse.endpoint must be a path without a query or fragment; it is "/mine?x=1".',
  ],
  [
    'an endpoint under a route',
    sse('endpoint: /API/mine'),
    '8:17 error spec.transport.sse.endpoint must not lie under /api, which the gateway serves itself; it is "/API/mine".',
  ],
  [
    'an endpoint under the route that is shared',
    sse('endpoint: /events/mine'),
    '8:17 error spec.transport.sse.endpoint must not lie under /events, which the gateway serves itself; it is "/events/mine".',
  ],
  [
    'an endpoint that climbs',
    sse('endpoint: /mine/../api'),
    '8:17 error spec.transport.sse.endpoint must be segments of letters, digits, ".", "_", "~" and "-" behind "/", at most 255 characters; it is "/mine/../api".',
  ],
  [
    'the root as endpoint',
    sse('endpoint: /'),
    '8:17 error spec.transport.sse.endpoint must not be "/", which the gateway serves itself; it is "/".',
  ],

  // Messages
  [
    'a publication without a channel',
    agentWith('messaging:\n  publishes:\n    - schema: {}'),
    '8:9 error spec.messaging.publishes[0].channel is missing.',
  ],
  [
    'a channel that is published twice',
    agentWith('messaging:\n  publishes:\n    - { channel: a.b }\n    - { channel: a.b }'),
    '9:20 error The channel "a.b" is published twice; the first time in line 8.',
  ],
  [
    'a payload schema that is none',
    agentWith('messaging:\n  publishes:\n    - channel: a.b\n      schema: { type: strin }'),
    '9:17 error spec.messaging.publishes[0].schema: The schema cannot be used: schema is invalid: data/type must be equal to one of the allowed values, data/type must be array, data/type must match a schema in anyOf.',
  ],
  [
    'a payload schema that needs another file',
    agentWith('messaging:\n  publishes:\n    - channel: a.b\n      schema: { $ref: ./other.json }'),
    "9:17 error spec.messaging.publishes[0].schema: The schema cannot be used: can't resolve reference ./other.json from id #.",
  ],
  [
    'a handler that is misspelt',
    agentWith('capabilities: [summarize]\nmessaging:\n  subscribes:\n    - { channel: a.*, handler: sumarize }'),
    '9:34 error The handler sumarize is no capability of this agent; did you mean summarize?',
  ],
  [
    'a pattern that is none',
    agentWith('capabilities: [a]\nmessaging:\n  subscribes:\n    - { channel: a.#.b, handler: a }'),
    '9:20 error That is no channel name or pattern: "a.#.b"; a name is letters, digits, "_" and "-" in segments with dots between them, at most 255 characters, in a pattern "*" is one segment and "#", only last, the rest.',
  ],
  [
    'a subscription to what belongs to others',
    agentWith('capabilities: [a]\nmessaging:\n  subscribes:\n    - { channel: "runs.#", handler: a }'),
    '9:20 error The channel "runs.#" is reserved: its events belong to whoever caused them.',
  ],
  [
    'no concurrency at all',
    agentWith('capabilities: [a]\nmessaging:\n  subscribes:\n    - { channel: b, handler: a, maxConcurrency: 0 }'),
    '9:51 error spec.messaging.subscribes[0].maxConcurrency must be a whole number from 1 to 10000, not 0.',
  ],

  // Capabilities
  [
    'a number of capabilities',
    agentWith('capabilities: 7'),
    '6:17 error spec.capabilities must be a list of names or capabilities, or capabilities by name, not 7.',
  ],
  [
    'a capability without a name',
    agentWith('capabilities:\n  - description: x'),
    '7:7 error spec.capabilities[0].name is missing.',
  ],
  [
    'a capability that no URL can name',
    agentWith('capabilities: ["a/b"]'),
    '6:18 error spec.capabilities[0] must be the name of a capability, or a capability with a name, not "a/b".',
  ],
  [
    'a capability by a name that no URL can name',
    agentWith('capabilities:\n  a b: {}'),
    '7:5 error "a b" in spec.capabilities must be a name of letters, digits, "_", "-" and ".", at most 128 characters, that does not begin with "-" or ".".',
  ],
  [
    'a capability that is declared twice',
    agentWith('capabilities:\n  - { name: a, description: x }\nfunctions:\n  - { name: a, parameters: {} }'),
    '9:7 error The capability a is declared twice; the first time in line 7.',
  ],
  [
    'two names for one schema',
    agentWith('capabilities:\n  - name: a\n    input_schema: {}\n    inputSchema: {}'),
    '9:7 error spec.capabilities[0] has both input_schema and inputSchema: leave one.',
  ],
  [
    'an input schema that is none',
    agentWith('functions:\n  - name: a\n    parameters: { properties: 5 }'),
    '8:19 error spec.functions[0].parameters: The schema cannot be used: schema is invalid: data/properties must be object.',
  ],
  [
    'a timeout of a week',
    agentWith('capabilities: [{ name: a, timeout_seconds: 604800 }]'),
    '6:46 error spec.capabilities[0].timeout_seconds must be a number of seconds above 0 and at most 86400, not 604800.',
  ],
  [
    'a scope of two words',
    agentWith('capabilities: [{ name: a, scopes: ["a b"] }]'),
    '6:38 error spec.capabilities[0].scopes[0] must be a scope without spaces, not "a b".',
  ],

  // The rest of an agent
  ['a model without a name', agentWith('llm: { provider: openai }'), '6:3 error spec.llm.model is missing.'],
  [
    'a temperature that boils',
    agentWith('llm: { provider: a, model: b, temperature: 3 }'),
    '6:46 error spec.llm.temperature must be a number from 0 to 2, or ${NAME} or ${NAME:-otherwise}, not 3.',
  ],
  [
    'a number of tokens in words',
    agentWith('llm: { provider: a, model: b, maxTokens: many }'),
    '6:44 error spec.llm.maxTokens must be a whole number from 1 to 100000000, or ${NAME} or ${NAME:-otherwise}, not "many".',
  ],
  [
    'a tier that there is not',
    agentWith('access: { tier: admin }'),
    '6:19 error spec.access.tier must be one of tier_1_read, tier_2_write_limited, tier_3_write_elevated, tier_4_policy, not "admin".',
  ],
  [
    'a limit of nothing',
    agentWith('safety:\n  rate_limiting: { requests_per_minute: 0 }'),
    '7:43 error spec.safety.rate_limiting.requests_per_minute must be a whole number from 1 to 10000000, not 0.',
  ],
  [
    'a constraint in words',
    agentWith('constraints:\n  performance: { maxConcurrentRequests: few }'),
    '7:43 error spec.constraints.performance.maxConcurrentRequests must be a whole number from 1 to 1000000, not "few".',
  ],
  [
    'a binding that is text',
    agentWith('capabilities: [a]', 'runtime:\n  bindings:\n    a: tool\n'),
    '9:8 error runtime.bindings.a must be keys and values, not "tool".',
  ],

  // Workflows and tasks
  [
    'a workflow without steps',
    workflow('[]').replace(/ {4}\[\]/, '    []'),
    '7:5 error spec.steps must be a list of at least one step, not [].',
  ],
  ['a step without an id', workflow('- { kind: Task }'), '7:7 error spec.steps[0].id is missing.'],
  [
    'a step of a kind that there is not',
    workflow('- { id: a, kind: Magic }'),
    '7:22 error spec.steps[0].kind must be one of Task, Agent, Parallel, Conditional, Loop, not "Magic".',
  ],
  [
    'a step id that is used twice, once inside',
    workflow('- { id: a }\n- id: b\n  parallel:\n    - { id: a }'),
    '10:17 error The step id a is used twice; the first time in line 7.',
  ],
  [
    'a dependency on nothing',
    workflow('- { id: fetch }\n- { id: b, depends_on: [fetsh] }'),
    '8:29 error The step b depends on fetsh, which is no step; did you mean fetch?',
  ],
  [
    'a circle',
    workflow('- { id: a, depends_on: [c] }\n- { id: b, depends_on: [a] }\n- { id: c, depends_on: [b] }'),
    '7:7 error These steps wait for each other in a circle: a -> c -> b -> a.',
  ],
  [
    'a step that waits for itself',
    workflow('- { id: a, depends_on: [a] }'),
    '7:7 error These steps wait for each other in a circle: a -> a.',
  ],
  [
    'a step that waits for the one around it',
    workflow('- id: outer\n  parallel:\n    - { id: inner, depends_on: [outer] }'),
    '7:7 error These steps wait for each other in a circle: outer -> inner -> outer.',
  ],
  [
    'dependencies that are no list',
    workflow('- { id: a, depends_on: b }'),
    '7:28 error spec.steps[0].depends_on must be a list of step ids, not "b".',
  ],
  [
    'a jump to nowhere',
    workflow('- { id: a, on_error: { action: goto, goto: elsewhere } }'),
    '7:48 error On an error the step a goes to elsewhere, which is no step.',
  ],
  [
    'a loop without an end',
    workflow('- { id: a, kind: Loop, loop: { over: "x" } }'),
    '7:7 error spec.steps[0] is a Loop step without steps or ref or inline.',
  ],
  [
    'parallel steps without any',
    workflow('- { id: a, kind: Parallel }'),
    '7:7 error spec.steps[0] is a Parallel step without parallel or steps.',
  ],
  [
    'a reference that leaves the folder',
    workflow('- { id: a, ref: ../../etc/passwd.yaml }'),
    '7:21 error spec.steps[0].ref leaves the folder of the manifests: "../../etc/passwd.yaml".',
  ],
  [
    'a reference to an absolute path',
    workflow('- { id: a, ref: /etc/x.yaml }'),
    '7:21 error spec.steps[0].ref leaves the folder of the manifests: "/etc/x.yaml".',
  ],
  [
    'a reference to an address',
    workflow('- { id: a, ref: "https://example.com/x.yaml" }'),
    '7:21 error spec.steps[0].ref must be a file or a name, not the address "https://example.com/x.yaml".',
  ],
  [
    'a condition that is no text',
    workflow('- { id: a, condition: { x: 1 } }'),
    '7:27 error spec.steps[0].condition must be an expression as text, not {"x":1}.',
  ],
  ['a task that is not executed', manifestWith('Task', 'task', 'input: {}'), '5:1 error spec.execution is missing.'],
];

describe('a bad file', () => {
  it.each(BAD_FILES)('%s', (_, text, ...told) => {
    const { manifests, told: said, findings } = judged(text);
    expect(said).toEqual(told);
    expect(manifests).toEqual([]);
    for (const { document, pointer, layer, file } of findings) {
      expect({ file, layers: [1, 2].includes(layer), pointer: pointer === '' || pointer.startsWith('/') }).toEqual({
        ...{ file: 'a.ossa.yaml', layers: true, pointer: true },
      });
      expect(document).toBeLessThanOrEqual(1);
    }
    for (const { layer, line, column } of findings) {
      if (layer === 2) expect(text.split('\n')[line - 1]?.[column - 1]).toMatch(/\S/);
    }
  });

  it('is one of many: the table is long', () => {
    expect(BAD_FILES.length).toBeGreaterThanOrEqual(80);
  });

  it('says everything that is wrong with it at once', () => {
    const { told } = judged(
      agentWith(
        'llm: {}\ncapabilities: [a, a]\ntransport:\n  sse: { endpoint: x, channels: ["!"] }\nmessaging:\n  subscribes: [{ channel: b, handler: c }]',
      ),
    );
    expect(told).toHaveLength(6);
  });

  it('is told of in bounded length', () => {
    const channels = Array.from({ length: 900 }, (_, i) => `      - "!${i}"`).join('\n');
    const { told, manifests } = judged(agentWith(`transport:\n  sse:\n    channels:\n${channels}`));
    expect(told).toHaveLength(51);
    expect(told.at(-1)).toBe('1:1 error There is more to say about this document: 850 findings are left out.');
    expect(manifests).toEqual([]);
  });

  it('gives the pointer of what is wrong, also through signs that pointers escape', () => {
    const { findings } = judged(agentWith('capabilities: [a]', 'runtime:\n  bindings:\n    a/b~c: 5\n'));
    expect(findings.map(({ pointer }) => pointer)).toContain('/runtime/bindings/a~1b~0c');
  });
});

/** What can be served, and should be looked at all the same. */
describe('a doubtful file', () => {
  it.each([
    [
      'a version that comes later',
      agentWith('{}').replace('0.3.2', '0.3.9'),
      '1:13 warning OSSA 0.3.9 is not known to the gateway: it is taken for 0.3.2.',
    ],
    [
      'a key that is nearly one',
      agentWith('constraints:\n  perfomance: {}'),
      '7:5 warning spec.constraints.perfomance is not read; did you mean performance?',
    ],
    [
      'a block in another place',
      agentWith('streaming:\n  sse: { enabled: true }'),
      '7:5 warning spec.streaming.sse is not read: write spec.transport.sse.',
    ],
    [
      'a block by another name',
      agentWith('transport:\n  streaming: { type: sse }'),
      '7:5 warning spec.transport.streaming is not read: write spec.transport.sse.',
    ],
    [
      'a tier by another name',
      agentWith('accessTier: tier_1_read'),
      '6:3 warning spec.accessTier is not read: write spec.access.tier.',
    ],
    [
      'a binding of nothing',
      agentWith('capabilities: [summarize]', 'runtime:\n  bindings:\n    summarise: { tool: x }\n'),
      '9:5 warning runtime.bindings names summarise, which is no capability of this agent; did you mean summarize?',
    ],
    [
      'a subscription that starts nothing',
      agentWith('messaging:\n  subscribes:\n    - { channel: a.b }'),
      '8:9 warning Nothing is started for "a.b": the subscription has no handler.',
    ],
    [
      'a channel that stands twice',
      sse('channels: [a, b, a]'),
      '8:24 warning The channel "a" stands in the list twice.',
    ],
    [
      'a trigger',
      workflow('- { id: a }').replace('spec:', 'spec:\n  triggers: []'),
      '6:3 warning spec.triggers is not served: the workflow is started by request.',
    ],
  ])('%s', (_, text, told) => {
    const { manifests, told: said } = judged(text);
    expect(said).toEqual([told]);
    expect(manifests).toHaveLength(1);
  });

  it('holds nothing but comments', () => {
    expect(judged('# nothing yet\n---\n').told).toEqual(['1:1 warning The file holds no manifest.']);
  });

  it.each(['ossa/v0.3.9', 'ossa/v0.4.1', 'ossa/v1'])('%s is refused where unknown versions are', (version) => {
    const { manifests, findings } = judged(agentWith('{}').replace('ossa/v0.3.2', version), {
      unknownVersion: 'reject',
    });
    expect(findings).toEqual([expect.objectContaining({ layer: 1, severity: 'error', pointer: '/apiVersion' })]);
    expect(manifests).toEqual([]);
  });
});

describe('a good file', () => {
  it('may hold keys that nobody here knows', () => {
    const { told } = judged(
      `${agentWith('anything: { at: all }\nobservability: { x: 1 }\ntaxonomy: {}', 'extensions: { mine: 1 }\n')}other: 5\n`,
    );
    expect(told).toEqual([]);
  });

  it('may hold several documents, also empty ones', () => {
    const text = `---\n${agentWith('{}')}---\n---\n${manifestWith('Task', 'task', 'execution: { type: idempotent }')}...\n`;
    const { manifests, told } = judged(text);
    expect(told).toEqual([]);
    expect(manifests.map(({ kind, name, place }) => [kind, name, place.document, place.line])).toEqual([
      ['Agent', 'worker', 1, 5],
      ['Task', 'task', 3, 13],
    ]);
  });

  it('is not harmed by what is wrong with the document behind it', () => {
    const { manifests, told } = judged(`${agentWith('{}')}---\nkind: Agent\n`);
    expect(manifests.map(({ name }) => name)).toEqual(['worker']);
    expect(told).toEqual([
      '8:1 error apiVersion is missing, for instance: apiVersion: ossa/v0.3.2.',
      '8:1 error metadata is missing: a manifest needs at least metadata.name.',
      '8:1 error spec is missing.',
    ]);
  });

  it.each([
    ['a byte order mark', (text: string) => `\uFEFF${text}`],
    ['the line ends of Windows', (text: string) => text.replaceAll('\n', '\r\n')],
    ['tabs behind values', (text: string) => text.replaceAll('\n', '\t\n')],
    ['no last line end', (text: string) => text.trimEnd()],
    ['anchors and aliases', (text: string) => text.replace('role: a', 'role: &r a\n  other: *r')],
  ])('may have %s', (_, change) => {
    const { manifests, told } = judged(change(agentWith('role: a')));
    expect(told).toEqual([]);
    expect(manifests).toEqual([expect.objectContaining({ name: 'worker', role: 'a' })]);
  });

  it('tells the right place also after a byte order mark and with the line ends of Windows', () => {
    const { told } = judged(`\uFEFF${sse('channels: 42')}`.replaceAll('\n', '\r\n'));
    expect(told).toEqual(['8:17 error spec.transport.sse.channels must be a list of channels, not 42.']);
  });

  it('may be JSON, with tabs', () => {
    const value = { apiVersion: 'ossa/v0.3.2', kind: 'Agent', metadata: { name: 'worker' }, spec: { role: 'a' } };
    const { manifests, told } = judged(JSON.stringify(value, null, '\t'), { path: 'a.ossa.json' });
    expect(told).toEqual([]);
    expect(manifests).toHaveLength(1);
  });

  it('must be JSON if it is called so', () => {
    const { told } = judged("{'kind': 'Agent'}", { path: 'a.ossa.json' });
    expect(told[0]).toMatch(/^1:2 error The file is called \.json, and is not JSON: /);
  });

  it('is frozen through and through', () => {
    const { manifests } = judged(agentWith('capabilities: [{ name: a, input_schema: { type: object } }]'));
    const open = (value: unknown): boolean =>
      typeof value === 'object' &&
      value !== null &&
      (Object.getPrototypeOf(value) === Object.prototype || Array.isArray(value)) &&
      (!Object.isFrozen(value) || Object.values(value).some(open));
    expect(open(manifests[0])).toBe(false);
  });
});
