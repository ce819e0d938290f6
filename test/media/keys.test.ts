import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { seeded } from '../support/random.ts';
import { test } from '../support/real-time.ts';
import { type Call, Harness } from './harness.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());

const KEYS = '0123456789*#ABCD';

/** A condition that holds once the peer has heard another packet: a tick of the leg. */
function nextPacket(peer: Call['peer']): () => boolean {
  const heard = peer.heard.length;
  return () => peer.heard.length > heard;
}

/**
 * Dials keys of 40 ms with 40 ms between them as a phone does: the event every 20 ms and its end three times, with
 * audio between (RFC 4733 §2.5).
 */
async function dial(call: Call, digits: string, lossy: () => boolean): Promise<void> {
  const { peer, leg } = call;
  const silence = new Uint8Array(160).fill(0xff);
  let timestamp = 40_000;
  // One packet was sent before the first key.
  let sent = 1;
  const send = (payloadType: number, at: number, payload: Uint8Array, marker = false) => {
    const sequence = peer.sequence++;
    if (lossy()) return;
    sent += 1;
    peer.send(leg, payloadType, at, payload, { sequence, marker });
  };
  for (const [dialled, digit] of [...digits].entries()) {
    if (dialled % 8 === 0) {
      // Faster than real time, but the kernel's buffer is not part of the bad network: the leg takes everything that
      // was sent before more is sent.
      while ((await leg.counters()).packetsReceived < sent) await peer.until(nextPacket(peer));
    }
    const event = (units: number, end: boolean) =>
      Uint8Array.of(KEYS.indexOf(digit), (end ? 0x80 : 0) | 10, units >> 8, units & 0xff);
    send(101, timestamp, event(160, false), true);
    send(101, timestamp, event(320, false));
    for (let copy = 0; copy < 3; copy++) send(101, timestamp, event(320, true));
    timestamp += 320;
    for (let packet = 0; packet < 2; packet++) {
      send(0, timestamp, silence);
      timestamp += 160;
    }
  }
}

describe('keys over RTP', () => {
  test('and audio are heard by the numbers of our offer and of their answer alike (RFC 3264 §5.1)', async () => {
    await using call = await harness.call();
    const { leg, peer, notices } = call;
    leg.negotiate(
      peer.parameters({ payloadType: 100, ownPayloadType: 0, telephoneEventPayloadType: 96, ownEventPayloadType: 101 }),
    );
    peer.send(leg, 0, 0, new Uint8Array(160).fill(0xff));
    await notices.until(() => notices.of('media.started').length === 1);
    await dial(call, '42#', () => false);
    const ended = Uint8Array.of(KEYS.indexOf('7'), 0x80 | 10, 1, 0x40);
    peer.send(leg, 100, 80_000, new Uint8Array(160).fill(0xff));
    for (let copy = 0; copy < 3; copy++) peer.send(leg, 96, 80_160, ended);
    await notices.until(() => notices.of('digit').length === 4);
    expect(notices.of('digit').map(({ digit }) => digit)).toEqual(['4', '2', '#', '7']);
    // The end alone came of the last one.
    expect(notices.of('key.down').map(({ digit, method }) => `${digit} ${method}`)).toEqual([
      '4 rfc4733',
      '2 rfc4733',
      '# rfc4733',
    ]);
    expect(notices.of('payload.changed')).toEqual([]);
  });

  for (const seed of [1, 2, 3]) {
    test(`200 of them at 40 ms on, 40 ms off and 10 % loss: none lost, none doubled (network ${seed})`, async () => {
      const random = seeded(seed);
      const digits = Array.from({ length: 200 }, () => KEYS[Math.floor(random() * KEYS.length)]).join('');
      await using call = await harness.call();
      call.leg.negotiate(call.peer.parameters());
      call.peer.send(call.leg, 0, 0, new Uint8Array(160).fill(0xff));
      await call.notices.until(() => call.notices.of('media.started').length === 1);
      let lost = 0;
      await dial(call, digits, () => {
        const drop = random() < 0.1;
        if (drop) lost++;
        return drop;
      });
      await call.notices.until(() => call.notices.of('digit').length >= 200);
      expect(lost).toBeGreaterThan(100);
      expect(
        call.notices
          .of('digit')
          .map(({ digit }) => digit)
          .join(''),
      ).toBe(digits);
      expect(call.notices.of('digit').every(({ durationMs }) => durationMs >= 20 && durationMs <= 40)).toBe(true);
    });
  }
});
