/** Encrypted calls of the whole platform without a telephone: with itself, and with one that has no right key. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bodyOf, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { toneShare } from '../media/sound.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';
const hasFfmpeg = spawnSync('ffmpeg', ['-version'], { stdio: 'ignore' }).error === undefined;

describe('encrypted calls', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(toneWav(1000, 1), { headers: { 'content-type': 'audio/wav' } }),
  });
  const api = (path: string, body: unknown = {}) => platform.api(app, 'POST', path, body);

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  /** The next call that comes in, answered. */
  async function answered(before: number): Promise<string> {
    await receiver.until(() => receiver.count('session.created') > before, 'session.created');
    const uuid = String(receiver.events.findLast(({ event }) => event === 'session.created')?.body.session_uuid);
    expect((await api(`/v1/sessions/${uuid}/answer`)).status).toBe(202);
    return uuid;
  }
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    return Number(new RegExp(`^sidetone_${name} ([0-9]+)$`, 'm').exec(text)?.[1]);
  };
  const SECRET = { srtp: 'required', srtp_without_tls: true };

  test('A loopback call is encrypted between its two Sessions, and each hears the other', async () => {
    expect((await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:', ...SECRET })).status).toBe(204);
    const before = receiver.count('session.created');
    const dialled = await api('/v1/sessions:dial', { from: NUMBER, to: NUMBER, ring_timeout_sec: 20 });
    const caller = String(dialled.body.session_uuid);
    const callee = await answered(before);
    await receiver.event('session.answered', caller);
    const recording = await api(`/v1/sessions/${callee}/recordings`, { direction: 'both', channels: 'mono' });
    await receiver.event('recording.became_available', callee);
    const play = { type: 'files', urls: [`http://127.0.0.1:${media.port}/tone.wav`] };
    expect((await api(`/v1/sessions/${caller}/playback/play`, play)).status).toBe(202);
    await receiver.event('playback.ended', caller);
    await platform.api(app, 'DELETE', `/v1/sessions/${caller}`);
    for (const uuid of [caller, callee])
      expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ quality: { packets_lost: 0 } });
    const wav = readFileSync(join(platform.dataDir, 'recordings', `${recording.body.recording_uuid}.wav`)).subarray(44);
    const heard = Array.from({ length: Math.floor(wav.length / 2) }, (_, i) => wav.readInt16LE(2 * i));
    const begins = heard.findIndex((sample) => Math.abs(sample) > 2000);
    expect(toneShare(heard.slice(begins + 800, begins + 4800), 1000)).toBeGreaterThan(0.95);
    expect([await metric('srtp_packets_forged_total'), await metric('srtp_packets_replayed_total')]).toEqual([0, 0]);
    expect((await platform.operator('DELETE', '/trunks/loop')).status).toBe(204);
  }, 30_000);

  test.skipIf(!hasFfmpeg)(
    'What comes under another key is not heard, and is in the metrics',
    async () => {
      const peer = await RawPeer.udp(platform.sipUdpPort);
      const trunk = { uri: `sip:127.0.0.1:${peer.port}`, inbound_cidrs: ['127.0.0.0/8'], ...SECRET };
      expect((await platform.operator('PUT', '/trunks/carrier', trunk)).status).toBe(204);
      const key = (fill: number) => Buffer.alloc(30, fill).toString('base64');
      const before = receiver.count('session.created');
      const crypto = `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${key(1)}`;
      peer.send(peer.request('INVITE', { id: 'liar', body: sdp('m=audio 6000 RTP/SAVP 0', crypto) }));
      const uuid = await answered(before);
      const ok = await peer.until(/^SIP\/2.0 200/);
      peer.send(peer.request('ACK', { id: 'liar', to: field(ok, 'To') }));
      await receiver.event('session.answered', uuid);
      const forged = await metric('srtp_packets_forged_total');
      const port = /^m=audio ([0-9]+)/m.exec(bodyOf(ok))?.[1];
      const source = ['-re', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=8000:duration=1,asetnsamples=n=160'];
      const secret = ['-srtp_out_suite', 'AES_CM_128_HMAC_SHA1_80', '-srtp_out_params', key(2)];
      const to = `srtp://127.0.0.1:${port}?pkt_size=200`;
      const child = spawn('ffmpeg', ['-nostdin', '-v', 'error', ...source, '-c:a', 'pcm_mulaw', '-f', 'rtp', ...secret, to], {
        stdio: 'ignore',
      });
      expect((await once(child, 'exit'))[0]).toBe(0);
      await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
      peer.respond(await peer.until(/^BYE /), '200 OK');
      expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ quality: { packets_in: 0 } });
      expect(await metric('srtp_packets_forged_total')).toBeGreaterThanOrEqual(forged + 50);
      peer.close();
    },
    30_000,
  );
});
