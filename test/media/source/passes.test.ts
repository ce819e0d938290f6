/** A playlist that repeats is one stream: any place of it is where the passes, laid end to end, have it. */
import { afterAll, expect, test } from 'bun:test';
import { LOOP_KEPT_MS } from '../../../src/limits.ts';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { type AudioSource, SourceLost } from '../../../src/media/source/audio-source.ts';
import { SourceList } from '../../../src/media/source/source-list.ts';
import fc from '../../support/fast-check.ts';
import { tone, wav } from '../sound.ts';
import { FileServer } from './file-server.ts';

const RATE_HZ = 8_000;
const KEPT = (RATE_HZ * LOOP_KEPT_MS) / 1_000;
const server = new FileServer();
const decoders = new DecoderThread(silentLog);
afterAll(async () => {
  await decoders.close();
  await server.close();
});

/** A file of so many samples. Each sample tells its place. */
function file(samples: number): { readonly bytes: Uint8Array<ArrayBuffer>; readonly sound: readonly number[] } {
  const bytes = wav(tone(301, samples / RATE_HZ, RATE_HZ), RATE_HZ);
  return { bytes, sound: [...new Int16Array(bytes.buffer.slice(44))] };
}

async function playlist(lengths: readonly number[], loop: number) {
  const files = lengths.map(file);
  const sources = files.map(({ bytes }, at) => {
    server.files.set(`/${at}`, bytes);
    return server.source(`/${at}`);
  });
  for (const source of sources) {
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    await source.hold(true);
  }
  return { pass: files.flatMap(({ sound }) => sound), source: new FilesSource(sources, { loop, rateHz: RATE_HZ, decoders }) };
}

/** The sound from a place on, `most` samples of it. */
async function heard(source: FilesSource, place: number, most = Infinity): Promise<number[]> {
  source.interrupt();
  const out: number[] = [];
  for await (const pcm of source.pcm(place)) {
    out.push(...pcm);
    if (out.length >= most) break;
  }
  return out.slice(0, most);
}

const length = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(KEPT - 1, KEPT, KEPT + 1) },
);

test('of so many passes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(length, { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.double({ min: 0, max: 1.1, noNaN: true }), { minLength: 1, maxLength: 3 }),
      async (lengths, loop, parts) => {
        const { pass, source } = await playlist(lengths, loop);
        const whole = Array.from({ length: loop }, () => pass).flat();
        // At edges of passes, too; and each again when the lengths are known.
        const places = [...parts.map((part) => Math.floor(part * whole.length)), 0, pass.length, pass.length * (loop - 1)];
        for (const place of places) {
          const out = await heard(source, place);
          expect([place, out.length]).toEqual([place, Math.max(0, whole.length - place)]);
          expect(
            Buffer.compare(Buffer.from(Int16Array.from(out).buffer), Buffer.from(Int16Array.from(whole.slice(place)).buffer)),
          ).toBe(0);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test('without an end', async () => {
  for (const lengths of [[1], [300, 0, 41], [KEPT, 7], [KEPT + 1]]) {
    const { pass, source } = await playlist(lengths, 0);
    const whole = Array.from({ length: Math.ceil(60_000 / pass.length) }, () => pass).flat();
    for (const place of [0, 1, pass.length, 3 * pass.length + 1, 1_000_000 * pass.length + 5])
      expect(await heard(source, place, 20_000)).toEqual(whole.slice(place % pass.length).slice(0, 20_000));
  }
  const { source } = await playlist([0, 0], 0);
  expect(await heard(source, 0)).toEqual([]);
});

test('after one from which a source was missing, and which is short, is whole again soon', async () => {
  const [music, beep] = [file(3 * RATE_HZ), file(RATE_HZ / 2)];
  server.files.set('/beep', beep.bytes);
  const short = server.source('/beep');
  expect(await short.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  await short.hold(true);
  let asked = 0;
  const away: AudioSource = {
    kind: 'wav',
    content: undefined,
    hold: async () => {},
    prepare: async () => {},
    async *bytes() {
      asked += 1;
      if (asked === 1) throw new SourceLost('its server is away');
      yield music.bytes;
    },
    interrupt() {},
    release() {},
  };
  const source = new FilesSource([away, short], { loop: 0, rateHz: RATE_HZ, decoders });
  const repeated = Array.from({ length: 1 + KEPT / beep.sound.length }, () => beep.sound).flat();
  const expected = [...repeated, ...music.sound, ...beep.sound, ...music.sound];
  expect(await heard(source, 0, expected.length)).toEqual(expected);
  expect(asked).toBe(3);
});

test('of a list one of whose entries was missing has the places of that entry once it is there', async () => {
  const [one, other] = [file(RATE_HZ), file(2 * RATE_HZ)];
  server.files.set('/one', one.bytes);
  server.files.set('/other', other.bytes);
  let asked = 0;
  const open = async (path: string, signal: AbortSignal) => {
    if (path === '/other' && ++asked === 1) throw new SourceLost('its server is away');
    const source = server.source(path);
    await source.admit(signal);
    return source;
  };
  const list = await SourceList.open(['/one', '/other'], open, AbortSignal.timeout(5_000));
  const outer = await SourceList.open(['/list'], async () => list, AbortSignal.timeout(5_000));
  const source = new FilesSource([outer], { loop: 1, rateHz: RATE_HZ, decoders });
  expect(await heard(source, 0)).toEqual([...one.sound]);
  expect(await heard(source, 2 * RATE_HZ)).toEqual(other.sound.slice(RATE_HZ));
});
