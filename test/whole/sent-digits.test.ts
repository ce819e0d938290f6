/**
 * Digits that the application sends, as the far end receives them: telephone-events where they were agreed, else tones.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';

describe('digits that are sent', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();
  const api = (path: string, body?: unknown) => platform.api(app, 'POST', path, body);

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    peer = await RawPeer.carrierOf(platform);
  }, 60_000);
  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
  });

  test('reach the far end as telephone-events: each key with a growing duration, its end three times, in order', async () => {
    const ear = await RtpPeer.open();
    const body = sdp(`m=audio ${ear.port} RTP/AVP 0 96`, 'a=rtpmap:96 telephone-event/8000');
    peer.send(peer.request('INVITE', { id: 'events', body }));
    const { body: created } = await receiver.event('session.created');
    const uuid = String(created.session_uuid);
    expect((await api(`/v1/sessions/${uuid}/dtmf/send`, { digits: '1' })).status).toBe(409);
    await api(`/v1/sessions/${uuid}/answer`);
    const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
    peer.send(peer.request('ACK', { id: 'events', to }));
    await receiver.event('session.answered', uuid);
    for (const bad of [{ digits: '' }, { digits: '1x' }, { digits: '1'.repeat(65) }, { digits: '1', gap_ms: 39 }, {}])
      expect((await api(`/v1/sessions/${uuid}/dtmf/send`, bad)).status).toBe(400);
    const asked = await api(`/v1/sessions/${uuid}/dtmf/send`, { digits: '1w#D', duration_ms: 50, gap_ms: 60 });
    expect(asked.status).toBe(202);
    const sent = await receiver.event('dtmf.sent', uuid);
    expect(sent.body).toMatchObject({ operation_uuid: asked.body.operation_uuid, digits: '1w#D', status: 'completed' });

    const events = ear.packets.filter(({ payloadType }) => payloadType === 96);
    const keys = Map.groupBy(events, ({ timestamp }) => timestamp);
    expect([...keys.values()].map(([first]) => first?.payload[0])).toEqual([1, 11, 15]);
    for (const packets of keys.values()) {
      const durations = packets.map(({ payload }) => ((payload[2] ?? 0) << 8) | (payload[3] ?? 0));
      expect(durations).toEqual([160, 320, 400, 400, 400]);
      expect(packets.map(({ payload }) => (payload[1] ?? 0) >> 7)).toEqual([0, 0, 1, 1, 1]);
      expect(packets.map(({ marker }) => marker)).toEqual([true, false, false, false, false]);
    }
    const sequences = ear.packets.map(({ sequence }) => sequence);
    for (const [i, each] of sequences.slice(1).entries()) expect((each - (sequences[i] ?? 0)) & 0xffff).toBe(1);
    peer.send(peer.request('BYE', { id: 'events', to, cseq: 2 }));
    await receiver.event('session.ended', uuid);
    ear.close();
  }, 40_000);

  test('are two loud tones in the audio where no events were agreed; a dial sends some after its answer, the end of the call stops the rest', async () => {
    const ear = await RtpPeer.open();
    const order = { from: NUMBER, to: '+15550100', ring_timeout_sec: 30, send_digits: '5' };
    const { body } = await api('/v1/sessions:dial', order);
    const uuid = String(body.session_uuid);
    peer.respond(await peer.until(/^INVITE /), '200 OK', { body: sdp(`m=audio ${ear.port} RTP/AVP 0`) });
    const sent = await receiver.event('dtmf.sent', uuid);
    expect(sent.body).toMatchObject({ operation_uuid: body.operation_uuid, digits: '5', status: 'completed' });
    // 100 ms of two tones: a twentieth of the packets before it are that loud.
    const loud = ear.packets.filter(({ payload }) => payload.some((octet) => (octet & 0x70) < 0x20));
    expect(loud.length).toBeGreaterThanOrEqual(5);
    expect(loud.length).toBeLessThanOrEqual(6);
    expect(new Set(loud.map(({ payloadType }) => payloadType))).toEqual(new Set([0]));
    await api(`/v1/sessions/${uuid}/dtmf/send`, { digits: '123456789', duration_ms: 1000 });
    await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
    peer.respond(await peer.until(/^BYE /), '200 OK');
    await receiver.event('session.ended', uuid);
    const stopped = receiver.of(uuid).filter(({ event }) => event === 'dtmf.sent')[1];
    expect(stopped?.body).toMatchObject({ digits: '123456789', status: 'stopped' });
    ear.close();
  }, 40_000);
});
