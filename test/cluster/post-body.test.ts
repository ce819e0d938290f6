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

const TO = { host: 'node', path: '/', headers: {} };

describe('a body that is passed on', () => {
  const node = Bun.spawn([process.execPath, '-e', REFUSES], { stdout: 'pipe' });
  let port = 0;
  beforeAll(async () => {
    const { value } = await node.stdout.getReader().read();
    port = Number(new TextDecoder().decode(value));
  });
  afterAll(() => node.kill());

  const reached = (at = port): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: at });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(socket);
      });
    });

  test('and is refused before it is read brings that answer each time, however much of it is on its way', async () => {
    const statuses = new Map<number, number>();
    for (let n = 0; n < 100; n++) {
      const { body } = new Response(new Uint8Array(n % 2 === 0 ? 1_600 : 160_000));
      const { status } = await postBody(await reached(), TO, body);
      statuses.set(status ?? 0, (statuses.get(status ?? 0) ?? 0) + 1);
    }
    expect([...statuses]).toEqual([[409, 100]]);
  });

  test('in too many small pieces is refused, and passed on no further', async () => {
    // This node says nothing, and is gone at the end of the body.
    const silent = await listening((taken) => {
      taken.on('data', (bytes) => bytes.includes('\r\n0\r\n\r\n') && taken.destroy());
    });
    const socket = await reached(silent.port);
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
    const said = await postBody(socket, TO, body);
    expect(said).toMatchObject({ status: 400, message: 'body: must not come in so many small chunks' });
    expect([socket.destroyed, given < BODY_PIECES_MAX * 2]).toEqual([true, true]);
    silent.close();
  });

  test('comes whole, also where a piece of it is empty', async () => {
    const pieces = ['one ', '', 't', 'wo'];
    const took = serving(async (request) => Response.json({ took: await request.text() }));
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(Buffer.from(piece));
      },
    });
    const socket = await reached(took.port);
    expect(await postBody(socket, TO, body)).toEqual({ status: 200, body: { took: 'one two' } });
    expect(socket.destroyed).toBe(true);
    await took.stop();
  });

  test('is taken of its sender no faster than the node takes it, whose answer comes in pieces', async () => {
    const [pieceBytes, pieces] = [65_536, 256];
    let given = 0;
    const { promise: isFull, resolve: full } = Promise.withResolvers<void>();
    let answerOn = () => {};
    const node = await listening((taken) => {
      let bytes = 0;
      taken.setNoDelay(true).pause();
      void isFull.then(() => taken.resume());
      taken.on('data', (chunk) => {
        bytes += chunk.length;
        if (!chunk.toString('latin1').endsWith('\r\n0\r\n\r\n')) return;
        const body = JSON.stringify({ isWhole: bytes > pieceBytes * pieces });
        const answer = [`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n`, '\r\n', body.slice(0, 5), body.slice(5)];
        answerOn = () => void taken.write(answer.shift() ?? '');
        answerOn();
      });
    });
    const socket = await reached(node.port);
    socket.on('data', () => answerOn());
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          given += 1;
          if (given > pieces) controller.close();
          else controller.enqueue(new Uint8Array(pieceBytes));
        },
      },
      { highWaterMark: 0 },
    );
    const said = postBody(socket, TO, body);
    while (socket.writableLength < pieceBytes) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(given).toBeLessThan(pieces);
    full();
    expect(await said).toEqual({ status: 200, body: { isWhole: true } });
    node.close();
  });

  test('is read no further once it is answered, though it never ends', async () => {
    const cancelled = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(1)),
      cancel: () => cancelled.resolve(),
    });
    expect(await postBody(await reached(), TO, body)).toMatchObject({ status: 409 });
    await cancelled.promise;
  });

  test('that breaks off is refused, and never looks whole to the node that takes it', async () => {
    const heard = Promise.withResolvers<string>();
    const ended = Promise.withResolvers<string>();
    const node = await listening((taken) => {
      let text = '';
      taken.on('data', (bytes) => {
        text += bytes;
        if (text.includes('half')) heard.resolve(text);
      });
      taken.on('close', () => ended.resolve(text));
    });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('half')),
      pull: async () => {
        await heard.promise;
        throw new Error('gone');
      },
    });
    const said = await postBody(await reached(node.port), TO, body);
    expect(said).toMatchObject({ status: 400, message: 'body: ended before it was complete' });
    expect((await ended.promise).endsWith('4\r\nhalf\r\n')).toBe(true);
    node.close();
  });

  test('is 503 where the node that takes it resets the connection', async () => {
    const node = await listening((taken) => taken.on('data', () => taken.resetAndDestroy()));
    const { body } = new Response(new Uint8Array(160_000));
    expect(await postBody(await reached(node.port), TO, body)).toMatchObject({ status: 503, retryAfterSec: 2 });
    node.close();
  });
});

function serving(fetch: (request: Request) => Promise<Response>) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch });
  return { port: server.port ?? 0, stop: () => server.stop(true) };
}

/** A server that does as the test says with each connection. */
async function listening(take: (taken: Socket) => void) {
  const server = createServer(take).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return { port: typeof address === 'object' ? (address?.port ?? 0) : 0, close: () => server.close() };
}
