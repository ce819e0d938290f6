/** Decoders of several applications beside each other, in the thread that they share. */
import { afterAll, expect, test } from 'bun:test';
import { silentLog } from '../../src/log.ts';
import { DecodeError, DecoderThread } from '../../src/media/decode/decoder.ts';
import { packedSilence } from './source/packed-silence.ts';

const decoders = new DecoderThread(silentLog);
afterAll(async () => {
  await decoders.close();
});

test('a source that takes long to decode holds up those of other applications for one step, however many play it', async () => {
  const costly = packedSilence(7);
  const heavy = decoders.of('heavy');
  const done: string[] = [];
  const streams = await Promise.all(Array.from({ length: 12 }, () => heavy.open('flac', 8_000)));
  // The library is loaded with the first frame; each step after that is made without a pause.
  for (const stream of streams) await stream.push(costly.slice(0, 80));
  const quiet = await decoders.of('quiet').open('wav', 8_000);
  const steps = streams.map(async (stream) => {
    await stream.push(costly.slice(80));
    done.push('heavy');
  });
  await quiet.push(new TextEncoder().encode('RIFF'));
  done.push('quiet');
  await Promise.all(steps);
  // Steps that take less than 20 ms are made together, so that not each costs a turn.
  expect(done.indexOf('quiet')).toBeLessThan(3);
  for (const stream of [...streams, quiet]) stream.close();
});

test('a step that would take seconds, because few bytes stand for much sound in many channels, is broken off', async () => {
  const stream = await decoders.open('flac', 8_000);
  expect((await stream.push(packedSilence(60).slice())).length).toBeGreaterThan(0);
  stream.close();
  const other = await decoders.open('flac', 8_000);
  const broken = await other.push(packedSilence(120).slice()).catch((error: unknown) => error);
  expect(broken).toEqual(new DecodeError('more sound in a few bytes than is believed'));
  other.close();
});

test('an application that has all decoders open leaves some to the others', async () => {
  const much = decoders.of('much');
  const few = decoders.of('few');
  const streams = await Promise.all(Array.from({ length: 4_000 }, () => much.open('wav', 8_000)));
  const none = await much.open('wav', 8_000).catch((error: unknown) => error);
  expect(none).toEqual(new Error('too many decoders'));
  const other = await few.open('wav', 8_000);
  for (const stream of [...streams, other]) stream.close();
  const again = await much.open('wav', 8_000);
  again.close();
});
