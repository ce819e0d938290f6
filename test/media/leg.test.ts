import { afterAll, beforeAll, describe, expect } from 'bun:test';
import type { RtpLeg } from '../../src/media/engine.ts';
import { test } from '../support/real-time.ts';
import { Harness } from './harness.ts';
import { Peer } from './peer.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open({ mediaTimeoutSec: 1 });
});
afterAll(() => harness.close());

const audio = new Uint8Array(160).fill(0xff);

/** One packet of a key (RFC 4733 §2.3). */
function key(peer: Peer, leg: RtpLeg, event: number, timestamp: number, duration: number, end: boolean): void {
  peer.send(leg, 101, timestamp, new Uint8Array([event, end ? 0x8a : 0x0a, duration >> 8, duration & 0xff]));
}

/** A whole key press of 100 ms, its end sent three times; `lose` drops packets by their place. */
function press(peer: Peer, leg: RtpLeg, event: number, timestamp: number, lose: readonly number[] = []): void {
  for (let i = 0; i < 8; i++) {
    if (lose.includes(i)) peer.sequence++;
    else key(peer, leg, event, timestamp, Math.min(i + 1, 5) * 160, i >= 5);
  }
}

describe('keys by telephone-event', () => {
  test('are one digit each, whatever is doubled, late or lost', async () => {
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    press(peer, leg, 1, 1000);
    press(peer, leg, 2, 3000, [0, 1, 2]);
    key(peer, leg, 1, 1000, 800, true); // the first key's end, once more, after the second key
    press(peer, leg, 2, 5000, [5, 6]);
    press(peer, leg, 10, 7000, [5, 6, 7]); // no end at all: complete when the next begins
    press(peer, leg, 11, 9000);
    press(peer, leg, 15, 11_000, [5, 6, 7]); // and the last when nothing more comes
    await notices.until(() => notices.of('digit').length === 6);
    expect(notices.of('digit').map(({ digit, durationMs, method }) => `${digit} ${durationMs} ${method}`)).toEqual([
      '1 100 rfc4733',
      '2 100 rfc4733',
      '2 100 rfc4733',
      '* 100 rfc4733',
      '# 100 rfc4733',
      'D 100 rfc4733',
    ]);
    expect(notices.of('media.started').length).toBe(1);
  });

  test('are nothing where telephone-event was not agreed', async () => {
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters({ telephoneEventPayloadType: undefined }));
    await leg.counters(); // the plane has it
    press(peer, leg, 1, 1000);
    peer.send(leg, 0, 5000, audio);
    await notices.until(() => notices.of('media.started').length === 1);
    expect(notices.of('digit')).toEqual([]);
    expect((await leg.counters()).packetsReceived).toBe(1);
  });
});

describe('audio of another payload type', () => {
  test('is told once it has come three times in a row, from who is listened to, and is heard after a new agreement', async () => {
    await using call = await harness.call();
    const stranger = await Peer.open();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    for (const type of [8, 8, 0, 8, 8, 9, 8, 0]) peer.send(leg, type, 160, audio);
    for (let i = 0; i < 10; i++) stranger.send(leg, 9, i * 160, audio);
    for (let i = 0; i < 5; i++) peer.send(leg, 8, i * 160, audio);
    await notices.until(() => notices.of('payload.changed').length > 0);
    leg.negotiate(peer.parameters({ codec: 'PCMA' }));
    const before = (await leg.counters()).packetsReceived;
    expect(notices.of('payload.changed')).toEqual([{ type: 'payload.changed', payloadType: 8 }]);
    for (let i = 5; i < 9; i++) peer.send(leg, 8, i * 160, audio);
    await peer.caughtUp();
    const ticks = peer.heard.length;
    await peer.until(() => peer.heard.length > ticks + 3);
    expect((await leg.counters()).packetsReceived).toBe(before + 4);
    await stranger.close();
  });
});

describe('the address a leg talks to', () => {
  test('is another than in SDP once it has sent two packets in a row, when it is the signalling address and SDP names one that is silent', async () => {
    await using call = await harness.call();
    const { peer: behindNat, leg, notices } = call;
    const told = await Peer.open();
    leg.negotiate(told.parameters({ learnFrom: ['127.0.0.1'] }));
    await told.until(() => told.heard.length > 2);
    for (let i = 0; i < 4; i++) behindNat.send(leg, 0, i * 160, audio);
    await behindNat.until(() => behindNat.heard.length > 3);
    expect(notices.of('media.started').length).toBe(1);
    expect((await leg.counters()).packetsReceived).toBe(3); // the first packet is only counted, the second one proves the source
    await told.close();
  });

  test('is taken back by the address in SDP with its first packet, and a source within the ranges waits for two seconds of silence', async () => {
    await using call = await harness.call();
    const { peer: caller, leg } = call;
    const other = await Peer.open();
    leg.negotiate(caller.parameters({ learnFrom: ['127.0.0.0/8'] }));
    await leg.counters(); // the plane has it
    for (let i = 0; i < 4; i++) other.send(leg, 0, i * 160, audio);
    await other.until(() => other.heard.length > 3);
    const already = caller.heard.length;
    caller.send(leg, 0, 0, audio);
    await caller.until(() => caller.heard.length > already + 3);
    const silentFrom = performance.now();
    const stolen = other.heard.length;
    for (let i = 4; performance.now() - silentFrom < 1_500; i++) {
      other.send(leg, 0, i * 160, audio);
      await caller.until(() => caller.heard.length > already + i);
    }
    expect(other.heard.length - stolen).toBeLessThan(3); // what was on its way
    for (let i = 400; other.heard.length < stolen + 10; i++) {
      other.send(leg, 0, i * 160, audio);
      const heard = caller.heard.length + other.heard.length;
      const more = () => caller.heard.length + other.heard.length > heard;
      await Promise.race([caller.until(more), other.until(more)]);
    }
    expect(performance.now() - silentFrom).toBeGreaterThan(1_950);
    await other.close();
  });

  test('is never that of a stranger: one who is first, floods and goes on while the caller is silent hears nothing', async () => {
    await using call = await harness.call();
    const { peer: caller, leg, notices } = call;
    const stranger = await Peer.open();
    stranger.ssrc = 666;
    leg.negotiate(caller.parameters({ learnFrom: ['192.0.2.1', '198.51.100.0/24', '2001:db8::/32', 'no address'] }));
    await leg.counters(); // the plane has it
    for (let i = 0; i < 50; i++) stranger.send(leg, 0, i * 160, audio);
    await caller.until(() => caller.heard.length > 5);
    caller.send(leg, 0, 0, audio);
    await notices.until(() => notices.of('media.started').length === 1);
    const from = caller.heard.length;
    for (let i = 50; caller.heard.length < from + 110; i++) {
      stranger.send(leg, 0, i * 160, audio);
      const heard = caller.heard.length;
      await caller.until(() => caller.heard.length > heard);
    }
    expect(stranger.heard.length + stranger.reports.length).toBe(0);
    expect((await leg.counters()).packetsReceived).toBe(1);
    await stranger.close();
  });

  test('is learnt from nobody during hold', async () => {
    await using call = await harness.call();
    const { peer: behindNat, leg } = call;
    const told = await Peer.open();
    leg.negotiate(told.parameters({ learnFrom: ['127.0.0.1'], held: true }));
    await leg.counters(); // the plane has it
    for (let i = 0; i < 20; i++) behindNat.send(leg, 0, i * 160, audio);
    await told.until(() => told.heard.length > 5);
    expect(behindNat.heard.length).toBe(0);
    leg.negotiate(told.parameters({ learnFrom: ['127.0.0.1'] }));
    await leg.counters(); // the plane has it
    for (let i = 20; i < 23; i++) behindNat.send(leg, 0, i * 160, audio);
    await behindNat.until(() => behindNat.heard.length > 3);
    await told.close();
  });

  for (const remoteHost of ['no.address.example', 'fe80::1%eth0'])
    test(`may be unknown (${remoteHost}): nothing is sent until the far end is heard`, async () => {
      await using call = await harness.call();
      const { peer, leg, notices } = call;
      leg.negotiate(
        peer.parameters({
          remoteHost,
          remotePort: 70_000,
          remoteRtcpPort: 0,
          ptimeMs: Number.NaN,
          learnFrom: ['127.0.0.1'],
        }),
      );
      await leg.counters(); // the plane has it
      for (let i = 0; i < 3; i++) peer.send(leg, 0, i * 160, audio);
      await notices.until(() => notices.of('media.started').length === 1);
      await peer.until(() => peer.heard.length >= 2);
      expect(peer.heard[0]?.payload.length).toBe(160);
    });

  test('changes with a new negotiation', async () => {
    await using call = await harness.call();
    const { peer, leg } = call;
    const other = await Peer.open();
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    for (let i = 0; i < 4; i++) peer.send(leg, 0, i * 160, audio);
    await peer.until(() => peer.heard.length > 3);
    for (let i = 0; i < 10; i++) other.send(leg, 0, i * 160, audio);
    const count = peer.heard.length;
    await peer.until(() => peer.heard.length > count + 3);
    expect(other.heard.length).toBe(0);
    leg.negotiate(other.parameters());
    await other.until(() => other.heard.length > 3);
    const before = other.heard[0];
    const last = peer.heard.at(-1);
    expect(before?.ssrc).toBe(last?.ssrc ?? 0);
    expect(((before?.sequence ?? 0) - (last?.sequence ?? 0)) & 0xffff).toBe(1);
    await other.close();
  });
});

describe('silence from the far end', () => {
  test('is told once when it lasts, and again only after a new sign of life', async () => {
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    const before = performance.now();
    await notices.until(() => notices.of('media.timeout').length === 1);
    expect(performance.now() - before).toBeGreaterThan(950);
    peer.send(leg, 0, 0, audio);
    await notices.until(() => notices.of('media.timeout').length === 2);
    expect(notices.types()).toEqual(['media.timeout', 'media.started', 'media.timeout']);
  });

  test('is no timeout while a leg is held', async () => {
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters({ receive: false }));
    await peer.until(() => peer.heard.length > 60);
    expect(notices.all).toEqual([]);
  });
});

describe('a leg', () => {
  test('sends silence of its codec when nothing plays, G722 included', async () => {
    await using call = await harness.call();
    const { peer, leg } = call;
    leg.negotiate(peer.parameters({ codec: 'PCMA' }));
    await peer.until(() => peer.heard.length >= 3);
    expect(peer.heard.every((packet) => packet.payloadType === 8 && packet.payload.every((octet) => octet === 0xd5))).toBe(true);
    leg.negotiate(peer.parameters({ codec: 'G722' }));
    await peer.until(() => peer.heard.filter((packet) => packet.payloadType === 9).length >= 3);
    expect(peer.heard.every((packet) => packet.payload.length === 160)).toBe(true);
  });

  test('begins with the numbers that it is given, and goes on from them whatever is agreed on later', async () => {
    await using call = await harness.call();
    const { peer, leg } = call;
    leg.negotiate(peer.parameters({ numbers: { sequence: 65_534, timestamp: 4_294_967_200 } }));
    await peer.until(() => peer.heard.length >= 4);
    leg.negotiate(peer.parameters({ numbers: { sequence: 7, timestamp: 7 } }));
    const before = peer.heard.length;
    await peer.until(() => peer.heard.length >= before + 4);
    const numbers = peer.heard.map(({ sequence }) => sequence);
    expect(numbers).toEqual(numbers.map((_, at) => (65_534 + at) % 65_536));
    expect(peer.heard[0]?.timestamp).toBe(4_294_967_200);
  });

  test('has lost nothing where the first packet is overtaken by the second', async () => {
    const { peer, leg } = await harness.call();
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    for (const sequence of [101, 100, 102, 103]) peer.send(leg, 0, sequence * 160, audio, { sequence });
    await peer.until(() => peer.heard.length > 3);
    const counters = await leg.close();
    expect(counters.packetsReceived).toBe(4);
    expect(counters.packetsLost).toBe(0);
  });

  test('keeps its counters, reports them by RTCP, and says BYE when it closes', async () => {
    const call = await harness.call();
    const { peer, leg } = call;
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    for (let i = 0; i < 10; i++) {
      if (i === 4) peer.sequence++;
      else peer.send(leg, 0, i * 160, audio);
    }
    await peer.until(() => peer.heard.length > 3);
    await peer.until(() => peer.reports.length >= 1); // the first comes within half the interval
    const report = peer.reports[0];
    expect(report?.readUInt8(1)).toBe(200);
    expect(report?.readUInt32BE(4)).toBe(peer.heard[0]?.ssrc ?? 0);
    expect((report?.readUInt32BE(32) ?? 0) & 0xffffff).toBe(1); // cumulative loss of the one block
    const counters = await leg.close();
    expect(counters.packetsReceived).toBe(9);
    expect(counters.packetsLost).toBe(1);
    expect(counters.packetsSent).toBe(peer.heard.length);
    expect(counters.roundTripMs).toBe(0); // the far end reports nothing
    expect(counters.mos).toBeGreaterThan(2.5); // a tenth was lost
    expect(counters.mos).toBeLessThan(4);
    await peer.until(() => peer.reports.length >= 2);
    expect(peer.reports.at(-1)?.includes(Buffer.from([0x81, 203, 0, 1]))).toBe(true);
    await peer.close();
  });

  test('survives anything that is no RTP, on both of its ports', async () => {
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    await leg.counters(); // the plane has it
    for (let i = 0; i < 300; i++) {
      const bytes = crypto.getRandomValues(new Uint8Array(i * 5));
      peer.sendRaw(leg, bytes);
      peer.sendRaw(leg, bytes, true);
      if (bytes[0] !== undefined) bytes[0] = 0x90 | (bytes[0] & 0x2f);
      peer.sendRaw(leg, bytes);
      if (i % 20 !== 19) continue; // no more than a socket holds until the next tick
      const count = peer.heard.length;
      await peer.until(() => peer.heard.length > count + 1);
    }
    peer.send(leg, 0, 0, audio);
    peer.send(leg, 0, 160, audio);
    await notices.until(() => notices.of('media.started').length === 1);
    const count = peer.heard.length;
    await peer.until(() => peer.heard.length > count + 5);
  });
});
