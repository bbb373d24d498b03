import type { Cause } from '../../../src/jobs/kind.ts';
import { aboutText, capabilityKind, positionOf, resultEvent } from '../../../src/protocols/ossa/capability-event.ts';

const about = aboutText({ capability: 'c', agentId: 'agent://default/a', correlationId: 'r' });
const facts = { id: 'the-stream', kind: 'capability', principal: 'ann', owner: 'me', about, created: 0 };

describe('a capability that its work cannot end any more', () => {
  it.each<[Cause, string, boolean]>([
    ['error', 'INTERNAL_ERROR', false],
    ['too_large', 'PROCESSING_ERROR', false],
    ['cancelled', 'PROCESSING_ERROR', false],
    ['shutdown', 'INTERNAL_ERROR', true],
    ['owner_lost', 'INTERNAL_ERROR', true],
    ['store_lost', 'INTERNAL_ERROR', true],
  ])('by %s ends with %s', (cause, code, retryable) => {
    const log = { snapshot: undefined, from: 1, last: 4, events: [] };
    const [only, ...more] = capabilityKind.ended(log, { cause, message: 'why' }, facts);
    expect(more).toEqual([]);
    const [type, id = '', ...json] = (only as string).split(' ');
    expect(type).toBe('error');
    expect(positionOf(id)).toBe(5);
    expect(JSON.parse(json.join(' '))).toMatchObject({
      payload: { code, message: 'why', retryable },
      metadata: { agentId: 'agent://default/a', streamId: 'the-stream', correlationId: 'r', sequence: 5, final: true },
    });
  });
});

describe('the position in an id of a capability', () => {
  it('is its number', () => {
    const [, id = ''] = resultEvent(facts, {})(123_456_789).split(' ');
    expect(positionOf(id)).toBe(123_456_789);
  });

  it.each([
    '',
    'resp',
    'resp-',
    'x-01a1ee9f-3ba2-7000-8000-000004000000',
    'resp-01a1ee9f-3ba2-7000-8000-000004000001',
    '7',
  ])('is none in %j', (id) => expect(positionOf(id)).toBeUndefined());
});
