/** The sound of a shared file: decoded once for all who play it, the same to the sample as for one alone. */
import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread, type DecodeStream } from '../../../src/media/decode/decoder.ts';
import type { AudioKind } from '../../../src/media/format/sniff.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { PcmFailed } from '../../../src/media/playback/pcm-source.ts';
import { NotShared } from '../../../src/media/playback/shared-sound.ts';
import { SharedSounds } from '../../../src/media/playback/shared-sounds.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import type { SharedContent } from '../../../src/media/source/shared-content.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import { tone, wav } from '../sound.ts';

const outbound = createOutbound(['127.0.0.0/8']);
const files = new Map<string, Uint8Array<ArrayBuffer>>();
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    const etag = '"1"';
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304 });
    return new Response(files.get(pathname), pathname.startsWith('/alone') ? {} : { headers: { etag } });
  },
});

/** The decoders of the product, counted. */
class Counted extends DecoderThread {
  opened = 0;
  openNow = 0;
  override async open(kind: AudioKind, rateHz: number, skip = 0, owner = ''): Promise<DecodeStream> {
    const stream = await super.open(kind, rateHz, skip, owner);
    this.opened++;
    this.openNow++;
    return {
      ...stream,
      close: () => {
        this.openNow--;
        stream.close();
      },
    };
  }
}

const decoders = new Counted(silentLog);
afterAll(async () => {
  await decoders.close();
  await server.stop(true);
});

const contents = new SharedContents();
const urlOf = (path: string) => `http://127.0.0.1:${server.port}${path}`;
const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());

async function source(path: string, { loop = 1, sounds = new SharedSounds(decoders), app = 'app' } = {}) {
  const one = new Source(outbound, urlOf(path), new HeldBytes().of(app), contents);
  expect(await one.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  await one.hold(true);
  return new FilesSource([one], { loop, rateHz: 8_000, decoders }, sounds);
}

async function heard(from: FilesSource, place = 0): Promise<number[]> {
  const out: number[] = [];
  for await (const pcm of from.pcm(place)) {
    out.push(...pcm);
    pcm.fill(0); // Its memory is the receiver's.
  }
  return out;
}

test('Several who play a file hear what one alone does, from any place and in each pass, of one decoder', async () => {
  const file = await fixture('sweep-24k-mono-cbr.mp3');
  files.set('/alone.mp3', file);
  files.set('/shared.mp3', file);
  const alone = await heard(await source('/alone.mp3'));
  expect(alone.length).toBeGreaterThan(8_000);
  const sounds = new SharedSounds(decoders);
  const before = decoders.opened;
  const several = await Promise.all(Array.from({ length: 5 }, () => source('/shared.mp3', { sounds, loop: 2 })));
  for (const out of await Promise.all(several.map((each) => heard(each)))) expect(out).toEqual([...alone, ...alone]);
  expect([decoders.opened - before, decoders.openNow, sounds.bytes]).toEqual([1, 0, 2 * alone.length]);
  const later = await source('/shared.mp3', { sounds });
  for (const place of [0, 1, 7_999, alone.length - 1, alone.length, alone.length + 9])
    expect([place, await heard(later, place)]).toEqual([place, alone.slice(place)]);
  const twice = await source('/shared.mp3', { sounds, loop: 2 });
  await heard(twice);
  expect(await heard(twice, alone.length + 100)).toEqual(alone.slice(100));
  expect(decoders.opened - before).toBe(1);
});

test('A later file of a list, which nobody holds until its turn, is shared from then on', async () => {
  const music = wav(tone(300, 40, 8_000), 8_000);
  const words = wav(tone(800, 0.5, 8_000), 8_000);
  files.set('/words.wav', words);
  files.set('/music.wav', music);
  const sounds = new SharedSounds(decoders);
  const list = async () => {
    const sources = ['/words.wav', '/music.wav'].map((path) => new Source(outbound, urlOf(path), new HeldBytes(), contents));
    for (const [at, one] of sources.entries()) {
      expect(await one.admit(AbortSignal.timeout(5_000))).toBeUndefined();
      await one.hold(at === 0);
    }
    expect(sources.map(({ content }) => content !== undefined)).toEqual([true, false]);
    return new FilesSource(sources, { loop: 2, rateHz: 8_000, decoders }, sounds);
  };
  const lists = await Promise.all([list(), list(), list()]);
  const before = decoders.opened;
  const outs = await Promise.all(lists.map((each) => heard(each)));
  const pass = [...new Int16Array(words.buffer.slice(44)), ...new Int16Array(music.buffer.slice(44))];
  for (const out of outs) expect(out).toEqual([...pass, ...pass]);
  expect(decoders.opened - before).toBe(2);
});

test('Whoever begins ahead of what is decoded has a decoder of its own', async () => {
  files.set('/ahead.mp3', await fixture('sweep-24k-mono-cbr.mp3'));
  files.set('/alone.mp3', await fixture('sweep-24k-mono-cbr.mp3'));
  const sounds = new SharedSounds(decoders);
  const whole = await heard(await source('/alone.mp3'), 4_000);
  expect(await heard(await source('/ahead.mp3', { sounds }), 4_000)).toEqual(whole);
  expect(sounds.bytes).toBe(0);
});

test('A sound for which there is no room is decoded by each alone from there on, without a seam', async () => {
  const file = wav(tone(300, 5, 8_000), 8_000);
  files.set('/room.wav', file);
  files.set('/alone.wav', file);
  const alone = await heard(await source('/alone.wav'));
  const sounds = new SharedSounds(decoders, alone.length);
  const before = decoders.opened;
  const several = [await source('/room.wav', { sounds }), await source('/room.wav', { sounds })];
  for (const out of await Promise.all(several.map((each) => heard(each)))) expect(out).toEqual(alone);
  expect([decoders.opened - before, decoders.openNow, sounds.bytes]).toEqual([3, 0, 0]);
});

test('One sound takes half of the memory at most', async () => {
  const sounds = new SharedSounds(decoders, 4 * 16_000);
  for (const [name, seconds, kept] of [
    ['/half.wav', 2, 2 * 16_000],
    ['/more.wav', 2.5, 0],
  ] as const) {
    files.set(name, wav(tone(300, seconds, 8_000), 8_000));
    const before = sounds.bytes;
    expect((await heard(await source(name, { sounds, app: name }))).length).toBe(seconds * 8_000);
    expect([name, sounds.bytes - before]).toEqual([name, kept]);
  }
});

test('A file in which nothing can be heard has failed for each who plays it', async () => {
  const noise = Uint8Array.from({ length: 20_000 }, (_, at) => (at * 7919) % 251);
  const head = wav(new Float64Array(0), 8_000).slice(0, 44);
  new DataView(head.buffer).setUint16(20, 0x55, true); // MPEG audio inside a WAV
  files.set('/noise.wav', new Uint8Array(Buffer.concat([head, noise])));
  const sounds = new SharedSounds(decoders);
  const several = await Promise.all([0, 1].map(() => source('/noise.wav', { sounds })));
  for (const each of several) {
    const failure = await heard(each).catch((error: unknown) => error);
    expect(failure instanceof PcmFailed && failure.reason).toBe('decode_error');
  }
  expect(decoders.openNow).toBe(0);
});

test('A file without a sample is over at once', async () => {
  files.set('/empty.wav', wav(new Float64Array(0), 8_000));
  expect(await heard(await source('/empty.wav'))).toEqual([]);
});

test('A sound that nobody plays to its end is given up, and begun anew by the next', async () => {
  files.set('/left.mp3', await fixture('sweep-24k-mono-cbr.mp3'));
  const sounds = new SharedSounds(decoders);
  const one = await source('/left.mp3', { sounds });
  for await (const _ of one.pcm(0)) break;
  expect(sounds.bytes).toBe(0);
  const content = contents.get(urlOf('/left.mp3'));
  const left = sounds.of(content, 8_000);
  left?.join();
  const step = left?.piece(0);
  left?.leave();
  expect(await step?.catch((error: unknown) => error)).toBeInstanceOf(NotShared);
  while (decoders.openNow > 0) await new Promise(setImmediate);
  expect(sounds.bytes).toBe(0);
  const before = decoders.opened;
  expect((await heard(await source('/left.mp3', { sounds }))).length).toBeGreaterThan(8_000);
  expect([decoders.opened - before, decoders.openNow]).toEqual([1, 0]);
});

test('Sounds that nobody plays make room, the one that was begun with longest ago first', async () => {
  const second = wav(tone(300, 1, 8_000), 8_000);
  for (const name of ['/1.wav', '/2.wav', '/3.wav', '/4.wav']) files.set(name, second);
  const sounds = new SharedSounds(decoders, 2 * 16_000);
  const opens = async (name: string) => {
    const before = decoders.opened;
    expect((await heard(await source(name, { sounds, app: name }))).length).toBe(8_000);
    return decoders.opened - before;
  };
  expect([await opens('/1.wav'), await opens('/2.wav'), await opens('/1.wav'), await opens('/3.wav')]).toEqual([1, 1, 0, 1]);
  expect(sounds.bytes).toBe(2 * 16_000);
  expect([await opens('/1.wav'), await opens('/2.wav'), await opens('/4.wav'), await opens('/2.wav')]).toEqual([0, 1, 1, 0]);
  expect(sounds.bytes).toBe(2 * 16_000);
  // Sounds that are played stay.
  const played = ['/2.wav', '/4.wav'].map((name) => sounds.of(contents.get(urlOf(name)), 8_000));
  for (const sound of played) sound?.join();
  expect([await opens('/1.wav'), sounds.bytes]).toEqual([2, 2 * 16_000]);
  for (const sound of played) sound?.leave();
  expect([await opens('/1.wav'), sounds.bytes]).toEqual([1, 2 * 16_000]);
});

test('The sounds of the files of one application leave room to others, and make room for each other first', async () => {
  const second = wav(tone(300, 1, 8_000), 8_000);
  for (const name of ['/q.wav', '/a.wav', '/b.wav', '/c.wav', '/d.wav']) files.set(name, second);
  const sounds = new SharedSounds(decoders, 4 * 16_000);
  const opens = async (app: string, name: string) => {
    const before = decoders.opened;
    expect((await heard(await source(name, { sounds, app }))).length).toBe(8_000);
    return decoders.opened - before;
  };
  for (const [app, name] of [
    ['quiet', '/q.wav'],
    ['greedy', '/a.wav'],
    ['greedy', '/b.wav'],
    ['greedy', '/c.wav'],
  ] as const)
    expect(await opens(app, name)).toBe(1);
  // Its own oldest one goes, not that of another.
  expect([await opens('greedy', '/d.wav'), sounds.bytes]).toEqual([1, 4 * 16_000]);
  expect([await opens('quiet', '/q.wav'), await opens('greedy', '/b.wav'), await opens('greedy', '/a.wav')]).toEqual([0, 0, 1]);
  // What it plays stays: a further one is decoded by each alone, while another finds room.
  const played = ['/d.wav', '/b.wav', '/a.wav'].map((name) => sounds.of(contents.get(urlOf(name)), 8_000));
  for (const sound of played) sound?.join();
  expect([await opens('greedy', '/c.wav'), sounds.bytes]).toEqual([2, 4 * 16_000]);
  files.set('/o.wav', second);
  expect([await opens('other', '/o.wav'), await opens('other', '/o.wav')]).toEqual([1, 0]);
  for (const sound of played) sound?.leave();
});

test('A sound that is kept does not keep its file: what is shared has its bound, however little sound is in it', async () => {
  const sounds = new SharedSounds(decoders);
  const shared: WeakRef<SharedContent>[] = [];
  for (let at = 0; at < 10; at++) {
    files.set(`/heavy-${at}.wav`, wav(tone(300, 1, 48_000), 48_000));
    const one = new Source(outbound, urlOf(`/heavy-${at}.wav`), new HeldBytes(), new SharedContents());
    expect(await one.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    await one.hold(true);
    if (one.content !== undefined) shared.push(new WeakRef(one.content));
    expect((await heard(new FilesSource([one], { loop: 1, rateHz: 8_000, decoders }, sounds))).length).toBe(8_000);
    one.release();
  }
  expect([shared.length, sounds.bytes]).toEqual([10, 10 * 16_000]);
  const kept = () => shared.filter((each) => each.deref() !== undefined).length;
  // The last ones may still be named by what is on the stack.
  for (let turn = 0; turn < 100 && kept() > 2; turn++) {
    await new Promise(setImmediate);
    Bun.gc(true);
  }
  expect(kept()).toBeLessThanOrEqual(2);
});
