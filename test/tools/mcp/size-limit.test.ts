import { sizeLimit } from '../../../src/tools/mcp/size-limit.ts';

const through = async (limit: TransformStream<Uint8Array, Uint8Array>, chunks: readonly string[]): Promise<string> => {
  const source = new Blob([]).stream().pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      flush(controller) {
        for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
      },
    }),
  );
  return new Response(source.pipeThrough(limit)).text();
};

describe('the limit of an answer', () => {
  it('counts everything', async () => {
    const told = jest.fn();
    expect(await through(sizeLimit(6, false, told), ['abc', 'def'])).toBe('abcdef');
    expect(told).not.toHaveBeenCalled();
    await expect(through(sizeLimit(5, false, told), ['abc', 'def'])).rejects.toThrow('too large');
    expect(told).toHaveBeenCalledTimes(1);
  });

  it.each(['\n', '\r\n'])('counts one event of a stream, which may go on for ever (%j)', async (end) => {
    const event = `data: 1234${end}${end}`;
    const told = jest.fn();
    const text = await through(
      sizeLimit(14, true, told),
      Array.from({ length: 100 }, () => event),
    );
    expect(text).toBe(event.repeat(100));
    expect(told).not.toHaveBeenCalled();
    const long = `data: 1234${end}data: 5678${end}${end}`;
    await expect(through(sizeLimit(14, true, told), [event, ...long])).rejects.toThrow('too large');
    expect(told).toHaveBeenCalledTimes(1);
  });
});
