import { afterAll, beforeAll, expect, test } from 'bun:test';
import { silentLog } from '../../src/log.ts';
import type { Playlist } from '../../src/media/engine.ts';
import { createMediaEngine, type NativeMediaEngine } from '../../src/media/media-engine.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { Notices, Peer } from './peer.ts';
import { alawSample, mulawSample, tone, toneSnrDb, wav } from './sound.ts';

const files = new Map<string, Uint8Array<ArrayBuffer>>();
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request) => {
    const file = files.get(new URL(request.url).pathname);
    return file === undefined ? new Response('no', { status: 404 }) : new Response(file);
  },
});
const urlOf = (name: string) => `http://127.0.0.1:${server.port}${name}`;
let engine: NativeMediaEngine;

beforeAll(async () => {
  engine = await createMediaEngine({
    rtp: { host: '127.0.0.1', firstPort: 31_000, lastPort: 31_199 },
    workers: 1,
    mediaTimeoutSec: 1,
    outbound: createOutbound(['127.0.0.0/8']),
    log: silentLog,
  });
});

afterAll(async () => {
  await engine.close();
  await server.stop(true);
});

async function call() {
  const peer = await Peer.open();
  const notices = new Notices();
  const leg = await engine.openRtpLeg(notices.hear);
  if (leg === undefined) throw new Error('no leg');
  return {
    peer,
    notices,
    leg,
    async [Symbol.asyncDispose]() {
      await leg.close();
      await peer.close();
    },
  };
}

async function admitted(...names: string[]): Promise<Playlist> {
  const playlist = await engine.openPlaylist(names.map(urlOf));
  if ('refused' in playlist) throw new Error(`refused: ${playlist.refused.reason}`);
  return playlist;
}

for (const codec of ['PCMU', 'PCMA'] as const) {
  test(`a 1 kHz WAV played on a ${codec} leg is that tone at the far end, in contiguous packets of 20 ms`, async () => {
    files.set('/tone.wav', wav(tone(1000, 1, 8000), 8000));
    await using it = await call();
    const { peer, notices, leg } = it;
    leg.negotiate(peer.parameters({ codec, receive: false }));
    leg.play({ operationUuid: 'op-1', playlist: await admitted('/tone.wav'), loop: 1, volume: 100 });
    await notices.until(() => notices.of('playback.completed').length === 1);
    const count = peer.heard.length;
    await peer.until(() => peer.heard.length > count + 2);

    expect(notices.types()).toEqual(['playback.started', 'playback.completed']);
    const decode = codec === 'PCMU' ? mulawSample : alawSample;
    const silence = codec === 'PCMU' ? 0xff : 0xd5;
    for (const [i, packet] of peer.heard.entries()) {
      expect(packet.payload.length).toBe(160);
      const before = peer.heard[i - 1];
      if (before === undefined) continue;
      expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
      expect((packet.timestamp - before.timestamp) >>> 0).toBe(160);
      expect(packet.ssrc).toBe(before.ssrc);
    }
    const voiced = peer.heard.filter((packet) => packet.payload.some((octet) => octet !== silence));
    expect(voiced.length).toBe(50);
    expect(voiced[0]?.marker).toBe(true);
    expect(voiced.slice(1).some((packet) => packet.marker)).toBe(false);
    const pcm = voiced.flatMap((packet) => [...packet.payload].map(decode));
    expect(toneSnrDb(pcm, 1000, 8000)).toBeGreaterThan(33);
    const first = peer.heard[0];
    const last = peer.heard.at(-1);
    if (first === undefined || last === undefined) throw new Error('nothing heard');
    const spacing = (last.at - first.at) / (peer.heard.length - 1);
    expect(spacing).toBeGreaterThan(18);
    expect(spacing).toBeLessThan(22);
  });
}
