/** What a killed process left in memory of its recordings: appended to the byte, or refused. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { mendWav, wavDurationMs } from '../../src/media/recording/mend-wav.ts';
import { type CutOffWav, restOf } from '../../src/media/recording/recording-ring.ts';
import { endsWithProcess, recordingRings } from '../../src/media/recording/recording-rings.ts';
import { followRecording } from '../../src/media/recording/recordings.ts';
import fc from '../support/fast-check.ts';
import { GrowingWav } from '../support/growing-wav.ts';
import { ringFile, writePosition } from '../support/ring-file.ts';
import { Harness } from './harness.ts';
import { Talker } from './talker.ts';

const NAME = 'rec_1.wav';
const sound = Uint8Array.from({ length: 8_000 }, (_, at) => (at * 7 + (at >> 8)) & 0xff);
const cutOff = (dataBytes: number) => ({ name: NAME, rateHz: 8000, dataBytes });

const restIn = (file: Buffer, wav: CutOffWav) => restOf({ ring: 'there', file }, wav);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rings-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

/** A ring of 640 bytes in which so much was put, of which so much is known to be written. */
const ring = (put: number, taken: number, of: Partial<Parameters<typeof ringFile>[0]> = {}) =>
  ringFile({ name: NAME, rateHz: 8000, ringBytes: 640, put, taken, sound, ...of });

/** A WAV that a crash cut off after so many bytes of sound. */
function growing(dataBytes: number): string {
  const path = join(folder, NAME);
  const file = new GrowingWav(path).begin();
  file.append(sound.subarray(0, dataBytes));
  return path;
}

describe('what a ring holds beyond the file', () => {
  test('is the sound that was put and not written, wherever in the ring it lies', () => {
    const places = fc.tuple(fc.nat(2_000), fc.nat(320), fc.nat(320)).map(([taken, more, written]) => {
      const put = 2 * (taken + more);
      return { taken: 2 * taken, put, dataBytes: Math.min(put, 2 * (taken + written)) };
    });
    fc.assert(
      fc.property(places, ({ taken, put, dataBytes }) => {
        fc.pre(put > 0 && put - taken <= 640);
        const left = restIn(ring(put, taken), cutOff(dataBytes));
        expect(left).toEqual({ ring: 'read', rest: Buffer.from(sound.subarray(dataBytes, put)) });
      }),
    );
  });

  test('is nothing where the file has more, or nothing was put yet', () => {
    const nothing = { ring: 'read', rest: Buffer.alloc(0) } as const;
    expect(restIn(ring(1_000, 800), cutOff(1_000))).toEqual(nothing);
    expect(restIn(ring(1_000, 800), cutOff(1_300))).toEqual(nothing);
    expect(restIn(ring(0, 960), cutOff(1_280))).toEqual(nothing);
  });

  test('is refused of another recording, rate, length or kind, and where positions contradict each other or the file', () => {
    const refusals: readonly (readonly [Buffer, number])[] = [
      [ring(1_000, 800, { name: 'rec_2.wav' }), 800],
      [ring(1_000, 800, { name: '' }), 800],
      [ring(1_000, 800, { rateHz: 16_000 }), 800],
      [ring(800, 1_000), 1_000],
      [ring(1_000, 200), 200],
      [ring(1_001, 800), 800],
      [ring(1_000, 800), 798],
      [ring(1_000, 800).subarray(0, 4096 + 638), 800],
      [Buffer.concat([ring(1_000, 800), Buffer.alloc(2)]), 800],
      [ring(1_000, 800).subarray(0, 4095), 800],
      [Buffer.alloc(0), 0],
      [Buffer.alloc(4096 + 640), 0],
    ];
    for (const [file, dataBytes] of refusals) expect(restIn(file, cutOff(dataBytes))).toMatchObject({ ring: 'refused' });
  });

  test('is the same or refused with any bit of the header turned', () => {
    const good = ring(1_000, 800);
    const rest: unknown = restIn(good, cutOff(900));
    let harmless = 0;
    for (let bit = 0; bit < 4096 * 8; bit++) {
      const bad = Buffer.from(good);
      bad.writeUInt8(bad.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const left = restIn(bad, cutOff(900));
      if (left.ring === 'refused') continue;
      expect<unknown>(left).toEqual(rest);
      harmless++;
    }
    // Only what is not used: between the check, the positions and the name.
    expect(harmless).toBe((64 - 28 + (128 - 72) + (192 - 136)) * 8);
  });

  test('is never more than a ring, whatever bytes there are', () => {
    const any = fc.uint8Array({ maxLength: 4096 + 700 });
    // Half of them with a sound header, so that the positions are what is by chance.
    const positions = fc.tuple(fc.nat(0xffff_ffff), fc.nat(0xffff_ffff), fc.nat(3_000));
    fc.assert(
      fc.property(any, fc.nat(3_000), (bytes, dataBytes) => {
        expect(restIn(Buffer.from(bytes), cutOff(dataBytes)).ring).toBe('refused');
      }),
    );
    fc.assert(
      fc.property(positions, ([put, taken, dataBytes]) => {
        const file = ring(1_000, 800);
        writePosition(file, 64, put);
        writePosition(file, 128, taken);
        const left = restIn(file, cutOff(dataBytes));
        if (left.ring === 'read') expect(left.rest.length).toBeLessThanOrEqual(640);
      }),
    );
  });
});

describe('mending', () => {
  test('appends it, sets the sizes and removes the ring; again, or broken off before its end, it comes to the same', async () => {
    const wav = growing(901); // half a sample of it
    const path = join(folder, `${NAME}.ring`);
    await writeFile(path, ring(1_200, 800));
    expect(await wavDurationMs(wav, path)).toBe(75);
    const whole = { bytes: 44 + 1_200, durationMs: 75 };
    const check = async () => {
      const bytes = await readFile(wav);
      expect([bytes.readUInt32LE(4), bytes.readUInt32LE(40)]).toEqual([bytes.length - 8, 1_200]);
      expect(bytes.subarray(44)).toEqual(Buffer.from(sound.subarray(0, 1_200)));
    };
    expect(await mendWav(wav, path)).toEqual({ mended: true, ...whole });
    await check();
    expect(existsSync(path)).toBe(false);
    // The data as it is appended, but without its sizes.
    const bytes = await readFile(wav);
    bytes.writeUInt32LE(0xffff_ffff, 4);
    bytes.writeUInt32LE(0xffff_ffff, 40);
    await writeFile(wav, bytes);
    await writeFile(path, ring(1_200, 800));
    expect(await mendWav(wav, path)).toEqual({ mended: true, ...whole });
    await check();
    await writeFile(path, ring(1_200, 800));
    expect(await mendWav(wav, path)).toEqual({ mended: false, ...whole });
    await check();
    expect(existsSync(path)).toBe(false);
  });

  test('of a ring that is refused, is no file or leads elsewhere keeps what the file has, says so, and removes it', async () => {
    const path = join(folder, `${NAME}.ring`);
    const elsewhere = join(folder, 'elsewhere');
    await writeFile(elsewhere, ring(1_200, 800));
    const made: readonly (() => Promise<unknown>)[] = [
      () => writeFile(path, ring(1_200, 800, { name: 'rec_2.wav' })),
      () => writeFile(path, Buffer.alloc(1_000_000)),
      () => symlink(elsewhere, path),
    ];
    for (const make of made) {
      const wav = growing(900);
      await make();
      expect(await wavDurationMs(wav, path)).toBe(56);
      expect(await mendWav(wav, path)).toEqual({ mended: true, bytes: 944, durationMs: 56, ringRefused: expect.any(String) });
      expect(existsSync(path)).toBe(false);
      expect((await readFile(wav)).subarray(44)).toEqual(Buffer.from(sound.subarray(0, 900)));
    }
    expect(existsSync(elsewhere)).toBe(true);
    // Nothing is left of a file that is gone, or none of ours, either.
    await writeFile(path, ring(1_200, 800));
    await expect(mendWav(join(folder, 'gone.wav'), path)).rejects.toThrow('ENOENT');
    expect(existsSync(path)).toBe(false);
    await writeFile(path, ring(1_200, 800));
    await writeFile(join(folder, 'other.wav'), 'no WAV');
    expect(await mendWav(join(folder, 'other.wav'), path)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
  });
});

test('a recording as the plane leaves it at any moment is mended to all that was put, and what was masked is in neither', async () => {
  const rings = await recordingRings(folder, silentLog);
  if (rings === undefined) return; // no tmpfs on this machine
  const harness = await Harness.open();
  const call = await harness.call();
  const talker = new Talker(call, 440, 'PCMU');
  call.leg.negotiate(call.peer.parameters());
  await call.leg.counters();
  talker.start();
  const wav = join(folder, NAME);
  const path = rings.path(wav);
  const { notices } = call;
  const recording = call.leg.record({ recordingUuid: 'rec', path: wav, ring: path, includeGaps: false });
  await notices.until(() => notices.of('recording.started').length === 1);
  await talker.hears(60);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  // The ring first: what is written in between is in both.
  const leave = async (name: string) => {
    const left = join(folder, name);
    await mkdir(left);
    const kept = [join(left, 'ring'), join(left, NAME)] as const;
    await copyFile(path, kept[0]);
    await copyFile(wav, kept[1]);
    const put = (await readFile(kept[0])).readUInt32LE(64);
    const behind = put - ((await stat(kept[1])).size - 44);
    const mended = await mendWav(kept[1], kept[0]);
    expect(mended).toMatchObject({ mended: true });
    expect(mended?.ringRefused).toBeUndefined();
    return { put, behind, samples: (await readFile(kept[1])).subarray(44) };
  };
  const first = await leave('first');
  recording.mask();
  await talker.hears(20);
  const masked = await leave('masked');
  await talker.hears(20);
  const still = await leave('still');
  // Nothing was put meanwhile.
  expect(still.put).toBe(masked.put);
  expect(still.samples).toEqual(masked.samples);
  recording.unmask();
  await talker.hears(40);
  const last = await leave('last');
  followRecording(wav, true);
  await talker.hears(40);
  const followed = await leave('followed');
  recording.stop();
  await notices.until(() => notices.of('recording.ended').length === 1);
  const whole = (await readFile(wav)).subarray(44);
  for (const { put, samples } of [first, masked, still, last, followed]) {
    expect(samples.length).toBeGreaterThanOrEqual(put);
    expect(samples.equals(whole.subarray(0, samples.length))).toBe(true);
  }
  // It is the ring that has it: of a file that is written once a second the better half is not there at some of these
  // moments.
  expect(Math.max(first.behind, last.behind)).toBeGreaterThan(1_600);
  expect(followed.behind).toBeLessThan(16 * 200);
  expect(existsSync(path)).toBe(false);
  await talker.end();
  await harness.close();
  await rings.close();
});

describe('the folder of rings', () => {
  test("is this user's alone, the same at the next start, and another for other data; sweeping leaves nothing", async () => {
    const one = await recordingRings(folder, silentLog);
    const again = await recordingRings(folder, silentLog);
    const data = join(folder, 'other');
    await mkdir(data);
    const other = await recordingRings(data, silentLog);
    if (one === undefined || again === undefined || other === undefined) return; // no tmpfs on this machine
    const path = one.path(join(data, NAME));
    expect(again.path(NAME)).toBe(path);
    expect(other.path(NAME)).not.toBe(path);
    const own = join(path, '..');
    expect((await stat(own)).mode & 0o777).toBe(0o700);
    await writeFile(path, '');
    await writeFile(other.path(NAME), '');
    await one.close();
    expect(existsSync(path)).toBe(true);
    expect(await again.sweep([join(data, NAME)])).toBe(0);
    expect(await again.sweep()).toBe(1);
    expect(await readdir(own)).toEqual([]);
    expect(existsSync(other.path(NAME))).toBe(true);
    await other.sweep();
    // One that others may write to is a trap.
    await chmod(own, 0o770);
    expect(await recordingRings(folder, silentLog)).toBeUndefined();
    await chmod(own, 0o700);
    for (const each of [again, other]) await each.close();
    expect(existsSync(own)).toBe(false);
  });

  test('is not on a disk, nor where the container ends with the process', async () => {
    expect(await recordingRings(folder, silentLog, join(folder, 'none'))).toBeUndefined();
    expect(await recordingRings(folder, silentLog, '/proc')).toBeUndefined();
    const machine = 'ipc:[4026531839]';
    expect([endsWithProcess(1, 0, 'ipc:[4026532201]'), endsWithProcess(7, 1, 'ipc:[4026532201]')]).toEqual([true, true]);
    expect([endsWithProcess(7, 6, 'ipc:[4026532201]'), endsWithProcess(1, 0, machine), endsWithProcess(7, 1, machine)]).toEqual([
      false,
      false,
      false,
    ]);
  });
});
