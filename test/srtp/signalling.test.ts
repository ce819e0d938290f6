/** How a trunk's `srtp` shows on the wire, and what the media plane is told. The far ends are written by hand. */
import { afterEach, describe, expect, test } from 'bun:test';
import type { TrunkSettings } from '../../src/database/trunk/trunk-settings.ts';
import type { RtpParameters } from '../../src/media/engine.ts';
import { TestCarrier, trunkTo } from '../carrier/harness.ts';
import { bodyOf, field, RawPeer, sdp } from '../carrier/raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});

/** A platform with one trunk, and its carrier over UDP. */
async function trunk(settings: TrunkSettings) {
  const carrier = await TestCarrier.open([]);
  carriers.push(carrier);
  carrier.onIncoming = ({ call }) => call.leg.answer();
  const peer = await RawPeer.udp(carrier.port('udp'));
  peers.push(peer);
  carrier.trunks.push(trunkTo(`sip:${peer.host}:${peer.port}`, { settings }));
  carrier.carrier.trunksChanged();
  return { carrier, peer };
}

const SECRET = { srtp: 'required', srtp_without_tls: true } as const;
const EITHER = { srtp: 'optional', srtp_without_tls: true } as const;
const base64 = (bytes: number, fill: number) => Buffer.alloc(bytes, fill).toString('base64');
const key = (fill: number, tag = 1, suite = 'AES_CM_128_HMAC_SHA1_80') => `a=crypto:${tag} ${suite} inline:${base64(30, fill)}`;
const secret = (...lines: string[]) => sdp('m=audio 6000 RTP/SAVP 0', ...lines);
const srtpOf = ({ media }: TestCarrier, at = -1): RtpParameters['srtp'] => media.negotiated.at(at)?.srtp;
/** The protocol of the audio stream and the suites that are offered for it. */
const offered = (message: string) => ({
  protocol: /^m=audio [0-9]+ (\S+)/m.exec(bodyOf(message))?.[1],
  suites: [...bodyOf(message).matchAll(/^a=crypto:[0-9]+ (\S+)/gm)].map(([, suite]) => suite),
});
/** The key that a message tells, as the media plane has it. */
const told = (message: string, tag = 1) =>
  new Uint8Array(Buffer.from(new RegExp(`^a=crypto:${tag} \\S+ inline:(\\S+)`, 'm').exec(message)?.[1] ?? '', 'base64'));

/** A call of the peer's; its final response. */
async function call(peer: RawPeer, body: string, more: { id?: string; cseq?: number; to?: string } = {}): Promise<string> {
  const { id = 'call', cseq = 1 } = more;
  peer.send(peer.request('INVITE', { ...more, id, body }));
  const final = await peer.until(new RegExp(`^SIP/2\\.0 [2-6][\\s\\S]*CSeq: ${cseq} INVITE`, 'i'));
  peer.send(peer.request('ACK', { id, cseq, to: field(final, 'To') }));
  return final;
}

describe('a call that comes in', () => {
  test('is encrypted with the keys of both sides where the trunk requires it, and 488 without a usable key', async () => {
    const { carrier, peer } = await trunk(SECRET);
    const answer = await call(peer, secret(key(1), key(2, 2)));
    expect(answer).toStartWith('SIP/2.0 200');
    expect(offered(answer)).toEqual({ protocol: 'RTP/SAVP', suites: ['AES_CM_128_HMAC_SHA1_80'] });
    expect(srtpOf(carrier)).toEqual({
      suite: 'AES_CM_128_HMAC_SHA1_80',
      sendKey: told(answer),
      receiveKey: new Uint8Array(30).fill(1),
    });
    for (const [i, body] of [sdp(), secret(), secret(`${key(1)}|2^20|1:4`)].entries())
      expect(await call(peer, body, { id: `refused${i}` })).toStartWith('SIP/2.0 488');
    expect(carrier.carrier.refusals()[0]?.reason).toContain('requires encrypted audio');
    expect(JSON.stringify(carrier.carrier.refusals())).not.toContain(base64(30, 1).slice(0, 20));
  });

  test('is taken encrypted or in clear where the trunk has srtp: optional', async () => {
    const { carrier, peer } = await trunk(EITHER);
    expect(offered(await call(peer, secret(key(1)), { id: 'a' })).suites).toHaveLength(1);
    expect(srtpOf(carrier)?.suite).toBe('AES_CM_128_HMAC_SHA1_80');
    expect(offered(await call(peer, sdp(), { id: 'b' }))).toEqual({ protocol: 'RTP/AVP', suites: [] });
    expect(srtpOf(carrier)).toBeUndefined();
  });

  test('gives no key away over UDP where the trunk does not permit it', async () => {
    const { carrier, peer } = await trunk({ srtp: 'required' });
    expect(await call(peer, secret(key(1)), { id: 'required' })).toStartWith('SIP/2.0 488');
    const optional = await trunk({ srtp: 'optional' });
    expect(await call(optional.peer, secret(key(1)), { id: 'secret' })).toStartWith('SIP/2.0 488');
    expect(offered(await call(optional.peer, sdp(), { id: 'clear' })).suites).toEqual([]);
    expect(optional.carrier.carrier.refusals()[0]?.remedy).toContain('srtp_without_tls');
    expect(carrier.media.opened).toBe(0);
  });

  test('without an offer is offered RTP/SAVP where the trunk requires it, else what may be answered in clear too', async () => {
    for (const [settings, protocol] of [
      [SECRET, 'RTP/SAVP'],
      [EITHER, 'RTP/AVP'],
    ] as const) {
      const { carrier, peer } = await trunk(settings);
      peer.send(peer.request('INVITE', { id: 'late' }));
      const offer = await peer.until(/^SIP\/2\.0 200/);
      expect(offered(offer)).toMatchObject({ protocol });
      const body = sdp(`m=audio 6000 ${protocol} 0`, key(5));
      peer.send(peer.request('ACK', { id: 'late', to: field(offer, 'To'), body }));
      for (let looks = 0; srtpOf(carrier) === undefined && looks < 1_000; looks++) await Bun.sleep(5);
      expect(srtpOf(carrier)).toMatchObject({ sendKey: told(offer), receiveKey: new Uint8Array(30).fill(5) });
    }
  });

  test('changes its key by re-INVITE: ours is changed with it, and the same key again changes nothing', async () => {
    const { carrier, peer } = await trunk(SECRET);
    const first = await call(peer, secret(key(1)));
    const to = field(first, 'To');
    const same = await call(peer, secret(key(1)), { cseq: 2, to });
    expect(told(same)).toEqual(told(first));
    const changed = await call(peer, secret(key(2)), { cseq: 3, to });
    expect(told(changed)).not.toEqual(told(first));
    expect(srtpOf(carrier)).toMatchObject({ sendKey: told(changed), receiveKey: new Uint8Array(30).fill(2) });
    expect(await call(peer, sdp(), { cseq: 4, to })).toStartWith('SIP/2.0 488');
    expect(srtpOf(carrier)).toMatchObject({ receiveKey: new Uint8Array(30).fill(2) });
  });
});

describe('a call that we place', () => {
  test('offers RTP/SAVP with every suite, and takes the one of the answer', async () => {
    const { carrier, peer } = await trunk(SECRET);
    const { leg, signals } = await carrier.dial();
    const invite = await peer.until(/^INVITE /);
    expect(offered(invite)).toEqual({
      protocol: 'RTP/SAVP',
      suites: ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32', 'AEAD_AES_128_GCM', 'AEAD_AES_256_GCM'],
    });
    peer.respond(invite, '200 OK', { body: secret(key(7, 2, 'AES_CM_128_HMAC_SHA1_32')) });
    await signals.until('leg.answered');
    expect(srtpOf(carrier)).toEqual({
      suite: 'AES_CM_128_HMAC_SHA1_32',
      sendKey: told(invite, 2),
      receiveKey: new Uint8Array(30).fill(7),
    });
    leg.hangup();
  });

  test('is placed once more in clear after 488 or 415 where the trunk has srtp: optional', async () => {
    for (const status of ['488 Not Acceptable Here', '415 Unsupported Media Type']) {
      const { carrier, peer } = await trunk(EITHER);
      const { leg, signals } = await carrier.dial();
      const invite = await peer.until(/^INVITE /);
      expect(offered(invite).protocol).toBe('RTP/SAVP');
      peer.respond(invite, status);
      const again = await peer.until(/^INVITE /);
      expect(offered(again)).toEqual({ protocol: 'RTP/AVP', suites: [] });
      expect(field(again, 'Call-ID')).not.toBe(field(invite, 'Call-ID'));
      peer.respond(again, '200 OK', { body: sdp() });
      await signals.until('leg.answered');
      expect(srtpOf(carrier)).toBeUndefined();
      expect(signals.types()).not.toContain('leg.ended');
      leg.hangup();
    }
  });

  test('ends after a second 488, after another status, and where the trunk requires encryption', async () => {
    const cases = [
      [EITHER, ['488 Not Acceptable Here', '488 Not Acceptable Here']],
      [EITHER, ['486 Busy Here']],
      [SECRET, ['488 Not Acceptable Here']],
    ] as const;
    for (const [settings, statuses] of cases) {
      const { carrier, peer } = await trunk(settings);
      const { signals } = await carrier.dial();
      for (const status of statuses) peer.respond(await peer.until(/^INVITE /), status);
      await signals.until('leg.ended');
      await carrier.idle();
      expect(peer.heard.filter((message) => message.startsWith('INVITE '))).toEqual([]);
    }
  });

  test('ends without a word to anyone where encryption is required and not possible', async () => {
    const { carrier, peer } = await trunk({ srtp: 'required' });
    const { signals } = await carrier.dial();
    expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'failed' } });
    expect(peer.heard).toEqual([]);
  });

  test('is hung up when the answer is in clear although encryption is required', async () => {
    const { carrier, peer } = await trunk(SECRET);
    const { signals } = await carrier.dial();
    peer.respond(await peer.until(/^INVITE /), '200 OK', { body: sdp() });
    expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'failed' } });
    peer.respond(await peer.until(/^BYE /), '200 OK');
    expect(carrier.media.negotiated).toEqual([]);
  });

  test('keeps its keys when it is held and resumed by us', async () => {
    const { carrier, peer } = await trunk(SECRET);
    const { leg, signals } = await carrier.dial();
    const invite = await peer.until(/^INVITE /);
    peer.respond(invite, '200 OK', { body: secret(key(7)) });
    await signals.until('leg.answered');
    leg.hold?.(true);
    const held = await peer.until(/^INVITE [\s\S]*a=sendonly/);
    expect(told(held)).toEqual(told(invite));
    peer.respond(held, '200 OK', { body: secret(key(7), 'a=recvonly') });
    await signals.until('leg.own_hold');
    expect(srtpOf(carrier)).toMatchObject({ sendKey: told(invite), receiveKey: new Uint8Array(30).fill(7) });
    leg.hangup();
  });
});
