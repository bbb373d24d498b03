import {
  aboutText,
  callDialect,
  callKind,
  errorEvent,
  errorText,
  isOfSession,
  refusalOf,
  refusedEvent,
  resultEvents,
} from '../../../src/protocols/ors/call-event.ts';

const outcomeOf = (text: string) =>
  ({
    ok: true,
    output: {
      blocks: [{ text, detail: null, type: 'text' }],
      metadata: null,
      reward: null,
      finished: false,
    },
  }) as const;
const frameOf = (data: string): string => callDialect.encoders.plain.encode({ seq: 1, data }).toString();

describe('the events of a call', () => {
  it('cut an error to what clients take: 4096 characters a line, 16384 in all, and never nothing', () => {
    expect(errorText('')).toBe('The tool failed and did not say why.');
    expect(errorText('a\r\nb\rc\nd')).toBe('a\nb\nc\nd');
    expect(errorText('x'.repeat(4_096))).toBe('x'.repeat(4_096));
    expect(errorText('x'.repeat(4_097))).toBe(`${'x'.repeat(4_095)}…`);
    const lines = `${'y'.repeat(99)}\n`.repeat(1_000);
    expect(errorText(lines)).toBe(lines.slice(0, 16_384));
    expect(
      errorText(`${'x'.repeat(5_000)}\rshort`)
        .split('\n')
        .map(({ length }) => length),
    ).toEqual([4_096, 5]);
  });

  it('are as many pieces as a result needs, the last of which is the end', () => {
    const events = resultEvents(outcomeOf('x'.repeat(10_000)), 1_000_000) ?? [];
    expect(events.map((event) => event.split(' ', 1)[0])).toEqual(['chunk', 'chunk', 'end']);
    const json = events.map((event) => event.slice(event.indexOf(' ') + 1)).join('');
    expect(JSON.parse(json)).toEqual(outcomeOf('x'.repeat(10_000)));
  });

  it.each(['x', 'é', '漢', '🐟'])('are none where a result of %s has one byte more than it may', (character) => {
    const outcome = outcomeOf(character.repeat(1_000));
    const bytes = Buffer.byteLength(JSON.stringify(outcome));
    expect(resultEvents(outcome, bytes)).toBeDefined();
    expect(resultEvents(outcome, bytes - 1)).toBeUndefined();
  });

  it('show clients a refusal without its code, and another replica with it', () => {
    const event = refusedEvent('RATE_LIMIT_EXCEEDED', 'too many\nat once');
    expect(refusalOf(event)).toEqual({ code: 'RATE_LIMIT_EXCEEDED', detail: 'too many\nat once' });
    expect(refusalOf(errorEvent('refused X y'))).toBeUndefined();
    expect(frameOf(event)).toBe('event: error\ndata: too many\ndata: at once\n\n');
    expect(frameOf('accepted')).toBe(': accepted\n\n');
    expect(frameOf('end {"a":1}')).toBe('event: end\ndata: {"a":1}\n\n');
  });

  it('say how a call ended that did not end by itself', () => {
    const kind = callKind(1_000);
    const log = { last: 0 } as Parameters<typeof kind.ended>[0];
    const ended = kind.ended(log, { cause: 'owner_lost', message: 'Its gateway is gone.' } as never, {} as never);
    expect(ended).toEqual(['error Its gateway is gone.']);
  });

  it('belong to one session, and to none whose name only begins like it', () => {
    const about = aboutText({ session: 'abc.1', environment: 'sums', tool: 'submit' });
    expect(['abc.1', 'abc.', 'abc', ''].map((session) => isOfSession({ about }, session))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('stop a client whose place in the stream is gone', () => {
    const told = callDialect.reset({ reason: 'collapsed' } as never, {} as never, null);
    expect(told).toBe('event: error\ndata: unknown task_id\n\n');
  });
});
