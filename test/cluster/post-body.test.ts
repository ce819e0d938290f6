import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { postBody } from '../../src/cluster/peer/post-body.ts';

/** A node that refuses each body before it has read it, in a process of its own. */
const REFUSES = `
  const answer = () => Response.json({ code: 'conflict', message: 'used' }, { status: 409 });
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: async () => answer() });
  console.log(server.port);
`;

describe('a body that is passed on', () => {
  const node = Bun.spawn([process.execPath, '-e', REFUSES], { stdout: 'pipe' });
  let port = 0;
  beforeAll(async () => {
    const { value } = await node.stdout.getReader().read();
    port = Number(new TextDecoder().decode(value));
  });
  afterAll(() => node.kill());

  const reached = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.once('error', reject);
      socket.once('connect', () => resolve(socket));
    });

  test('and is refused before it is read brings that answer each time, however much of it is on its way', async () => {
    const statuses = new Map<number, number>();
    for (let n = 0; n < 100; n++) {
      const { body } = new Response(new Uint8Array(n % 2 === 0 ? 1_600 : 160_000));
      const { status } = await postBody(await reached(), { host: 'node', path: '/', headers: {} }, body);
      statuses.set(status ?? 0, (statuses.get(status ?? 0) ?? 0) + 1);
    }
    expect([...statuses]).toEqual([[409, 100]]);
  });
});
