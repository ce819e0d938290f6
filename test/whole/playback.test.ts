/**
 * Playback and digits on the running platform: SIPp as the carrier, a socket as the phone, HTTP servers as the sources
 * and the application.
 */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { connect } from 'node:net';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { decodeMulaw, purity, RtpPeer, toneWav } from '../support/rtp-peer.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550004';

describe.skipIf(!sippInstalled)('playback on a call', () => {
  let platform: Platform;
  let app: Credentials;
  let other: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url);
      const tone = /^\/tone-(\d+)-([\d.]+)\.wav$/.exec(pathname);
      if (tone !== null) return new Response(toneWav(Number(tone[1]), Number(tone[2])));
      if (pathname === '/page.mp3')
        return new Response('<!doctype html><html></html>', { headers: { 'content-type': 'audio/mpeg' } });
      if (pathname === '/packed.wav')
        return new Response(Bun.gzipSync(toneWav(500, 1)), { headers: { 'content-encoding': 'br' } });
      if (pathname === '/inward.wav') return Response.redirect('http://10.0.0.1/x.wav');
      if (pathname === '/secret.wav') return new Response('no', { status: 403 });
      return new Response('no', { status: 404 });
    },
  });
  const url = (path: string) => `http://127.0.0.1:${media.port}${path}`;

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    other = await platform.application(receiver.url, '+15550005');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  interface Talk {
    readonly ear: RtpPeer;
    readonly session: string;
    post(path: string, body?: unknown): ReturnType<Platform['api']>;
    end(): Promise<void>;
  }

  async function answered(): Promise<Talk> {
    const ear = await RtpPeer.open();
    const before = receiver.events.length;
    const caller = await sipp({
      scenario: 'caller-waits',
      to: platform.sipUdp,
      number: NUMBER,
      keys: { rtp_port: String(ear.port) },
    });
    const find = () => receiver.events.slice(before).find((event) => event.event === 'session.created');
    await receiver.until(() => find() !== undefined, 'the call');
    const session = String(find()?.body.session_uuid);
    const post = (path: string, body: unknown = {}) => platform.api(app, 'POST', `/v1/sessions/${session}${path}`, body);
    await post('/answer');
    await receiver.event('session.answered', session);
    await ear.until(() => ear.packets.length > 3, 'audio');
    return {
      ear,
      session,
      post,
      async end() {
        await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
        await caller.done;
        ear.close();
      },
    };
  }

  /** Waits until the last 100 ms were this tone, and nothing else. */
  const hears = (ear: RtpPeer, hz: number) =>
    ear.until(() => purity(decodeMulaw(ear.packets.slice(-5)), hz) > 0.98 && ear.packets.length > 5, `${hz} Hz`);

  test('a playlist is moved through, held, restarted and replaced by the other kinds, each with its events', async () => {
    const call = await answered();
    const urls = [url('/tone-400-3.wav'), url('/tone-900-3.wav'), url('/tone-1500-3.wav')];
    const play = await call.post('/playback/play', { type: 'files', urls, loop: 0, volume: 80 });
    expect(play.status).toBe(202);
    await hears(call.ear, 400);
    expect((await call.post('/playback/seek', { position_ms: 7_000 })).status).toBe(202);
    await hears(call.ear, 1500);
    expect((await call.post('/playback/seek', { offset_ms: -3_000 })).status).toBe(202);
    await hears(call.ear, 900);
    expect((await call.post('/playback/pause')).status).toBe(202);
    await call.ear.until(() => decodeMulaw(call.ear.packets.slice(-5)).every((sample) => Math.abs(sample) < 0.01), 'silence');
    expect((await call.post('/playback/restart')).status).toBe(202);
    await hears(call.ear, 400);
    for (const bad of [{}, { position_ms: 1, offset_ms: 1 }, { position_ms: -1 }, { position_ms: 1.5 }, { at: 1 }]) {
      expect([bad, (await call.post('/playback/seek', bad)).status]).toEqual([bad, 400]);
    }

    const live = await call.post('/playback/play', { type: 'stream', url: url('/tone-1200-30.wav') });
    expect(live.status).toBe(202);
    await hears(call.ear, 1200);
    for (const [command, body] of [['pause'], ['restart'], ['seek', { position_ms: 0 }]] as const) {
      expect([command, (await call.post(`/playback/${command}`, body)).status]).toEqual([command, 409]);
    }
    expect(
      (
        await call.post('/playback/play', {
          type: 'stream',
          url: url('/x'),
          media_format: { encoding: 'mulaw', sample_rate: 8000 },
        })
      ).status,
    ).toBe(400);

    const silence = await call.post('/playback/play', { type: 'silence' });
    expect(silence.status).toBe(202);
    await call.ear.until(() => decodeMulaw(call.ear.packets.slice(-5)).every((sample) => Math.abs(sample) < 0.01), 'silence');
    expect((await call.post('/playback/stop')).status).toBe(202);
    const nothing = await call.post('/playback/resume');
    expect(nothing.status).toBe(202);
    await receiver.event('playback.failed', call.session);
    await call.end();
    await receiver.event('session.ended', call.session);
    const told = receiver
      .of(call.session)
      .filter(({ event }) => event.startsWith('playback'))
      .map(({ event, body }) => [event, body.operation_uuid, body.reason, body.urls]);
    expect(told).toEqual([
      ['playback.started', play.body.operation_uuid, undefined, urls],
      ['playback.ended', play.body.operation_uuid, 'stopped', urls],
      ['playback.ended', live.body.operation_uuid, 'stopped', undefined],
      ['playback.ended', silence.body.operation_uuid, 'stopped', undefined],
      ['playback.failed', nothing.body.operation_uuid, 'no_active_playback', undefined],
    ]);
  }, 30_000);

  const upload = (path: string, body: BodyInit, as = app) =>
    fetch(platform.url + path, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${as.appUuid}:${as.apiKey}`, 'content-type': 'application/octet-stream' },
    });

  test('a push is heard while it is sent, its sender held back, and each misuse of its URL is told', async () => {
    const call = await answered();
    const media_format = { encoding: 'pcm_s16le', sample_rate: 24_000 };
    const play = await call.post('/playback/play', { type: 'push', media_format });
    expect(play.status).toBe(202);
    const ingest = play.body.ingest as Record<string, string>;
    expect(ingest).toMatchObject({ method: 'POST', headers: { 'content-type': 'application/octet-stream' } });
    const leftMs = Date.parse(String(ingest.expires_at)) - Date.now();
    expect(leftMs).toBeGreaterThan(50_000);
    // A minute from its admission (contract §3); the two clocks may be some milliseconds apart.
    expect(leftMs).toBeLessThan(60_100);
    const { origin, pathname: path } = new URL(String(ingest.url));
    expect(origin).toBe(platform.url);
    expect((await upload(path, 'x', other)).status).toBe(404);
    expect((await upload(`${path.slice(0, -4)}0000`, 'x')).status).toBe(404);

    const sent = performance.now();
    const audio = toneWav(1000, 6, 24_000).slice(44);
    const sending = upload(path, audio);
    await hears(call.ear, 1000);
    expect((await upload(path, 'x')).status).toBe(409);
    const answer = await sending;
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ operation_uuid: play.body.operation_uuid, bytes_received: audio.length });
    // Six seconds of audio are taken no faster than they are heard, two seconds ahead.
    expect(performance.now() - sent).toBeGreaterThan(3_300);
    const ended = await receiver.event('playback.ended', call.session);
    expect(ended.body).toMatchObject({ operation_uuid: play.body.operation_uuid, reason: 'completed' });
    expect(performance.now() - sent).toBeGreaterThan(5_800);
    expect((await upload(path, 'x')).status).toBe(409);

    const torn = await call.post('/playback/play', { type: 'push', media_format });
    const { hostname, port } = new URL(platform.url);
    const before = call.ear.packets.length;
    const socket = connect(Number(port), hostname);
    const target = new URL(String((torn.body.ingest as Record<string, string>).url)).pathname;
    socket.write(
      `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.appUuid}:${app.apiKey}\r\nTransfer-Encoding: chunked\r\n\r\n2580\r\n`,
    );
    socket.write(audio.subarray(0, 0x2580));
    // What was heard before is the same tone, to its last packet.
    await call.ear.until(() => purity(decodeMulaw(call.ear.packets.slice(before).slice(-3)), 1000) > 0.9, 'the push');
    socket.destroy();
    const failed = await receiver.event('playback.failed', call.session);
    expect(failed.body).toMatchObject({ operation_uuid: torn.body.operation_uuid, reason: 'source_disconnected' });
    await call.end();
  }, 40_000);

  test('a source that cannot be had is a 502 that says why, no event, and the call lives', async () => {
    const call = await answered();
    const rows: readonly (readonly [string, object])[] = [
      [url('/none.wav'), { reason: 'not_found', retryable: false, upstream_status: 404 }],
      [url('/secret.wav'), { reason: 'access_denied', retryable: false, upstream_status: 403 }],
      [url('/page.mp3'), { reason: 'unsupported', retryable: false, upstream_status: 200 }],
      [url('/packed.wav'), { reason: 'unsupported', retryable: false, upstream_status: 200 }],
      [url('/inward.wav'), { reason: 'rejected', retryable: false, upstream_status: 302 }],
      ['http://192.168.0.1/x.wav', { reason: 'rejected', retryable: false }],
      ['http://127.0.0.1:9/x.wav', { reason: 'rejected', retryable: false }],
    ];
    for (const [source, detail] of rows) {
      const refused = await call.post('/playback/play', { type: 'files', urls: [source] });
      expect([source, refused.status, refused.body.code, refused.body.detail]).toEqual([
        source,
        502,
        'playback_source_error',
        detail,
      ]);
      expect(JSON.stringify(refused.body)).not.toContain('127.0.0.1');
    }
    const indexed = await call.post('/playback/play', { type: 'files', urls: [url('/tone-400-1.wav'), url('/none.wav')] });
    expect(indexed.body.detail).toEqual({ reason: 'not_found', retryable: false, upstream_status: 404, source_index: 1 });
    expect((await call.post('/playback/play', { type: 'files', urls: [url('/tone-400-1.wav')] })).status).toBe(202);
    await hears(call.ear, 400);
    expect(receiver.names(call.session).filter((name) => name === 'playback.failed')).toEqual([]);
    await call.end();
  }, 30_000);

  test('keys over a prompt are collected, each told before the digits it completes', async () => {
    const call = await answered();
    const collect = await call.post('/dtmf/collect', { prompt_files: [url('/tone-600-10.wav')], max_digits: 3, terminators: [] });
    expect(collect.status).toBe(202);
    await hears(call.ear, 600);
    expect((await call.post('/dtmf/collect')).status).toBe(409);
    const port = call.ear.source?.port ?? 0;
    let sequence = 100;
    [1, 11, 10].forEach((event, at) => {
      for (const [units, end] of [
        [160, 0],
        [320, 0],
        [480, 0x80],
        [480, 0x80],
        [480, 0x80],
      ] as const) {
        const packet = Buffer.alloc(16);
        packet.set([0x80, (units === 160 ? 0x80 : 0) | 101], 0);
        packet.writeUInt16BE(sequence++, 2);
        packet.writeUInt32BE(50_000 + at * 1_000, 4);
        packet.writeUInt32BE(77, 8);
        packet.set([event, end | 10, units >> 8, units & 255], 12);
        call.ear.send(port, packet);
      }
    });
    const collected = await receiver.event('digits.collected', call.session);
    expect(collected.body).toMatchObject({
      operation_uuid: collect.body.operation_uuid,
      status: 'success',
      digits: '1#*',
      terminator: '',
    });
    expect(receiver.names(call.session).slice(-4)).toEqual([
      'dtmf.received',
      'dtmf.received',
      'dtmf.received',
      'digits.collected',
    ]);
    expect(receiver.of(call.session).at(-2)?.body).toMatchObject({ digit: '*', duration_ms: 60, method: 'rfc4733' });
    await call.ear.until(
      () => decodeMulaw(call.ear.packets.slice(-5)).every((sample) => Math.abs(sample) < 0.01),
      'the prompt to stop',
    );
    expect((await platform.api(app, 'DELETE', `/v1/sessions/${call.session}/dtmf/collect`)).status).toBe(404);
    await call.post('/dtmf/collect', { first_digit_timeout_ms: 60_000 });
    expect((await platform.api(app, 'DELETE', `/v1/sessions/${call.session}/dtmf/collect`)).status).toBe(202);
    await receiver.until(
      () => receiver.of(call.session).filter(({ event }) => event === 'digits.collected').length === 2,
      'the cancellation',
    );
    expect(receiver.of(call.session).at(-1)?.body).toMatchObject({ status: 'cancelled', digits: '' });
    await call.end();
  }, 30_000);
});
