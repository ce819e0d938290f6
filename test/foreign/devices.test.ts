/**
 * SIP devices that are not ours: baresip over UDP, and over TLS with SRTP; linphone over TCP, and over TLS with SRTP.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asUser } from '../carrier/device-peer.ts';
import { RawPeer } from '../carrier/raw-peer.ts';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { certificate } from '../support/kamailio.ts';
import { Linphone, linphoneInstalled } from '../support/linphone.ts';
import { bestPart, level } from '../support/room-call.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { PhoneCalls } from './phone-calls.ts';

const PASSWORD = 'open-sesame';
let calls: PhoneCalls;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'devices-'));
  certificate(folder, 'tls');
  calls = await PhoneCalls.open({
    SIP_LISTEN: 'udp:127.0.0.1:0,tcp:127.0.0.1:0,tls:127.0.0.1:0',
    SIP_TLS_CERT: join(folder, 'tls.crt'),
    SIP_TLS_KEY: join(folder, 'tls.key'),
  });
  for (const username of ['alice', 'bob', 'carol', 'dave', 'erin', 'frank']) {
    const put = await calls.platform.operator('PUT', `/apps/${calls.app.appUuid}/devices/${username}`, { password: PASSWORD });
    expect(put.status).toBe(204);
  }
}, 60_000);
afterEach(() => calls.hangUpPhones());
afterAll(async () => {
  await calls?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Resolves when the device user is registered, or no longer. */
async function until(username: string, isRegistered: boolean): Promise<Readonly<Record<string, unknown>>> {
  for (let looks = 0; looks < 500; looks++) {
    const device = (await devices()).find((each) => each.username === username);
    if (device !== undefined && (device.registered_until !== '') === isRegistered) return device;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${username} is ${isRegistered ? 'not' : 'still'} registered`);
}

async function devices(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { body } = await calls.platform.operator('GET', `/apps/${calls.app.appUuid}/devices`);
  return Array.isArray(body.devices) ? body.devices : [];
}

/** The platform calls a device user, who answers. Returns the Session. */
async function ring(to: string): Promise<string> {
  const dialled = await calls.api('/v1/sessions:dial', { from: '+15550002', to, ring_timeout_sec: 20 });
  expect(dialled.status).toBe(202);
  return String(dialled.body.session_uuid);
}

describe.skipIf(!baresipInstalled)('baresip as a device', () => {
  async function registered(username: string, transport: 'udp' | 'tls', more = ''): Promise<Baresip> {
    const host = transport === 'tls' ? calls.platform.sipTls : calls.platform.sipUdp;
    const account = `;auth_user=${username};auth_pass=${PASSWORD};regint=60;answermode=auto${more}`;
    const phone = await calls.phone({ address: `${username}@${host}`, transport, account });
    await phone.registered();
    return phone;
  }

  test('registers over UDP, calls its application and is called', async () => {
    const phone = await registered('alice', 'udp');
    expect((await devices())[0]).toMatchObject({ username: 'alice', user_agent: expect.stringContaining('baresip') });
    const uuid = await calls.callIn(phone);
    const created = calls.receiver.of(uuid).find(({ event }) => event === 'session.created');
    expect(created?.body).toMatchObject({ type: 'sip', did: '+15550002', sip: { device: 'alice', dialled: '+15550002' } });
    await calls.hearEachOther(uuid, phone);
    phone.events.splice(0);
    const called = await ring('sip:alice');
    await calls.receiver.event('session.answered', called);
    await calls.hearEachOther(called, phone);
  }, 40_000);

  test('registers over TLS, and its calls both ways are encrypted', async () => {
    const phone = await registered('carol', 'tls', ';mediaenc=srtp-mand');
    const uuid = await calls.callIn(phone, calls.platform.sipTls);
    await calls.hearEachOther(uuid, phone);
    phone.events.splice(0);
    const called = await ring('sip:carol');
    await calls.receiver.event('session.answered', called);
    await calls.hearEachOther(called, phone);
    for (const each of [uuid, called]) expect(await calls.kept(each, 'sip.txt')).toContain('RTP/SAVP');
  }, 40_000);

  test('that insists on encryption is reached beside another phone of its user, which is offered clear audio', async () => {
    const other = await RawPeer.udp(calls.platform.sipUdpPort, '127.0.0.8');
    const contact = `<sip:erin@127.0.0.8:${other.port}>`;
    expect((await asUser(other, 'REGISTER', 'erin', { contact, password: PASSWORD })).response).toMatch(/^SIP\/2.0 200/);
    const phone = await registered('erin', 'tls', ';mediaenc=srtp-mand');
    const called = await ring('sip:erin');
    const invite = await other.until(/^INVITE/);
    other.respond(invite, '180 Ringing');
    expect(invite).toContain(' RTP/AVP ');
    expect(invite).not.toContain('a=crypto');
    await calls.receiver.event('session.answered', called);
    other.respond(await other.until(/^CANCEL/), '200 OK');
    other.respond(invite, '487 Request Terminated');
    await calls.hearEachOther(called, phone);
    expect(await calls.kept(called, 'sip.txt')).toContain('RTP/SAVP');
    other.close();
  }, 40_000);

  test('that goes off line is not called any more', async () => {
    const phone = await registered('dave', 'udp');
    phone.command('quit');
    await until('dave', false);
    const ended = await calls.receiver.event('session.ended', await ring('sip:dave'));
    expect(ended.body).toMatchObject({ answered: false, hangup_cause: 'not_answered' });
  }, 30_000);
});

describe.skipIf(!linphoneInstalled)('linphone as a device', () => {
  test('registers over TCP, is called, and hangs up', async () => {
    const phone = Linphone.start('tcp');
    try {
      const host = calls.platform.sipTcp;
      phone.command(`register sip:bob@${host} sip:${host};transport=tcp ${PASSWORD}`);
      expect(await until('bob', true)).toMatchObject({ user_agent: expect.stringMatching(/linphone/i) });
      const called = await ring('sip:bob');
      await phone.until(/Receiving new incoming call/i);
      phone.command('answer');
      await calls.receiver.event('session.answered', called);
      phone.command('terminate');
      expect((await calls.receiver.event('session.ended', called)).body).toMatchObject({ answered: true, hangup_by: 'callee' });
    } finally {
      await phone.stop();
    }
  }, 40_000);

  test('registers over TLS, and insists on SRTP in its calls both ways', async () => {
    const phone = Linphone.start('tls');
    try {
      const host = calls.platform.sipTls;
      phone.command('soundcard use files');
      phone.command(`register sip:frank@${host} sip:${host};transport=tls ${PASSWORD}`);
      expect(await until('frank', true)).toMatchObject({ user_agent: expect.stringMatching(/linphone/i) });
      const called = await ring('sip:frank');
      await phone.until(/Receiving new incoming call/i);
      phone.command('answer');
      await calls.receiver.event('session.answered', called);
      await talks(phone, called);

      const before = new Set(calls.receiver.events);
      phone.command(`call sip:+15550002@${host};transport=tls`);
      const created = () => calls.receiver.events.find((each) => each.event === 'session.created' && !before.has(each));
      await calls.receiver.until(() => created() !== undefined, 'the call');
      const uuid = String(created()?.body.session_uuid);
      expect(created()?.body).toMatchObject({ type: 'sip', sip: { device: 'frank' } });
      expect((await calls.api(`/v1/sessions/${uuid}/answer`)).status).toBe(202);
      await calls.receiver.event('session.answered', uuid);
      await talks(phone, uuid);
    } finally {
      await phone.stop();
    }
  }, 40_000);

  /** The telephone says a tone, which is found in a recording of what was heard under the keys that were agreed on. */
  async function talks(phone: Linphone, uuid: string): Promise<void> {
    const wav = join(folder, 'tone.wav');
    writeFileSync(wav, toneWav(440, 20));
    phone.command(`play ${wav}`);
    let loudest = Number.NEGATIVE_INFINITY;
    // It begins to play when it finds the time.
    for (let tries = 0; tries < 10 && loudest < -20; tries++) loudest = level(bestPart(await recorded(uuid), [440], 4_000), 440);
    expect(loudest).toBeGreaterThan(-20);
    phone.command('terminate');
    expect((await calls.receiver.event('session.ended', uuid)).body).toMatchObject({ answered: true });
    expect(await calls.kept(uuid, 'sip.txt')).toContain('RTP/SAVP');
  }

  /** Records a call for a second. Returns its samples. */
  async function recorded(uuid: string): Promise<Float32Array> {
    const path = `/v1/sessions/${uuid}/recordings`;
    const made = await calls.api(path, { direction: 'both', channels: 'mono', include_gaps: true });
    expect(made.status).toBe(202);
    const of = (event: string) =>
      calls.receiver.of(uuid).find((each) => each.event === event && each.body.recording_uuid === made.body.recording_uuid);
    await calls.receiver.until(() => of('recording.became_available') !== undefined, 'the recording');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await calls.api(`${path}/${made.body.recording_uuid}/stop`)).status).toBe(202);
    await calls.receiver.until(() => of('recording.ended') !== undefined, 'its end');
    const wav = await (await fetch(String(of('recording.ended')?.body.pull_url))).arrayBuffer();
    return Float32Array.from(new Int16Array(wav.slice(44)), (sample) => sample / 32_768);
  }
});
