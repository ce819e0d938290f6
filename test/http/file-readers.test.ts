/** Readers of a file that the server sends by itself, on a real server. */
import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileReaders } from '../../src/http/file-readers.ts';
import { FILE_READERS_LOOK_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { until } from './media-server.ts';

test('a reader has its place until its file is sent or it leaves, and no longer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-readers-'));
  const path = join(folder, 'large');
  writeFileSync(path, '');
  truncateSync(path, 64 * 1024 * 1024);
  const clock = new VirtualClock();
  const readers = new FileReaders(clock, { all: 10, ofApp: 2, reserve: 0, reservedOfApp: 0 });
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, own) {
      const isOpen = () => own.requestIP(request) !== null;
      return readers.admit({ appUuid: new URL(request.url).pathname, isOpen }) !== undefined
        ? new Response(Bun.file(path))
        : new Response(null, { status: 503 });
    },
  });
  const read = (app: string) => fetch(`http://127.0.0.1:${server.port}/${app}`);
  const stalled = () => {
    const socket = connect(server.port ?? 0, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nhost: own\r\n\r\n'));
    socket.pause();
    return socket;
  };
  const sockets = [stalled(), stalled()];
  try {
    await until(() => readers.size === 2, 'both read');
    expect((await read('slow')).status).toBe(503);
    const other = await read('other');
    expect(other.status).toBe(200);
    expect((await other.arrayBuffer()).byteLength).toBe(64 * 1024 * 1024);
    sockets[0]?.destroy();
    await until(() => server.pendingRequests === 1, 'one is left');
    await clock.advance(1_000);
    expect(readers.size).toBe(1);
    const next = await read('slow');
    expect(next.status).toBe(200);
    await next.body?.cancel();
  } finally {
    for (const each of sockets) each.destroy();
    await server.stop(true);
    rmSync(folder, { recursive: true });
  }
});

test('readers are looked through where a place is wanted and none is free, and not at every request', async () => {
  const clock = new VirtualClock();
  const readers = new FileReaders(clock, { all: 10, ofApp: 1, reserve: 0, reservedOfApp: 0 });
  let isReading = true;
  let looks = 0;
  const isOpen = () => {
    looks += 1;
    return isReading;
  };
  const admit = () => readers.admit({ appUuid: 'app', isOpen }) !== undefined;
  expect([admit(), admit(), admit(), looks]).toEqual([true, false, false, 1]);
  isReading = false;
  await clock.advance(FILE_READERS_LOOK_MS - 1);
  expect(admit()).toBe(false);
  await clock.advance(1);
  expect([admit(), admit(), looks]).toEqual([true, false, 2]);
});
