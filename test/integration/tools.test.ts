import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';

describe('GET /api/tools', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  const ask = async (scope?: string, path = '/api/tools'): Promise<{ status: number; body: unknown }> => {
    const headers = scope === undefined ? {} : { Authorization: `Bearer ${tokenFor({ scope })}` };
    const answer = await fetch(gateway.url + path, { headers });
    return { status: answer.status, body: await answer.json() };
  };

  it('needs an administrator, and says so in the words of this API', async () => {
    expect(await ask()).toMatchObject({ status: 401, body: { error: expect.any(String) } });
    expect(await ask('agents')).toEqual({
      status: 403,
      body: { error: "This endpoint requires the project's service role key", code: 'FORBIDDEN' },
    });
    expect(await ask('admin')).toEqual({ status: 200, body: { tools: [], total: 0 } });
    expect(await ask('admin', '/api/nothing')).toMatchObject({ status: 404, body: { error: expect.any(String) } });
  });
});
