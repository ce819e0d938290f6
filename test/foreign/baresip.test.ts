/** Whole calls with baresip: encrypted audio, transfers both ways, digits. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Baresip, baresipInstalled } from '../support/baresip.ts';
import { PhoneCalls } from './phone-calls.ts';

describe.skipIf(!baresipInstalled)('a call with baresip', () => {
  let calls: PhoneCalls;
  beforeAll(async () => {
    calls = await PhoneCalls.open();
  }, 60_000);
  afterEach(() => calls.hangUpPhones());
  afterAll(() => calls?.close());

  /** A telephone that is the far end of the trunk. */
  async function phone(account = '', trunk: Readonly<Record<string, unknown>> = {}): Promise<Baresip> {
    const started = await calls.phone({ account });
    await calls.trunk(`sip:127.0.0.1:${started.port}`, trunk);
    return started;
  }
  const SECRET = { srtp: 'required', srtp_without_tls: true };

  test('A call from a phone that insists on encryption is heard on both sides, and its keys are kept nowhere', async () => {
    const caller = await phone(';mediaenc=srtp-mand', SECRET);
    const uuid = await calls.callIn(caller);
    await calls.hearEachOther(uuid, caller);
    const trace = await calls.kept(uuid, 'sip.txt');
    expect(trace).toContain('a=crypto (not kept)');
    for (const text of [trace, await calls.kept(uuid, 'timeline'), calls.platform.output]) expect(text).not.toContain('inline:');
    const metrics = await (await fetch(`${calls.platform.url}/metrics`)).text();
    // Until baresip has the keys it sends its RTCP packets in clear: the first one, on a busy machine a few.
    expect(metrics).toMatch(/^sidetone_srtp_packets_forged_total [0-5]$/m);
    expect(metrics).toMatch(/^sidetone_srtp_packets_replayed_total 0$/m);
  }, 30_000);

  test('A call to a phone that insists on encryption is heard on both sides', async () => {
    const callee = await phone(';mediaenc=srtp-mand;answermode=auto', SECRET);
    await calls.hearEachOther(await calls.callOut(callee), callee);
  }, 30_000);

  test('A phone with Opus alone is heard and hears, over a trunk that names opus', async () => {
    const caller = await calls.phone({ codec: 'opus' });
    await calls.trunk(`sip:127.0.0.1:${caller.port}`, { codecs: ['opus', 'PCMU'] });
    const uuid = await calls.callIn(caller);
    expect(await calls.kept(uuid, 'sip.txt')).toContain('opus/48000/2');
    const { quality } = await calls.hearEachOther(uuid, caller, 48_000);
    expect(quality).toMatchObject({ codec: 'opus' });
  }, 30_000);

  test('A phone without encryption is called once more in clear where encryption is optional', async () => {
    const callee = await phone(';answermode=auto', { ...SECRET, srtp: 'optional' });
    const uuid = await calls.callOut(callee);
    await calls.hearEachOther(uuid, callee);
    const trace = await calls.kept(uuid, 'sip.txt');
    expect([...trace.matchAll(/RTP\/S?AVP/g)].map(([protocol]) => protocol)).toEqual(['RTP/SAVP', 'RTP/AVP', 'RTP/AVP']);
  }, 30_000);

  test('Digits reach a phone one by one, as its log tells', async () => {
    const callee = await phone(';answermode=auto');
    const uuid = await calls.callOut(callee);
    const digits = '159*0#D';
    const send = { digits, duration_ms: 40, gap_ms: 40 };
    expect((await calls.api(`/v1/sessions/${uuid}/dtmf/send`, send)).status).toBe(202);
    await calls.receiver.event('dtmf.sent', uuid);
    const told = () => [...callee.log.matchAll(/received event: '(.)' \(end=1\)/g)].map(([, digit]) => digit).join('');
    await callee.until(() => told().length >= digits.length, `digits: ${told()}`);
    expect(told()).toBe(digits);
    await calls.hangUp(uuid, callee);
  }, 30_000);

  test('Digits of a phone are told one by one', async () => {
    const caller = await phone();
    const uuid = await calls.callIn(caller);
    for (const digit of '48#') {
      const before = calls.receiver.count('dtmf.received');
      caller.command('sndcode', digit);
      await calls.receiver.until(() => calls.receiver.count('dtmf.received') > before, `the digit ${digit}`);
    }
    const told = calls.receiver.of(uuid).filter(({ event }) => event === 'dtmf.received');
    expect(told.map(({ body }) => body.digit).join('')).toBe('48#');
    await calls.hangUp(uuid, caller);
  }, 30_000);

  test('A REFER of a phone is told with its target, and closed when the call ends', async () => {
    const caller = await phone();
    const uuid = await calls.callIn(caller);
    caller.command('transfer', 'sip:+15550111@127.0.0.1');
    const asked = await calls.receiver.event('session.transfer.requested', uuid);
    expect(String(asked.body.target)).toContain('sip:+15550111@127.0.0.1');
    await calls.hangUp(uuid, caller);
  }, 30_000);

  test('A phone follows a blind transfer to another phone, and the call is completed', async () => {
    const callee = await phone(';answermode=auto');
    const other = await calls.phone({ account: ';answermode=auto' });
    const uuid = await calls.callOut(callee);
    const transfer = await calls.api(`/v1/sessions/${uuid}/transfer`, { to: other.uri, timeout_sec: 10 });
    expect(transfer.status).toBe(202);
    await other.event('CALL_ESTABLISHED');
    const completed = await calls.receiver.event('session.transfer.completed', uuid);
    expect(completed.body).toMatchObject({ operation_uuid: transfer.body.operation_uuid });
    // This phone does not hang up, so the platform does, ten seconds later.
    expect((await calls.receiver.event('session.ended', uuid)).body).toMatchObject({ hangup_cause: 'completed' });
  }, 60_000);
});
