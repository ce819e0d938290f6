/** The calls of a trunk that is edited or deleted while they are up. The far end is written by hand. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AUDIO, bodyOf, field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { eventually } from '../cluster/harness.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';

describe('a trunk', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();
  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    peer = await RawPeer.udp(platform.sipUdpPort);
  }, 60_000);
  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
  });

  const changes = {
    'edited to another address, other ranges and no application': (): Promise<{ status: number }> =>
      platform.operator('PUT', '/trunks/carrier', {
        uri: 'sip:192.0.2.1',
        inbound_cidrs: ['192.0.2.0/24'],
        codecs: ['G722'],
        max_channels: 1,
        apps: [],
      }),
    deleted: (): Promise<{ status: number }> => platform.operator('DELETE', '/trunks/carrier'),
  };

  test('that was refused by its registrar is registered at once when it is set again as it was', async () => {
    const registrar = await RawPeer.udp(platform.sipUdpPort);
    const settings = { uri: `sip:127.0.0.1:${registrar.port}`, inbound_cidrs: [], username: 'u', password: 'p', register: true };
    const set = async () => expect((await platform.operator('PUT', '/trunks/registered', settings)).status).toBe(204);
    try {
      await set();
      registrar.respond(await registrar.until(/^REGISTER /), '403 Forbidden');
      const trunk = async () => JSON.stringify((await platform.operator('GET', '/trunks/registered')).body);
      await eventually(async () => (await trunk()).includes('"register_sip_status":403'), 'the refusal');
      await set();
      expect(field(await registrar.until(/^REGISTER /), 'CSeq')).toBe('2 REGISTER');
    } finally {
      registrar.close();
      await platform.operator('DELETE', '/trunks/registered');
    }
  });

  for (const [how, change] of Object.entries(changes)) {
    test(`that is ${how} leaves its live calls alone, both ways, and takes no new ones`, async () => {
      await platform.trunk(`127.0.0.1:${peer.port}`);
      peer.heard.splice(0);
      const ear = await RtpPeer.open();
      const audio = `m=audio ${ear.port} RTP/AVP 0`;
      const id = `in ${how}`.replaceAll(/\W/g, '');
      peer.send(peer.request('INVITE', { id, body: sdp(audio) }));
      const created = () => receiver.events.findLast(({ event }) => event === 'session.created')?.body;
      await receiver.until(() => JSON.stringify(created() ?? {}).includes(id), 'session.created');
      const inbound = String(created()?.session_uuid);
      await platform.api(app, 'POST', `/v1/sessions/${inbound}/answer`, {});
      const to = field(await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 1 INVITE/), 'To');
      peer.send(peer.request('ACK', { id, to }));
      await receiver.event('session.answered', inbound);
      const dialled = await platform.api(app, 'POST', '/v1/sessions:dial', {
        from: NUMBER,
        to: '+15550100',
        ring_timeout_sec: 30,
      });
      const outbound = String(dialled.body.session_uuid);
      const invite = await peer.until(/^INVITE /);
      peer.respond(invite, '200 OK', { body: sdp('m=audio 6000 RTP/AVP 0') });
      await receiver.event('session.answered', outbound);
      await peer.until(/^ACK /);

      expect((await change()).status).toBe(204);

      // What is said still comes, and the far end may still change its call.
      const heard = ear.packets.length;
      await ear.until(() => ear.packets.length > heard + 10, 'audio after the change');
      peer.send(peer.request('INVITE', { id, to, cseq: 2, body: sdp(audio, 'a=sendonly') }));
      await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 2 INVITE/);
      peer.send(peer.request('ACK', { id, to, cseq: 2 }));
      expect((await receiver.event('session.held', inbound)).body).toMatchObject({ by: 'far_end' });
      // So may we.
      expect((await platform.api(app, 'POST', `/v1/sessions/${outbound}/hold`, {})).status).toBe(202);
      const held = await peer.until(/^INVITE [\s\S]*a=sendonly/);
      expect([field(held, 'Call-ID'), bodyOf(held).includes('m=audio')]).toEqual([field(invite, 'Call-ID'), true]);
      peer.respond(held, '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
      expect((await receiver.event('session.held', outbound)).body).toMatchObject({ by: 'application' });

      // New calls are another matter.
      peer.send(peer.request('INVITE', { id: `new${id}`, body: sdp() }));
      await peer.until(new RegExp(`^SIP/2.0 403[\\s\\S]*Call-ID: new${id}`));
      const refused = await platform.api(app, 'POST', '/v1/sessions:dial', {
        from: NUMBER,
        to: '+15550100',
        ring_timeout_sec: 30,
      });
      expect(refused.status).toBe(503);

      peer.send(peer.request('BYE', { id, to, cseq: 3 }));
      expect((await receiver.event('session.ended', inbound)).body).toMatchObject({
        hangup_cause: 'completed',
        hangup_by: 'caller',
      });
      await platform.api(app, 'DELETE', `/v1/sessions/${outbound}`);
      peer.respond(await peer.until(/^BYE /), '200 OK');
      expect((await receiver.event('session.ended', outbound)).body).toMatchObject({
        hangup_cause: 'completed',
        hangup_by: 'caller',
      });
      ear.close();
    }, 40_000);
  }
});
