/**
 * baresip behind a real router that masquerades: its registration, its calls both ways, and a router that restarts. It
 * takes two minutes, so it is done with LONG_TESTS=1.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { Nat, natInstalled } from '../support/nat.ts';
import { PhoneCalls } from './phone-calls.ts';

const PASSWORD = 'open-sesame';
const isLong = process.env.LONG_TESTS === '1';

describe.skipIf(!isLong || !baresipInstalled || !natInstalled)('a telephone behind NAT', () => {
  let nat: Nat;
  let calls: PhoneCalls;
  /** The address at which the telephone finds the platform. */
  const platform = () => `${nat.here}:${calls.platform.sipUdpPort}`;

  beforeAll(async () => {
    nat = Nat.open();
    calls = await PhoneCalls.open({ SIP_LISTEN: `udp:${nat.here}:0,tcp:${nat.here}:0`, MEDIA_TIMEOUT_SEC: '10' });
    const put = await calls.platform.operator('PUT', `/apps/${calls.app.appUuid}/devices/alice`, { password: PASSWORD });
    expect(put.status).toBe(204);
  }, 60_000);
  afterEach(() => calls.hangUpPhones());
  afterAll(async () => {
    await calls?.close();
    nat?.[Symbol.dispose]();
  });

  async function registered(): Promise<Baresip> {
    const account = `;auth_user=alice;auth_pass=${PASSWORD};regint=600;answermode=auto`;
    const phone = await calls.phone({ address: `alice@${platform()}`, account, home: nat.home });
    await phone.registered();
    return phone;
  }

  /** The platform calls the telephone, which answers. Returns the Session. */
  async function called(phone: Baresip): Promise<string> {
    phone.events.splice(0);
    const { body } = await calls.api('/v1/sessions:dial', { from: '+15550002', to: 'sip:alice', ring_timeout_sec: 20 });
    const uuid = String(body.session_uuid);
    await calls.receiver.event('session.answered', uuid);
    return uuid;
  }

  test('calls and is called, both sides hear each other, and the round trip is known', async () => {
    const phone = await registered();
    await calls.hearEachOther(await calls.callIn(phone, platform()), phone);
    const uuid = await called(phone);
    // The telephone counts in whole milliseconds: by one of its reports the way there and back may take less than none.
    let roundTrip = 0;
    for (let reports = 0; reports < 4 && roundTrip === 0; reports++) roundTrip = Number((await calls.report(uuid)).round_trip_ms);
    expect(roundTrip).toBeGreaterThan(0);
    await calls.hearEachOther(uuid, phone);
  }, 90_000);

  test('is heard again 2 s after its router has restarted in a call, and can hang up', async () => {
    const phone = await registered();
    const uuid = await called(phone);
    await calls.report(uuid);
    nat.restart();
    const before = await calls.report(uuid);
    // The media timeout of 10 s would have ended the call.
    const after = await calls.report(uuid);
    expect(Number(after.packets_in) - Number(before.packets_in)).toBeGreaterThan(400);
    expect(await calls.hangUpBy(phone, uuid)).toMatchObject({ hangup_cause: 'completed', hangup_by: 'callee' });
  }, 90_000);

  test('is called after minutes in which its router would have forgotten it', async () => {
    nat.forgetAfter(30);
    const phone = await registered();
    const alive = Date.now() + 70_000;
    while (Date.now() < alive) await new Promise((resolve) => setTimeout(resolve, 1_000));
    await calls.hearEachOther(await called(phone), phone);
  }, 120_000);
});
