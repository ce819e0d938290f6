/** Calls from werift, a WebRTC client in TypeScript with an ICE, DTLS and SRTP of its own. */
import { afterAll, beforeAll, expect } from 'bun:test';
import { MediaStreamTrack, RTCPeerConnection, RTCRtpCodecParameters, RtpHeader, RtpPacket } from 'werift';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { decodeMulaw, type RtpPacket as Heard, purity, toneWav } from '../support/rtp-peer.ts';
import { mulawTone, tokenOf, whip } from '../support/webrtc-peer.ts';

const NUMBER = '+15550002';
let platform: Platform;
let app: Credentials;
const receiver = new Receiver();
const media = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(1000, 3)) });

beforeAll(async () => {
  platform = await Platform.start({ MEDIA_TIMEOUT_SEC: '8' });
  app = await platform.application(receiver.url, NUMBER);
  receiver.secrets.set(app.appUuid, app.webhookSecret);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await media.stop(true);
}, 20_000);

test('werift calls in, hears a tone, says one, and is given up when it sends no more checks', async () => {
  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
  const connection = new RTCPeerConnection({
    codecs: { audio: [new RTCRtpCodecParameters({ mimeType: 'audio/PCMU', clockRate: 8000, channels: 1, payloadType: 0 })] },
    iceServers: [],
  });
  const track = new MediaStreamTrack({ kind: 'audio' });
  connection.addTransceiver(track, { direction: 'sendrecv' });
  const heard: Heard[] = [];
  connection.onTrack.subscribe((theirs) =>
    theirs.onReceiveRtp.subscribe(({ header, payload }) => {
      const { sequenceNumber: sequence, timestamp, payloadType, marker } = header;
      heard.push({ sequence, timestamp, payloadType, marker, payload: new Uint8Array(payload), at: performance.now() });
    }),
  );
  await connection.setLocalDescription(await connection.createOffer());
  const token = tokenOf(await api('POST', '/v1/webrtc-tokens', {}));
  const response = await whip(token, 'POST', connection.localDescription?.sdp ?? '');
  expect(response.status).toBe(201);
  const uuid = response.headers.get('location')?.split('/').at(-1) ?? '';
  await connection.setRemoteDescription({ type: 'answer', sdp: await response.text() });
  await receiver.event('session.created', uuid);
  await api('POST', `/v1/sessions/${uuid}/answer`, {});
  await receiver.event('session.answered', uuid);

  const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
  await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls });
  const began = performance.now();
  let sent = 0;
  const speaking = setInterval(() => {
    for (; sent < Math.floor((performance.now() - began) / 20); sent++) {
      const header = new RtpHeader({ payloadType: 0, sequenceNumber: sent, timestamp: sent * 160, ssrc: 99 });
      track.writeRtp(new RtpPacket(header, Buffer.from(mulawTone(440)(sent))));
    }
  }, 10);
  while (purity(decodeMulaw(heard.slice(-50)), 1000) < 0.95) await new Promise((resolve) => setTimeout(resolve, 20));
  clearInterval(speaking);
  await connection.close();
  const ended = await receiver.event('session.ended', uuid);
  expect(ended.body).toMatchObject({ answered: true, hangup_by: 'system', hangup_cause: 'timeout' });
  expect((ended.body.quality as Record<string, number>).packets_in).toBeGreaterThan(20);
}, 30_000);
