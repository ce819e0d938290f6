/** Whole calls with baresip: encrypted audio, transfers both ways, digits. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toneShare } from '../media/sound.ts';
import { Baresip, type BaresipOptions, baresipInstalled } from '../support/baresip.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';
const CALLEE = '+15550100';

describe.skipIf(!baresipInstalled)('a call with baresip', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const phones: Baresip[] = [];
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(toneWav(1000, 1.5), { headers: { 'content-type': 'audio/wav' } }),
  });

  beforeAll(async () => {
    platform = await Platform.start({ SIP_TRACE: 'full' });
    app = await platform.application(receiver.url, NUMBER);
  }, 60_000);
  afterEach(async () => {
    for (const phone of phones.splice(0)) await phone.stop();
  });
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  const api = (path: string, body: unknown = {}) => platform.api(app, 'POST', path, body);

  async function phone(options: BaresipOptions = {}): Promise<Baresip> {
    const started = await Baresip.start(options);
    phones.push(started);
    return started;
  }
  async function trunk(port: number, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const put = await platform.operator('PUT', '/trunks/carrier', {
      uri: `sip:127.0.0.1:${port}`,
      inbound_cidrs: ['127.0.0.0/8'],
      ...more,
    });
    expect([put.status, put.body]).toEqual([204, {}]);
  }
  const SECRET = { srtp: 'required', srtp_without_tls: true };

  /** What the operator may read of a call that has ended. */
  async function kept(uuid: string, what: 'timeline' | 'sip.txt'): Promise<string> {
    const token = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    return await (await fetch(`${platform.url}/operator/v1/sessions/${uuid}/${what}`, { headers })).text();
  }

  /** Calls the platform and is answered. */
  async function callIn(from: Baresip): Promise<string> {
    const before = receiver.count('session.created');
    from.command('dial', `sip:${NUMBER}@${platform.sipUdp}`);
    await receiver.until(() => receiver.count('session.created') > before, 'session.created');
    const created = receiver.events.filter(({ event }) => event === 'session.created').at(-1);
    const uuid = String(created?.body.session_uuid);
    expect((await api(`/v1/sessions/${uuid}/answer`)).status).toBe(202);
    await receiver.event('session.answered', uuid);
    await from.event('CALL_ESTABLISHED');
    return uuid;
  }
  async function callOut(): Promise<string> {
    const dialled = await api('/v1/sessions:dial', { from: NUMBER, to: CALLEE, ring_timeout_sec: 20 });
    const uuid = String(dialled.body.session_uuid);
    await receiver.event('session.answered', uuid);
    return uuid;
  }
  async function hangUp(uuid: string) {
    await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
    return (await receiver.event('session.ended', uuid)).body;
  }

  /** What each side hears of the other: 440 Hz from baresip, 1000 Hz from the platform. */
  async function hearEachOther(uuid: string, other: Baresip): Promise<void> {
    const recording = await api(`/v1/sessions/${uuid}/recordings`, { direction: 'both', channels: 'mono' });
    await receiver.event('recording.became_available', uuid);
    const play = { type: 'files', urls: [`http://127.0.0.1:${media.port}/tone.wav`] };
    expect((await api(`/v1/sessions/${uuid}/playback/play`, play)).status).toBe(202);
    await receiver.event('playback.ended', uuid);
    const ended = await hangUp(uuid);
    expect(ended).toMatchObject({ quality: { packets_lost: 0 } });
    expect(Number((ended.quality as Record<string, unknown>).packets_in)).toBeGreaterThan(60);
    const wav = readFileSync(join(platform.dataDir, 'recordings', `${recording.body.recording_uuid}.wav`)).subarray(44);
    const recorded = Array.from({ length: wav.length / 2 }, (_, i) => wav.readInt16LE(2 * i));
    expect(best(recorded, 440)).toBeGreaterThan(0.1);
    expect(best(recorded, 440, 1000)).toBeGreaterThan(0.97);
    await other.until(() => other.events.some(({ type }) => type === 'CALL_CLOSED'), 'CALL_CLOSED');
    expect(best(other.heard(), 1000)).toBeGreaterThan(0.98);
  }
  /** The share of these tones in the tenth of a second that has most of them. */
  const best = (samples: readonly number[], ...tones: readonly number[]): number => {
    let most = 0;
    for (let at = 0; at + 800 <= samples.length; at += 800) {
      const part = samples.slice(at, at + 800);
      if (part.some((sample) => Math.abs(sample) > 500))
        most = Math.max(
          most,
          tones.reduce((sum, hz) => sum + toneShare(part, hz), 0),
        );
    }
    return most;
  };

  test('A call from a phone that insists on encryption is heard on both sides, and its keys are kept nowhere', async () => {
    const caller = await phone({ account: ';mediaenc=srtp-mand' });
    await trunk(caller.port, SECRET);
    const uuid = await callIn(caller);
    await hearEachOther(uuid, caller);
    const trace = await kept(uuid, 'sip.txt');
    expect(trace).toContain('a=crypto (not kept)');
    for (const text of [trace, await kept(uuid, 'timeline'), platform.output]) expect(text).not.toContain('inline:');
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    // baresip sends its first RTCP packet before it has the keys, in clear.
    expect(metrics).toMatch(/^sidetone_srtp_packets_forged_total [01]$/m);
    expect(metrics).toMatch(/^sidetone_srtp_packets_replayed_total 0$/m);
  }, 30_000);

  test('A call to a phone that insists on encryption is heard on both sides', async () => {
    const callee = await phone({ account: ';mediaenc=srtp-mand;answermode=auto' });
    await trunk(callee.port, SECRET);
    await hearEachOther(await callOut(), callee);
  }, 30_000);

  test('A phone without encryption is called once more in clear where encryption is optional', async () => {
    const callee = await phone({ account: ';answermode=auto' });
    await trunk(callee.port, { srtp: 'optional', srtp_without_tls: true });
    const uuid = await callOut();
    await hearEachOther(uuid, callee);
    const trace = await kept(uuid, 'sip.txt');
    expect([trace.includes('m=audio'), trace.includes('RTP/SAVP'), trace.includes('RTP/AVP')]).toEqual([true, true, true]);
  }, 30_000);

  test('Digits reach a phone one by one, as its log tells', async () => {
    const callee = await phone({ account: ';answermode=auto' });
    await trunk(callee.port);
    const uuid = await callOut();
    const digits = '159*0#D';
    expect((await api(`/v1/sessions/${uuid}/dtmf/send`, { digits, duration_ms: 40, gap_ms: 40 })).status).toBe(202);
    await receiver.event('dtmf.sent', uuid);
    const told = () => callee.events.filter(({ type }) => type === 'CALL_DTMF_START').map(({ param }) => param);
    await callee.until(() => told().length >= digits.length, `digits: ${told().join('')}`);
    expect(told().join('')).toBe(digits);
    expect([...callee.log.matchAll(/received event: '(.)' \(end=1\)/g)].map(([, digit]) => digit).join('')).toBe(digits);
    await hangUp(uuid);
  }, 30_000);

  test('Digits of a phone are told one by one', async () => {
    const caller = await phone();
    await trunk(caller.port);
    const uuid = await callIn(caller);
    for (const digit of '48#') {
      const before = receiver.count('dtmf.received');
      caller.command('sndcode', digit);
      await receiver.until(() => receiver.count('dtmf.received') > before, `the digit ${digit}`);
    }
    const told = receiver.of(uuid).filter(({ event }) => event === 'dtmf.received');
    expect(told.map(({ body }) => body.digit).join('')).toBe('48#');
    await hangUp(uuid);
  }, 30_000);

  test('A REFER of a phone is told with its target, and closed when the call ends', async () => {
    const caller = await phone();
    await trunk(caller.port);
    const uuid = await callIn(caller);
    caller.command('transfer', 'sip:+15550111@127.0.0.1');
    const asked = await receiver.event('session.transfer.requested', uuid);
    expect(String(asked.body.target)).toContain('sip:+15550111@127.0.0.1');
    await hangUp(uuid);
    await caller.event('CALL_CLOSED');
  }, 30_000);

  test('A phone follows a blind transfer to another phone, and the call is completed', async () => {
    const callee = await phone({ account: ';answermode=auto' });
    const other = await phone({ account: ';answermode=auto', hz: 700 });
    await trunk(callee.port);
    const uuid = await callOut();
    const transfer = await api(`/v1/sessions/${uuid}/transfer`, { to: other.uri, timeout_sec: 10 });
    expect(transfer.status).toBe(202);
    await other.event('CALL_ESTABLISHED');
    const completed = await receiver.event('session.transfer.completed', uuid);
    expect(completed.body).toMatchObject({ operation_uuid: transfer.body.operation_uuid });
    expect((await receiver.event('session.ended', uuid)).body).toMatchObject({ hangup_cause: 'completed' });
  }, 40_000);
});
