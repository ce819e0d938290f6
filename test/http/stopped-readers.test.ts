/** Readers without a key who ask for what anybody may have, and then take none of it. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { ConsoleDoor } from '../../src/http/console/console-door.ts';
import { ConsoleSessions } from '../../src/http/console/console-sessions.ts';
import { publicRoutes } from '../../src/http/route/public.ts';
import { dataDirectory } from '../support/data-directory.ts';

const READERS = 100;
/** What so many readers may take of the process: less than half of what their copies of a file of 1.7 MB would be. */
const GROWN_MAX_BYTES = 80 * 1024 * 1024;

let folder: string;

beforeAll(() => {
  folder = dataDirectory('sidetone-readers-');
  mkdirSync(join(folder, 'console'));
  writeFileSync(join(folder, 'console/index.html'), '<!doctype html>');
  writeFileSync(join(folder, 'console/app.js'), `'${'é'.repeat(850_000)}'`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The memory by which this process grows while so many readers have asked for a path and take nothing more of it. */
async function grownBy(path: string, fetch: (request: Request) => Promise<Response>): Promise<number> {
  // What a socket of files does not take stays with the server; a TCP connection takes some megabytes.
  const unix = join(folder, 'http.sock');
  const server = Bun.serve({ unix, fetch });
  const readers: Socket[] = [];
  const ask = async () => {
    const reader = connect({ path: unix });
    readers.push(reader);
    const began = new Promise<void>((resolve) =>
      reader.once('data', () => {
        reader.pause();
        resolve();
      }),
    );
    reader.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    await began;
  };
  try {
    await ask();
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    await Promise.all(Array.from({ length: READERS }, ask));
    return process.memoryUsage.rss() - before;
  } finally {
    for (const reader of readers) reader.destroy();
    await server.stop(true);
  }
}

test('the files of the API reference are not kept once for each of them', async () => {
  const routes = publicRoutes({
    metrics: { exposition: async () => ({ text: '', contentType: 'text/plain' }) },
    ready: async () => ({}),
    openapi: () => ({ title: 'é'.repeat(850_000) }),
  });
  for (const path of ['/docs/swagger-ui-bundle.js', '/openapi.json']) {
    const answer = routes.get(path);
    if (answer === undefined) throw new Error(`there is no ${path}`);
    expect([path, (await grownBy(path, answer)) < GROWN_MAX_BYTES]).toEqual([path, true]);
  }
});

test('neither are those of the console', async () => {
  const sessions = new ConsoleSessions({
    operatorToken: 'operator-token',
    operatorReadToken: undefined,
    cookies: { revoke: async () => true, isRevoked: async () => false },
    now: Date.now,
  });
  const door = new ConsoleDoor({ sessions, isSecure: false, peer: undefined, now: Date.now, files: join(folder, 'console') });
  expect(await grownBy('/console/app.js', (request) => door.answer(request))).toBeLessThan(GROWN_MAX_BYTES);
});
