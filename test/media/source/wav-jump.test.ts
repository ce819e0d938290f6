/** Places in large WAV files, which are asked for by range where the server gives parts. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { WavContainer } from '../../../src/media/format/wav-container.ts';
import { wavJump } from '../../../src/media/format/wav-jump.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import fc from '../../support/fast-check.ts';
import { wav } from '../sound.ts';
import { SlowServer } from './slow-server.ts';

const decoders = new DecoderThread(silentLog);
let file: Uint8Array<ArrayBuffer> = new Uint8Array(0);
let version = 1;
let givesParts = true;
let changes = false;
const ranges: (string | null)[] = [];
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: ({ headers }) => {
    const range = headers.get('range');
    ranges.push(range);
    const [, from] = /^bytes=(\d+)-$/.exec(range ?? '') ?? [];
    const etag = `"${version}"`;
    // The answer names a content that the server does not have any more when the rest is asked for.
    if (changes) version++;
    const fields = { etag, ...(givesParts ? { 'accept-ranges': 'bytes' } : {}) };
    if (!givesParts || from === undefined || headers.get('if-range') !== etag) return new Response(file, { headers: fields });
    const part = file.subarray(Number(from));
    const content = { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` };
    return new Response(part, { status: 206, headers: { ...fields, ...content } });
  },
});
afterEach(() => {
  givesParts = true;
  changes = false;
  ranges.length = 0;
});
afterAll(async () => {
  await decoders.close();
  await server.stop(true);
});

/** A WAV with a part after its sound, as editors write them. */
function noise(seconds: number, rateHz: number, channels: number): Uint8Array<ArrayBuffer> {
  let state = 1;
  const samples = Float64Array.from({ length: seconds * rateHz }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647 - 0.5;
  });
  const list = new Uint8Array(8 + 4_000).fill(0x7f);
  list.set([0x4c, 0x49, 0x53, 0x54, 0xa0, 0x0f, 0, 0]);
  return new Uint8Array(Buffer.concat([wav(samples, rateHz, channels), list]));
}

async function opened() {
  const outbound = createOutbound(['127.0.0.0/8']);
  const source = new Source(outbound, `http://127.0.0.1:${server.port}/`, new HeldBytes());
  expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  await source.hold(true);
  const files = new FilesSource([source], { loop: 1, rateHz: 8_000, decoders });
  const from = async (place: number) => {
    files.interrupt();
    const parts: Int16Array[] = [];
    for await (const pcm of files.pcm(place)) parts.push(pcm);
    return parts.flatMap((part) => [...part]);
  };
  return { source, from };
}

describe('a place in a large WAV', () => {
  for (const [rateHz, channels] of [
    [8_000, 1],
    [44_100, 2],
  ] as const) {
    test(`is asked for by its bytes, and exact to the sample: ${rateHz} Hz, ${channels} channels`, async () => {
      file = noise(120, rateHz, channels);
      const { source, from } = await opened();
      const whole = await from(0);
      expect(whole.length).toBe(120 * 8_000);
      for (const place of [480_001, 959_000, 720_123]) {
        ranges.length = 0;
        expect(await from(place)).toEqual(whole.slice(place));
        const asked = Number(/^bytes=(\d+)-$/.exec(ranges.at(-1) ?? '')?.[1]);
        const bytes = 44 + (place / 8_000) * rateHz * channels * 2;
        expect([ranges.length, asked < bytes, bytes - asked < rateHz * channels * 2]).toEqual([2, true, true]);
      }
      // What is played next begins at its start.
      expect(await from(0)).toEqual(whole);
      source.release();
    });
  }

  test('is asked for by its bytes where the file is shared and has not come so far; what has come is not', async () => {
    file = noise(120, 8_000, 1);
    const { source: plain, from } = await opened();
    const whole = await from(0);
    plain.release();
    const slow = new SlowServer(file, 1_000_000, 'ETag: "1"\r\nAccept-Ranges: bytes\r\n');
    const outbound = createOutbound(['127.0.0.0/8']);
    const source = new Source(outbound, slow.url, new HeldBytes(), new SharedContents(), file.length);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    while ((source.content?.here.length ?? 0) < 1_000_000 - 1_000) await new Promise(setImmediate);
    const files = new FilesSource([source], { loop: 1, rateHz: 8_000, decoders });
    const heard: number[] = [];
    for await (const pcm of files.pcm(900_000)) heard.push(...pcm);
    expect(heard).toEqual(whole.slice(900_000));
    expect([slow.whole, slow.parts]).toEqual([2, 1]);
    files.interrupt();
    const near = files.pcm(400_000);
    expect([...((await near.next()).value ?? [])].slice(0, 500)).toEqual(whole.slice(400_000, 400_500));
    expect([slow.whole, slow.parts]).toEqual([2, 1]);
    source.release();
    slow.stop();
  });

  test('is read through to where the server gives no parts, or has another content by then', async () => {
    file = noise(120, 8_000, 1);
    const { source, from } = await opened();
    const whole = await from(0);
    givesParts = false;
    expect(await from(800_000)).toEqual(whole.slice(800_000));
    givesParts = true;
    changes = true;
    expect(await from(800_000)).toEqual(whole.slice(800_000));
    expect(ranges.filter((range) => range !== null)).toHaveLength(1);
    changes = false;
    expect(await from(959_999)).toEqual(whole.slice(959_999));
    expect(await from(1_000_000)).toEqual([]);
    source.release();
  });

  test('leaves out whole frames, in steps of both rates, and never what lies behind the place', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(8_000, 11_025, 16_000, 22_050, 44_100, 48_000),
        fc.constantFrom(8_000, 16_000, 24_000, 48_000),
        fc.constantFrom(1, 2),
        fc.nat(4_000_000),
        (hz, rateHz, channels, skip) => {
          const head = wav(new Float64Array(10), hz, channels);
          const view = new DataView(head.buffer);
          view.setUint32(40, 60_000_000, true);
          const left = wavJump(head, skip, rateHz);
          if (left === undefined) return;
          const frames = (left.bytes + 10 * channels * 2) / (channels * 2);
          expect(Number.isInteger(frames)).toBe(true);
          expect(frames * rateHz).toBe(left.samples * hz);
          expect(left.samples).toBeLessThanOrEqual(skip - rateHz / 2);
          const container = new WavContainer();
          container.push(left.head);
          expect(container.left).toBe(60_000_000 - frames * channels * 2);
        },
      ),
    );
  });
});
