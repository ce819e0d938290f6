/** Firefox calls in by WebRTC with the SDK: an ICE, DTLS, SRTP and jitter buffer that are not Chromium's. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { hostAddress } from '../support/host-address.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { purity, toneWav } from '../support/rtp-peer.ts';
import { freePort } from '../support/sipp.ts';
import { tokenOf } from '../support/webrtc-peer.ts';
import { callSite } from './call-page.ts';
import { Firefox, firefoxUsable, MICROPHONE_HZ } from './firefox.ts';

const NUMBER = '+15550002';
const RATE = 8_000;

/**
 * A page that calls with its microphone, and tells what it hears. A machine without a sound card runs no AudioContext
 * in Firefox, so what is heard is recorded for a moment and decoded.
 */
const PAGE = `<!doctype html><meta charset="utf-8"><title>Call</title><script type="module">
import { connectBrowser } from '/browser.js';
window.start = async (url, token) => {
  const call = await connectBrowser({ url, token });
  window.call = call;
  window.over = false;
  call.ended.then(() => { window.over = true; });
  return call.sessionUuid;
};
window.hear = async () => {
  const recorder = new MediaRecorder(call.audio);
  const data = new Promise((resolve) => { recorder.ondataavailable = resolve; });
  recorder.start();
  setTimeout(() => recorder.stop(), 500);
  const bytes = await (await data).data.arrayBuffer();
  const decoded = await new OfflineAudioContext(1, 1, ${RATE}).decodeAudioData(bytes);
  return JSON.stringify([...decoded.getChannelData(0)]);
};
// A page of its own making, which offers all that it has.
window.offerAll = async (url, token, configuration) => {
  const connection = window.connection = new RTCPeerConnection(configuration);
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
  // The first section is the one that is gathered for.
  if (configuration.bundlePolicy === 'max-bundle') connection.addTransceiver('video');
  connection.addTrack(microphone.getAudioTracks()[0], microphone);
  connection.addTransceiver('video');
  connection.createDataChannel('more');
  await connection.setLocalDescription();
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/sdp' };
  const answer = await fetch(url, { method: 'POST', headers, body: connection.localDescription.sdp });
  await connection.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
  return answer.headers.get('location').split('/').pop();
};
window.ready = true;
</script>`;

describe.skipIf(!firefoxUsable)('Firefox calls in', () => {
  let platform: Platform;
  let app: Credentials;
  let firefox: Firefox;
  const receiver = new Receiver();
  const site = callSite((pathname) => {
    if (pathname === '/tone.wav') return new Response(toneWav(1000, 3));
    return pathname === '/browser.js' ? undefined : new Response(PAGE, { headers: { 'content-type': 'text/html' } });
  });

  beforeAll(async () => {
    const listen = { WEBRTC_LISTEN: `${hostAddress}:${await freePort()}` };
    [platform, firefox] = await Promise.all([Platform.start(listen), Firefox.launch()]);
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await firefox.goto(`http://127.0.0.1:${site.port}/`);
    await firefox.until('window.ready === true');
  }, 90_000);

  afterAll(async () => {
    await firefox?.close();
    await platform?.stop();
    await receiver.stop();
    await site.stop(true);
  }, 20_000);

  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
  const start = async (): Promise<string> => {
    const { url, token } = tokenOf(await api('POST', '/v1/webrtc-tokens', { caller_id: NUMBER }));
    const uuid = String(await firefox.evaluate(`start(${JSON.stringify(url)}, ${JSON.stringify(token)})`));
    await receiver.event('session.created', uuid);
    await api('POST', `/v1/sessions/${uuid}/answer`, {});
    await receiver.event('session.answered', uuid);
    return uuid;
  };
  /** Listens, a moment at a time, until there is the tone that is played. */
  const hearsTone = async () => {
    for (let moment = 0; moment < 20; moment++) {
      const heard = Float32Array.from(JSON.parse(String(await firefox.evaluate('hear()'))));
      if (purity(heard.slice(-RATE / 5), 1000, RATE) > 0.9) return;
    }
    throw new Error('Firefox does not hear the tone');
  };

  test('hears a tone, is recorded, presses a key, holds, changes its way, and hangs up', async () => {
    const uuid = await start();
    const made = await api('POST', `/v1/sessions/${uuid}/recordings`, { direction: 'both', channels: 'mono' });
    await firefox.evaluate(`window.sent = 0; setInterval(async () => {
      for (const each of (await call.connection.getStats()).values()) if (each.type === 'outbound-rtp') sent = each.packetsSent;
    }, 50)`);
    await firefox.until('sent > 100');
    // The platform chooses the suite that costs least among those that Firefox offers.
    const suite = `call.connection.getStats().then((all) => [...all.values()].find((each) => each.srtpCipher)?.srtpCipher)`;
    expect(await firefox.evaluate(suite)).toBe('SRTP_AEAD_AES_128_GCM');
    await api('POST', `/v1/sessions/${uuid}/recordings/${made.body.recording_uuid}/stop`, {});
    const { pull_url: recording } = (await receiver.event('recording.ended', uuid)).body;
    const wav = new DataView(await (await fetch(String(recording))).arrayBuffer());
    const rate = wav.getUint32(24, true);
    const samples = Float32Array.from({ length: (wav.byteLength - 44) / 2 }, (_, at) => wav.getInt16(44 + 2 * at, true));
    expect(purity(samples.slice(-rate / 5), MICROPHONE_HZ, rate)).toBeGreaterThan(0.9);

    const urls = [`http://127.0.0.1:${site.port}/tone.wav`];
    await api('POST', `/v1/sessions/${uuid}/playback/play`, { type: 'files', urls, loop: 10 });
    await hearsTone();
    await firefox.evaluate(`call.sendDigits('5')`);
    expect((await receiver.event('dtmf.received', uuid)).body).toMatchObject({ digit: '5', method: 'rfc4733' });
    await firefox.evaluate('call.hold(true)');
    expect((await receiver.event('session.held', uuid)).body).toMatchObject({ by: 'far_end' });
    await firefox.evaluate('call.hold(false)');
    expect((await receiver.event('session.resumed', uuid)).body).toMatchObject({ by: 'far_end' });

    const name = '/^a=ice-ufrag:.*$/m.exec(call.connection.currentRemoteDescription.sdp)[0]';
    const before = await firefox.evaluate(name);
    await firefox.evaluate('call.reconnect()');
    expect(await firefox.evaluate(name)).not.toBe(before);
    await firefox.until(`['connected', 'completed'].includes(call.connection.iceConnectionState)`);
    await hearsTone();

    await firefox.evaluate('call.hangUp()');
    const ended = await receiver.event('session.ended', uuid);
    expect(ended.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'caller' });
    expect(ended.body.quality).toMatchObject({ codec: 'opus' });
  }, 40_000);

  for (const [what, configuration] of [
    ['refuses the video and the data that it offers too', {}],
    ['has its audio in the transport of its video', { bundlePolicy: 'max-bundle' }],
  ] as const)
    test(`takes the answer that ${what}`, async () => {
      const { url, token } = tokenOf(await api('POST', '/v1/webrtc-tokens', { caller_id: NUMBER }));
      const given = [url, token, configuration].map((each) => JSON.stringify(each)).join();
      const uuid = String(await firefox.evaluate(`offerAll(${given})`));
      await receiver.event('session.created', uuid);
      await api('POST', `/v1/sessions/${uuid}/answer`, {});
      await firefox.until(`connection.connectionState === 'connected'`);
      await receiver.event('session.answered', uuid); // the platform may know a moment later
      await api('DELETE', `/v1/sessions/${uuid}`);
      expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true });
    }, 30_000);

  test('is told when the application hangs up', async () => {
    const uuid = await start();
    await api('DELETE', `/v1/sessions/${uuid}`);
    await firefox.until('over');
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true, hangup_by: 'callee' });
  }, 30_000);
});
