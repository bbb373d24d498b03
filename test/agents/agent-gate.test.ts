import { AgentGate } from '../../src/agents/agent-gate.ts';
import type { Agent } from '../../src/manifests/agent.ts';

const agent = (more: Partial<Agent> = {}): Agent => ({ name: 'a', ...more }) as Agent;
const open = { take: async () => ({ allowed: true }) as const };
const never = new AbortController().signal;

/** Whether a promise is settled by now. */
const isOver = async (promise: Promise<unknown>): Promise<boolean> => {
  let over = false;
  void promise.then(
    () => {
      over = true;
    },
    () => {
      over = true;
    },
  );
  await new Promise((resolve) => setImmediate(resolve));
  return over;
};

const enter = async (gate: AgentGate, who: Agent) => {
  const admission = await gate.enter(who);
  if (!admission.allowed) throw new Error(admission.reason);
  return admission.place;
};

describe('the gate of an agent', () => {
  it('lets as many in as the manifest says, and the others in their order', async () => {
    const gate = new AgentGate(open);
    const one = agent({ maxConcurrentRequests: 1 });
    const [a, b, c] = [await enter(gate, one), await enter(gate, one), await enter(gate, one)];
    expect(gate.load('a')).toEqual({ running: 1, waiting: 2 });
    expect(gate.totals()).toEqual({ active: 1, waiting: 2 });
    await a.turn(never);
    const second = b.turn(never);
    const third = c.turn(never);
    expect(await isOver(second)).toBe(false);
    a.leave();
    a.leave();
    expect([await isOver(second), await isOver(third)]).toEqual([true, false]);
    b.leave();
    await third;
    c.leave();
    expect(gate.load('a')).toEqual({ running: 0, waiting: 0 });
  });

  it('forgets who leaves the line', async () => {
    const gate = new AgentGate(open);
    const one = agent({ maxConcurrentRequests: 1 });
    const [a, b, c] = [await enter(gate, one), await enter(gate, one), await enter(gate, one)];
    const stop = new AbortController();
    const waiting = b.turn(stop.signal);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    b.leave();
    a.leave();
    await c.turn(never);
    expect(gate.load('a')).toEqual({ running: 1, waiting: 0 });
  });

  it('refuses when the line is full, and when the rate is exceeded', async () => {
    const gate = new AgentGate(open);
    const one = agent({ maxConcurrentRequests: 1 });
    for (let i = 0; i < 101; i++) await enter(gate, one);
    expect(await gate.enter(one)).toMatchObject({ allowed: false, reason: 'queue' });
    const strict = new AgentGate({ take: async () => ({ allowed: false, retryAfterSeconds: 7 }) });
    expect(await strict.enter(agent({ rateLimit: { requestsPerMinute: 1 } }))).toEqual({
      allowed: false,
      reason: 'rate',
      retryAfterSeconds: 7,
    });
    expect(await strict.enter(agent())).toMatchObject({ allowed: true });
  });
});
