/** Every suite against baresip, whose SRTP is an implementation of its own (libre), and a new key within the call. */
import { afterAll, afterEach, beforeAll, describe, expect } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Negotiation } from '../../src/sdp/negotiation.ts';
import { SRTP_SUITES, type SrtpSuite } from '../../src/sdp/sdes.ts';
import { bodyOf, field, RawPeer } from '../carrier/raw-peer.ts';
import { type Call, Harness } from '../media/harness.ts';
import { tone, toneShare, wav } from '../media/sound.ts';
import { Baresip, baresipInstalled } from '../support/baresip.ts';
import { test } from '../support/real-time.ts';

describe.skipIf(!baresipInstalled)('an encrypted call with baresip', () => {
  let harness: Harness;
  const folder = mkdtempSync(join(tmpdir(), 'srtp-suites-'));
  const phones: Baresip[] = [];
  const peers: RawPeer[] = [];
  beforeAll(async () => {
    harness = await Harness.open();
    harness.files.set('/high.wav', wav(tone(1000, 20, 8000, 0.3), 8000));
  });
  afterEach(async () => {
    for (const peer of peers.splice(0)) peer.close();
    for (const phone of phones.splice(0)) await phone.stop();
  });
  afterAll(async () => {
    await harness.close();
    rmSync(folder, { recursive: true });
  });

  /** Offers a stream under one suite with fresh keys, and starts it as the answer says. */
  async function agree(peer: RawPeer, call: Call, suite: SrtpSuite, cseq: number, to?: string): Promise<string> {
    const srtp = { mode: 'required', suites: [suite], random: (bytes: number) => new Uint8Array(randomBytes(bytes)) } as const;
    const us = new Negotiation({ host: '127.0.0.1', port: call.leg.port, codecs: ['PCMU'], sessionId: cseq, srtp });
    const body = new TextDecoder().decode(us.offer());
    peer.send(peer.request('INVITE', { id: 'secret', number: '+15550100', cseq, body, ...(to === undefined ? {} : { to }) }));
    const ok = await peer.until(new RegExp(`^SIP/2.0 [2-6][\\s\\S]*CSeq: ${cseq} INVITE`));
    expect(ok).toStartWith('SIP/2.0 200');
    const agreed = us.acceptAnswer(new TextEncoder().encode(bodyOf(ok)));
    if ('refused' in agreed) throw new Error(agreed.why);
    expect(agreed.srtp?.suite).toBe(suite);
    call.leg.negotiate({ ...agreed, learnFrom: [] });
    peer.send(peer.request('ACK', { id: 'secret', number: '+15550100', cseq, to: field(ok, 'To') }));
    return field(ok, 'To');
  }

  /**
   * The share of a tone in the tenth of a second of these samples that has most of it. Under a wrong key it is noise,
   * of which a tone has under a tenth; a phone that is late leaves gaps.
   */
  function best(samples: readonly number[], hz: number): number {
    let most = 0;
    for (let at = 0; at + 800 <= samples.length; at += 800) {
      const part = samples.slice(at, at + 800);
      if (part.some((sample) => Math.abs(sample) > 500)) most = Math.max(most, toneShare(part, hz));
    }
    return most;
  }

  /** Waits for so many more packets. */
  async function packets(call: Call, more: number): Promise<number> {
    const { packetsReceived: before } = await call.leg.counters();
    for (let looks = 0; looks < 500; looks++) {
      const { packetsReceived } = await call.leg.counters();
      if (packetsReceived >= before + more) return packetsReceived;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`no packets: ${JSON.stringify(await call.leg.counters())}`);
  }

  for (const [i, suite] of SRTP_SUITES.entries()) {
    test(`is heard on both sides under ${suite}, also after a new key`, async () => {
      const phone = await Baresip.start({ account: ';mediaenc=srtp-mand;answermode=auto' });
      phones.push(phone);
      const peer = await RawPeer.udp(phone.port);
      peers.push(peer);
      await using call = await harness.call();
      const to = await agree(peer, call, suite, 1);
      const path = join(folder, `${i}.wav`);
      const recording = call.leg.record({ recordingUuid: 'r', path, includeGaps: true });
      await packets(call, 50);
      recording.stop();
      await call.notices.until(() => call.notices.of('recording.ended').length === 1);
      const pcm = readFileSync(path).subarray(44);
      const heard = Array.from({ length: Math.floor(pcm.length / 2) }, (_, at) => pcm.readInt16LE(2 * at));
      expect(best(heard, 440)).toBeGreaterThan(0.9);
      call.leg.play({ operationUuid: 'p', playlist: await harness.admitted('/high.wav'), loop: 1, volume: 100 });
      await packets(call, 25);

      const before = await call.leg.counters();
      await agree(peer, call, SRTP_SUITES[(i + 1) % SRTP_SUITES.length] ?? suite, 2, to);
      await packets(call, 25);
      const { packetsLost, srtpReplayed, srtpForged } = await call.leg.counters();
      expect({ packetsLost, srtpReplayed }).toEqual({ packetsLost: 0, srtpReplayed: 0 });
      // It sends its first RTCP packet in clear, and again when it has begun anew.
      expect(srtpForged - before.srtpForged).toBeLessThanOrEqual(2);
      peer.send(peer.request('BYE', { id: 'secret', number: '+15550100', cseq: 3, to }));
      await phone.event('CALL_CLOSED');
      expect(best(phone.heard(), 1000)).toBeGreaterThan(0.9);
    }, 30_000);
  }
});
