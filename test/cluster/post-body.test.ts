import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { postBody } from '../../src/cluster/peer/post-body.ts';
import { BODY_PIECES_MAX } from '../../src/limits.ts';

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

  test('in too many small pieces is refused, and passed on no further', async () => {
    // This node says nothing, and is gone at the end of the body.
    const silent = createServer((taken) => {
      taken.on('data', (bytes) => bytes.includes('\r\n0\r\n\r\n') && taken.destroy());
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const at = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const socket = connect({ host: '127.0.0.1', port: at });
    await once(socket, 'connect');
    let given = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          given += 1;
          if (given > BODY_PIECES_MAX * 2) controller.close();
          else controller.enqueue(new Uint8Array(1));
        },
      },
      { highWaterMark: 0 },
    );
    const said = await postBody(socket, { host: 'node', path: '/', headers: {} }, body);
    expect(said).toMatchObject({ status: 400, message: 'body: must not come in so many small chunks' });
    expect([socket.destroyed, given < BODY_PIECES_MAX * 2]).toEqual([true, true]);
    silent.close();
  });
});
