/** Kamailio as the public edge of a company: telephones register through it, call, and are called by their Path. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asUser } from '../carrier/device-peer.ts';
import { RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { certificate, Kamailio, kamailioInstalled } from '../support/kamailio.ts';
import { Linphone, linphoneInstalled } from '../support/linphone.ts';
import { PhoneCalls } from './phone-calls.ts';

const PASSWORD = 'open-sesame';
/** The address of the platform, by which the proxy tells what comes from it. */
const PLATFORM = '127.0.0.20';
/** A Contact that nobody but the proxy reaches. */
const CONTACT = '<sip:phone@192.168.1.10:5060>';

describe.skipIf(!kamailioInstalled || !baresipInstalled).each(['udp', 'tcp', 'tls'] as const)(
  'behind Kamailio that writes Path, and speaks %s to the platform',
  (transport) => {
    const folder = mkdtempSync(join(tmpdir(), 'edge-'));
    let calls: PhoneCalls;
    let edge: Kamailio;
    const peers: RawPeer[] = [];
    const at = () => `127.0.0.1:${edge.port}`;

    beforeAll(async () => {
      for (const name of ['kamailio', 'platform']) certificate(folder, name);
      calls = await PhoneCalls.open({
        SIP_LISTEN: ['udp', 'tcp', 'tls'].map((each) => `${each}:${PLATFORM}:0`).join(),
        SIP_DEVICE_PROXIES: '127.0.0.1',
        SIP_TLS_CERT: join(folder, 'platform.crt'),
        SIP_TLS_KEY: join(folder, 'platform.key'),
      });
      const { platform } = calls;
      const here = { udp: platform.sipUdp, tcp: platform.sipTcp, tls: platform.sipTls }[transport];
      const place = `${PLATFORM}:${here.split(':')[1]}${transport === 'udp' ? '' : `;transport=${transport}`}`;
      edge = await Kamailio.open({ folder, config: 'edge.cfg', values: { platformHost: PLATFORM, platform: place } });
      for (const username of ['alice', 'bob', 'carol']) {
        const put = await platform.operator('PUT', `/apps/${calls.app.appUuid}/devices/${username}`, { password: PASSWORD });
        expect(put.status).toBe(204);
      }
    }, 60_000);
    afterEach(async () => {
      await calls.hangUpPhones();
      for (const peer of peers.splice(0)) peer.close();
    });
    afterAll(async () => {
      await edge?.stop();
      await calls?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function registered(username: string): Promise<Baresip> {
      const account = `;auth_user=${username};auth_pass=${PASSWORD};regint=600;answermode=auto`;
      const phone = await calls.phone({ address: `${username}@${at()}`, account });
      await phone.registered();
      return phone;
    }

    /** Resolves when a user is registered last by such a telephone. */
    async function isBound(username: string, agent: RegExp): Promise<void> {
      for (let looks = 0; looks < 500; looks++) {
        const { body } = await calls.platform.operator('GET', `/apps/${calls.app.appUuid}/devices`);
        const devices: readonly Readonly<Record<string, unknown>>[] = Array.isArray(body.devices) ? body.devices : [];
        if (devices.some((each) => each.username === username && agent.test(String(each.user_agent)))) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error(`${username} is not registered`);
    }

    async function dial(to: string): Promise<string> {
      const dialled = await calls.api('/v1/sessions:dial', { from: '+15550002', to, ring_timeout_sec: 20 });
      expect(dialled.status).toBe(202);
      return String(dialled.body.session_uuid);
    }

    async function called(phone: Baresip, to: string): Promise<string> {
      phone.events.splice(0);
      const uuid = await dial(to);
      await calls.receiver.event('session.answered', uuid);
      return uuid;
    }

    test('a telephone calls and is called, and both sides hear each other', async () => {
      const phone = await registered('alice');
      await calls.hearEachOther(await calls.callIn(phone, at()), phone);
      const uuid = await called(phone, 'sip:alice');
      await calls.hearEachOther(uuid, phone);
      const trace = await calls.kept(uuid, 'sip.txt');
      expect(trace).toMatch(/^Route: <sip:127\.0\.0\.1:[0-9]+;.*received=sip:127\.0\.0\.1:[0-9]+/m);
    }, 60_000);

    test('a telephone hangs up either call, and one that rings stops when the caller gives up', async () => {
      const phone = await registered('alice');
      expect(await calls.hangUpBy(phone, await calls.callIn(phone, at()))).toMatchObject({ hangup_cause: 'completed' });
      const uuid = await called(phone, 'sip:alice');
      expect(await calls.hangUpBy(phone, uuid)).toMatchObject({ hangup_cause: 'completed', hangup_by: 'callee' });
      const ringing = await raw('bob');
      const given = await dial('sip:bob');
      const invite = await ringing.until(/^INVITE/);
      ringing.respond(invite, '180 Ringing', { fields: `Contact: ${CONTACT}\r\n` });
      await calls.receiver.event('session.ringing_started', given);
      await calls.platform.api(calls.app, 'DELETE', `/v1/sessions/${given}`);
      ringing.respond(await ringing.until(/^CANCEL/), '200 OK');
      ringing.respond(invite, '487 Request Terminated');
      expect((await calls.receiver.event('session.ended', given)).body).toMatchObject({ hangup_cause: 'cancelled' });
    }, 60_000);

    test('a call of a telephone, and one to it, are held and resumed from either side', async () => {
      const phone = await registered('alice');
      for (const isOurs of [false, true]) {
        const uuid = isOurs ? await called(phone, 'sip:alice') : await calls.callIn(phone, at());
        if (isOurs) await phone.event('CALL_ESTABLISHED');
        phone.command('hold');
        expect((await calls.receiver.event('session.held', uuid)).body).toMatchObject({ by: 'far_end' });
        phone.command('resume');
        expect((await calls.receiver.event('session.resumed', uuid)).body).toMatchObject({ by: 'far_end' });
        const own = (name: string) => () =>
          calls.receiver.of(uuid).some(({ event, body }) => event === name && body.by === 'application');
        expect((await calls.api(`/v1/sessions/${uuid}/hold`)).status).toBe(202);
        await calls.receiver.until(own('session.held'), 'our hold');
        expect((await calls.api(`/v1/sessions/${uuid}/unhold`)).status).toBe(202);
        await calls.receiver.until(own('session.resumed'), 'our resume');
        await calls.hangUp(uuid, phone);
      }
    }, 60_000);

    test('a telephone that transfers its call is heard', async () => {
      const phone = await registered('alice');
      const uuid = await called(phone, 'sip:alice');
      await phone.event('CALL_ESTABLISHED');
      phone.command('transfer', `sip:carol@${at()}`);
      const asked = await calls.receiver.event('session.transfer.requested', uuid);
      expect(asked.body).toMatchObject({ target: expect.stringContaining('carol') });
      await calls.platform.api(calls.app, 'DELETE', `/v1/sessions/${uuid}`);
      await calls.receiver.event('session.ended', uuid);
    }, 60_000);

    /** A telephone with a private Contact, written by hand. */
    async function raw(username: string): Promise<RawPeer> {
      const peer = await RawPeer.udp(edge.port);
      peers.push(peer);
      const more = { contact: CONTACT, password: PASSWORD, id: `raw${peer.port}${username}` };
      const { response } = await asUser(peer, 'REGISTER', username, more);
      expect(response).toMatch(/^SIP\/2.0 200/);
      expect(response).toMatch(new RegExp(`^Path: <sip:.*received=sip:127\\.0\\.0\\.1:${peer.port}`, 'm'));
      return peer;
    }

    test('two telephones of two users with one private Contact are each called by their own', async () => {
      const phones = { bob: await raw('bob'), carol: await raw('carol') };
      for (const [username, phone] of Object.entries(phones)) {
        const uuid = await dial(`sip:${username}`);
        const invite = await phone.until(/^INVITE/);
        expect(invite).toStartWith('INVITE sip:phone@192.168.1.10:5060 SIP/2.0\r\n');
        const routes = [...invite.matchAll(/^Record-Route: ([^\r]*)/gim)].map(([line]) => `${line}\r\n`).join('');
        phone.respond(invite, '200 OK', { body: sdp(), fields: `Contact: ${CONTACT}\r\n${routes}` });
        await phone.until(/^ACK sip:phone@192.168.1.10:5060/);
        await calls.receiver.event('session.answered', uuid);
        await calls.platform.api(calls.app, 'DELETE', `/v1/sessions/${uuid}`);
        phone.respond(await phone.until(/^BYE sip:phone@192.168.1.10:5060/), '200 OK');
        await calls.receiver.event('session.ended', uuid);
      }
      expect([...phones.bob.heard, ...phones.carol.heard].filter((each) => /^(INVITE|BYE) /.test(each))).toEqual([]);
    }, 60_000);

    // The certificate of this Kamailio is of an authority that the platform does not know.
    if (transport !== 'tls')
      test('a telephone is called after its proxy has started anew, before it registers again', async () => {
        const phone = await registered('alice');
        await edge.stop();
        await edge.start();
        await calls.hearEachOther(await called(phone, 'sip:alice'), phone);
      }, 60_000);

    if (linphoneInstalled)
      test('linphone registers over it, is called, and hangs up', async () => {
        const phone = Linphone.start('tcp');
        try {
          phone.command(`register sip:carol@${at()} sip:${at()};transport=tcp ${PASSWORD}`);
          await isBound('carol', /linphone/i);
          const uuid = await dial('sip:carol');
          await phone.until(/Receiving new incoming call/i);
          phone.command('answer');
          await calls.receiver.event('session.answered', uuid);
          phone.command('terminate');
          expect((await calls.receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true, hangup_by: 'callee' });
        } finally {
          await phone.stop();
        }
      }, 60_000);
  },
);
