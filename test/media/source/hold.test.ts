/** Sources that are held until their turn: what is read on, for how long, and what is left of it in memory. */
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { SOURCE_FILL_MAX_MS, SOURCE_SHARED_MAX_BYTES } from '../../../src/limits.ts';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { SourceLost } from '../../../src/media/source/audio-source.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import { tone, wav } from '../sound.ts';
import { OddServer } from './odd-server.ts';
import { SlowServer } from './slow-server.ts';

const outbound = createOutbound(['127.0.0.0/8']);
const sound = wav(tone(300, 10, 8_000), 8_000);
const VALIDATOR = 'ETag: "1"\r\n';

/** What is to happen once a source was held for as long as it may be, and was not told otherwise. */
const late = new Map<object, () => void>();
const passLate = () => {
  for (const each of late.values()) each();
};
const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
beforeEach(() => {
  late.clear();
  const fake = (callback: () => void, ms?: number) => {
    const timer = realSet(callback, ms);
    if (ms === SOURCE_FILL_MAX_MS) late.set(timer, callback);
    return timer;
  };
  spyOn(globalThis, 'setTimeout').mockImplementation(Object.assign(fake, realSet));
  spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    if (typeof timer === 'string') return;
    if (typeof timer === 'object') late.delete(timer);
    realClear(timer);
  });
});

const servers: SlowServer[] = [];
afterEach(() => {
  spyOn(globalThis, 'setTimeout').mockRestore();
  spyOn(globalThis, 'clearTimeout').mockRestore();
  for (const server of servers.splice(0)) server.stop();
});

/** A server of the sound, which sends the first quarter of it by itself. */
function serving(headers: string): SlowServer {
  const server = new SlowServer(sound, sound.length / 4, headers);
  servers.push(server);
  return server;
}

async function opened(url: string, contents: SharedContents, held = new HeldBytes()): Promise<Source> {
  const source = new Source(outbound, url, held, contents, SOURCE_SHARED_MAX_BYTES);
  expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  return source;
}

async function collect(reading: AsyncGenerator<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of reading) bytes += chunk.length;
  return bytes;
}

const turn = () => new Promise(setImmediate);

for (const [name, headers] of [
  ['that is shared', VALIDATOR],
  ['that is read alone', ''],
] as const) {
  test(`A later file ${name} is given up when it is not here in time, and fetched again at its turn`, async () => {
    const server = serving(headers);
    const [contents, held] = [new SharedContents(), new HeldBytes()];
    const source = await opened(server.url, contents, held);
    const holding = source.hold(false);
    expect(late.size).toBe(1);
    passLate();
    await holding;
    while (server.closed < 1) await turn();
    expect([contents.bytes, held.used, late.size]).toEqual([0, 0, 0]);
    const heard = collect(source.bytes());
    while (server.whole < 2) await turn();
    server.go();
    expect(await heard).toBe(sound.length);
    source.release();
    expect(held.used).toBe(0);
  });

  test(`A later file ${name} and is heard by then may take as long as it does`, async () => {
    const server = serving(headers);
    const source = await opened(server.url, new SharedContents());
    const holding = source.hold(false);
    const heard = collect(source.bytes());
    await turn();
    passLate();
    server.go();
    expect([await heard, server.whole]).toEqual([sound.length, 1]);
    await holding;
    expect(late.size).toBe(0);
    source.release();
  });

  test(`The first file ${name} is held for as long as it takes`, async () => {
    const server = serving(headers);
    const [contents, held] = [new SharedContents(), new HeldBytes()];
    const source = await opened(server.url, contents, held);
    const holding = source.hold(true);
    expect(late.size).toBe(0);
    server.go();
    await holding;
    expect(contents.bytes + held.used).toBe(sound.length);
    expect([await collect(source.bytes()), server.whole]).toEqual([sound.length, 1]);
    source.release();
    expect(held.used).toBe(0);
  });
}

test('A later file whose sound is heard by then may take as long as it does', async () => {
  const server = serving(VALIDATOR);
  const decoders = new DecoderThread(silentLog);
  const source = await opened(server.url, new SharedContents());
  const holding = source.hold(false);
  const pcm = new FilesSource([source], { loop: 1, rateHz: 8_000, decoders }).pcm(0);
  let samples = (await pcm.next()).value?.length ?? 0;
  passLate();
  server.go();
  for await (const piece of pcm) samples += piece.length;
  await holding;
  expect([samples, server.whole, late.size]).toEqual([80_000, 1, 0]);
  source.release();
  await decoders.close();
});

test('A file that comes for another is not waited for, nor given up', async () => {
  const server = serving(VALIDATOR);
  const contents = new SharedContents();
  const first = await opened(server.url, contents);
  const holding = first.hold(true);
  const second = await opened(server.url, contents);
  await second.hold(false);
  expect(late.size).toBe(0);
  server.go();
  await holding;
  expect([await collect(first.bytes()), await collect(second.bytes()), server.whole]).toEqual([sound.length, sound.length, 1]);
  for (const source of [first, second]) source.release();
});

test('A file that is released while it is held gives all back', async () => {
  for (const headers of [VALIDATOR, '']) {
    const server = serving(headers);
    const [contents, held] = [new SharedContents(), new HeldBytes()];
    const source = await opened(server.url, contents, held);
    const holding = source.hold(false);
    source.release();
    await holding;
    while (server.closed < 1) await turn();
    expect([contents.bytes, held.used, late.size]).toEqual([0, 0, 0]);
  }
});

test('A source is asked for at its turn once, where nothing is held of it', async () => {
  const file = new Uint8Array(2 * sound.length);
  file.set(sound);
  for (const headers of [VALIDATOR, '']) {
    const server = new SlowServer(file, file.length, headers);
    servers.push(server);
    // A first one that is kept, be it by its connection, and a later one that was let go.
    for (const isFirst of [true, false]) {
      const before = server.whole;
      const held = new HeldBytes();
      const source = new Source(outbound, server.url, held, new SharedContents(), isFirst ? SOURCE_SHARED_MAX_BYTES : 0);
      expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
      const holding = source.hold(isFirst);
      if (!isFirst) await holding;
      await source.prepare();
      await source.prepare();
      expect([headers, isFirst, server.whole - before]).toEqual([headers, isFirst, isFirst ? 1 : 2]);
      expect([await collect(source.bytes()), server.whole - before]).toEqual([file.length, isFirst ? 1 : 2]);
      source.release();
      expect(held.used).toBe(0);
    }
  }
});

test('A reading that begins while its source is looked at, or while another reads, has the file from its start', async () => {
  const file = new Uint8Array(2 * sound.length);
  file.set(sound);
  const server = new SlowServer(file, 10, '');
  servers.push(server);
  const source = new Source(outbound, server.url, new HeldBytes());
  const sends = async (times: number) => {
    while (server.whole < times) await turn();
    server.go();
  };
  const admitted = source.admit(AbortSignal.timeout(5_000));
  await sends(1);
  expect(await admitted).toBeUndefined();
  await source.hold(false);
  const prepared = source.prepare();
  while (server.whole < 2) await turn();
  for (let turns = 0; turns < 20; turns++) await turn(); // The first ten bytes come, which do not tell what it is.
  const former = source.bytes();
  const first = former.next();
  await sends(3);
  expect((await first).done).toBe(false);
  await prepared;
  const heard = collect(source.bytes());
  await sends(4);
  expect(await heard).toBe(file.length);
  expect(await former.next().catch((error: unknown) => error)).toBeInstanceOf(SourceLost);
  source.release();
});

test('A later file that is another thing at its turn is asked for once more', async () => {
  const file = new Uint8Array(2 * sound.length);
  file.set(sound);
  const answers: Uint8Array[] = [file, new TextEncoder().encode('<!doctype html><html>'), file];
  const server = new OddServer(({ before }) => ({ head: ['200 OK'], body: answers[before] ?? '' }));
  const source = new Source(outbound, server.url(), new HeldBytes());
  expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  await source.hold(false);
  await source.prepare();
  expect([await collect(source.bytes()), server.asked.length]).toEqual([file.length, 3]);
  source.release();
  server.stop();
});

test('What was held of a large file is given back once it was told', async () => {
  const file = new Uint8Array(2 * sound.length);
  file.set(sound);
  const server = new OddServer(() => ({ head: ['200 OK', `Content-Length: ${file.length}`], body: file }));
  const held = new HeldBytes();
  const source = new Source(outbound, server.url(), held);
  expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  await source.hold(true);
  const before = held.used;
  let told = 0;
  for await (const chunk of source.bytes()) {
    told += chunk.length;
    if (told > before) expect(held.used).toBe(0);
  }
  expect([before > sound.length / 2, told]).toEqual([true, file.length]);
  source.release();
  server.stop();
});
