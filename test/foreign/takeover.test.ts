/** `kill -9` with CALL_TAKEOVER while baresip is in a call, over TCP and encrypted too: the call goes on. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { baresipInstalled } from '../support/baresip.ts';
import { PhoneCalls } from './phone-calls.ts';

describe.skipIf(!baresipInstalled)('A platform that is killed and starts again goes on with a call', () => {
  let calls: PhoneCalls;
  beforeAll(async () => {
    calls = await PhoneCalls.open({ CALL_TAKEOVER: 'on', ORPHAN_TIMEOUT_SEC: '8' });
  }, 60_000);
  afterEach(() => calls.hangUpPhones());
  afterAll(() => calls?.close());

  const SECRET = { srtp: 'required', srtp_without_tls: true };
  test.each([
    { what: 'in clear over UDP, that it was called by', isIncoming: true, transport: 'udp', account: '', terms: {} },
    {
      what: 'encrypted over TCP, that it placed',
      isIncoming: false,
      transport: 'tcp',
      account: ';mediaenc=srtp-mand',
      terms: SECRET,
    },
  ] as const)(
    '$what',
    async ({ isIncoming, transport, account, terms }) => {
      const phone = await calls.phone({ transport, account: `${account}${isIncoming ? '' : ';answermode=auto'}` });
      await calls.trunk(`sip:127.0.0.1:${phone.port};transport=${transport}`, terms);
      const uuid = isIncoming ? await calls.callIn(phone) : await calls.callOut(phone);
      await calls.platform.kill();
      await calls.platform.start();
      await calls.hearEachOther(uuid, phone);
    },
    60_000,
  );

  test('with a device over UDP', async () => {
    const PASSWORD = 'correct-horse-battery';
    const device = `/apps/${calls.app.appUuid}/devices/alice`;
    expect((await calls.platform.operator('PUT', device, { password: PASSWORD })).status).toBe(204);
    for (const isIncoming of [true, false]) {
      const account = `;auth_user=alice;auth_pass=${PASSWORD};regint=60;answermode=auto`;
      const phone = await calls.phone({ address: `alice@${calls.platform.sipUdp}`, account });
      await phone.registered();
      const uuid = isIncoming ? await calls.callIn(phone) : await calls.callOut(phone, 'sip:alice');
      await calls.platform.kill();
      await calls.platform.start();
      await calls.hearEachOther(uuid, phone);
      await calls.hangUpPhones();
    }
  }, 60_000);
});
