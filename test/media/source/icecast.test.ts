/** Streams of a real Icecast server, as stations run it. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { decodesAac } from '../../../src/media/decode/aac-decoder.ts';
import { test } from '../../support/real-time.ts';
import { type Call, Harness } from '../harness.ts';
import { mulawSample, toneShare } from '../sound.ts';
import { Icecast, icecastInstalled } from './icecast.ts';

let harness: Harness;
let icecast: Icecast;

beforeAll(async () => {
  if (!icecastInstalled) return;
  harness = await Harness.open();
  icecast = await Icecast.start();
}, 30_000);
afterAll(async () => {
  if (!icecastInstalled) return;
  await icecast?.[Symbol.asyncDispose]();
  await harness.close();
});

/** Joins a mount as a `stream` playback does. */
async function joined(mount: string): Promise<Call> {
  const stream = await harness.engine.openStream(icecast.url(mount), 'app');
  if ('refused' in stream) throw new Error(`refused: ${stream.refused.reason}`);
  const call = await harness.call();
  call.leg.negotiate(call.peer.parameters());
  call.leg.play({ operationUuid: 'op', playlist: stream, loop: 1, volume: 100 });
  return call;
}

/** The share of the last 300 ms that is this tone; 0 before there are so many. */
function share(call: Call, hz: number): number {
  const pcm = call.peer.heard.slice(-15).flatMap(({ payload }) => [...payload].map(mulawSample));
  return pcm.length < 2_400 ? 0 : toneShare(pcm, hz);
}

const hears = (call: Call, hz: number): Promise<void> => call.peer.until(() => share(call, hz) > 0.9);

describe.skipIf(!icecastInstalled)('an Icecast stream', () => {
  const mounts: readonly (readonly [string, readonly string[], string])[] = [
    ['/128k.mp3', ['-c:a', 'libmp3lame', '-b:a', '128k', '-ac', '2'], 'mp3'],
    ['/48k.mp3', ['-c:a', 'libmp3lame', '-b:a', '48k', '-ac', '1'], 'mp3'],
    ['/vbr.mp3', ['-c:a', 'libmp3lame', '-q:a', '4', '-ac', '2'], 'mp3'],
    ['/opus.ogg', ['-c:a', 'libopus', '-b:a', '48k'], 'ogg'],
    ['/vorbis.ogg', ['-c:a', 'libvorbis', '-q:a', '2'], 'ogg'],
    ['/flac.ogg', ['-c:a', 'flac'], 'ogg'],
    ...(decodesAac() ? [['/live.aac', ['-c:a', 'aac', '-b:a', '64k'], 'adts'] as const] : []),
  ];
  for (const [mount, codec, format] of mounts) {
    test(`is heard by whoever joins, whenever they do: ${mount}`, async () => {
      const end = await icecast.source(mount, 440, codec, format);
      for (let join = 0; join < 4; join++) {
        await using call = await joined(mount);
        await hears(call, 440);
        expect(call.notices.of('playback.failed')).toEqual([]);
      }
      await end();
    }, 30_000);
  }

  test('goes on over a change of title', async () => {
    const end = await icecast.source('/titled.mp3', 500, ['-c:a', 'libmp3lame', '-b:a', '64k'], 'mp3');
    await using call = await joined('/titled.mp3');
    await hears(call, 500);
    for (const song of ['One', 'Zwei – 二', 'x'.repeat(300)]) await icecast.title('/titled.mp3', song);
    const before = call.peer.heard.length;
    await call.peer.until(() => call.peer.heard.length > before + 50);
    expect(share(call, 500)).toBeGreaterThan(0.9);
    await end();
  }, 30_000);

  test('goes on over the fallback mount when its source is lost, and comes back with it', async () => {
    const spare = await icecast.source('/spare.mp3', 700, ['-c:a', 'libmp3lame', '-b:a', '48k', '-ac', '1'], 'mp3');
    const lost = await icecast.source('/main.mp3', 400, ['-c:a', 'libmp3lame', '-b:a', '128k', '-ac', '2'], 'mp3');
    await using call = await joined('/main.mp3');
    await hears(call, 400);
    await lost();
    await hears(call, 700);
    const back = await icecast.source('/main.mp3', 400, ['-c:a', 'libmp3lame', '-b:a', '128k', '-ac', '2'], 'mp3');
    await hears(call, 400);
    expect(call.notices.of('playback.failed')).toEqual([]);
    await spare();
    await back();
  }, 45_000);

  test('is joined again when its source was lost and is back within seconds', async () => {
    const codec = ['-c:a', 'libmp3lame', '-b:a', '128k', '-ac', '2'];
    const lost = await icecast.source('/alone.mp3', 600, codec, 'mp3');
    await using call = await joined('/alone.mp3');
    await hears(call, 600);
    await lost();
    const back = await icecast.source('/alone.mp3', 900, codec, 'mp3');
    await hears(call, 900);
    expect(call.notices.of('playback.failed')).toEqual([]);
    await back();
  }, 45_000);
});
