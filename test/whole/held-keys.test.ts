/** A phone on which a key is held for longer than the timeouts of a collection. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer, toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';
const EVENTS = 96;

/** Writes RTP as a phone does: an event goes on with each 20 ms that is heard. */
class Keypad {
  #sequence = 0;
  #timestamp = 1_000;
  readonly ear: RtpPeer;

  constructor(ear: RtpPeer) {
    this.ear = ear;
  }

  #event(code: number, began: number, units: number, isEnd: boolean): void {
    const packet = new DataView(new ArrayBuffer(16));
    packet.setUint8(0, 0x80);
    packet.setUint8(1, (units === 0 ? 0x80 : 0) | EVENTS);
    packet.setUint16(2, this.#sequence++);
    packet.setUint32(4, began);
    packet.setUint32(8, 77);
    packet.setUint8(12, code);
    packet.setUint8(13, (isEnd ? 0x80 : 0) | 10);
    packet.setUint16(14, units);
    this.ear.send(this.ear.source?.port ?? 0, new Uint8Array(packet.buffer));
  }

  async #heard(packets: number): Promise<void> {
    const from = this.ear.packets.length;
    await this.ear.until(() => this.ear.packets.length >= from + packets, 'audio');
  }

  /** Holds a key for so many milliseconds. `meanwhile` is called before it is let go. */
  async hold(code: number, ms: number, meanwhile: () => void = () => undefined): Promise<void> {
    const began = this.#timestamp;
    for (let at = 0; at < ms; at += 20) {
      this.#event(code, began, at * 8, false);
      await this.#heard(1);
    }
    meanwhile();
    for (let copy = 0; copy < 3; copy++) this.#event(code, began, ms * 8, true);
    this.#timestamp += ms * 8 + 800;
    await this.#heard(5);
  }
}

describe('a key that is held on a phone', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();
  const files = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(700, 30)) });
  const api = (path: string, body?: unknown) => platform.api(app, 'POST', path, body);

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    peer = await RawPeer.carrierOf(platform);
  }, 60_000);
  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
    await files.stop(true);
  });

  test('for longer than first_digit_timeout_ms and inter_digit_timeout_ms is counted, and a prompt stops at the press', async () => {
    const ear = await RtpPeer.open();
    const body = sdp(`m=audio ${ear.port} RTP/AVP 0 ${EVENTS}`, `a=rtpmap:${EVENTS} telephone-event/8000`);
    peer.send(peer.request('INVITE', { id: 'held', body }));
    const { body: created } = await receiver.event('session.created');
    const uuid = String(created.session_uuid);
    await api(`/v1/sessions/${uuid}/answer`);
    const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
    peer.send(peer.request('ACK', { id: 'held', to }));
    await receiver.event('session.answered', uuid);
    await ear.until(() => ear.packets.length > 10, 'audio');
    const keypad = new Keypad(ear);

    const terms = { first_digit_timeout_ms: 1_500, inter_digit_timeout_ms: 1_500, max_digits: 2 };
    await api(`/v1/sessions/${uuid}/dtmf/collect`, terms);
    await keypad.hold(5, 3_000);
    await keypad.hold(6, 3_000);
    const entered = await receiver.event('digits.collected', uuid);
    expect(entered.body).toMatchObject({ status: 'success', digits: '56' });
    const keys = receiver.of(uuid).filter(({ event }) => event === 'dtmf.received');
    expect(keys.map(({ body: { digit, duration_ms, method } }) => [digit, duration_ms, method])).toEqual([
      ['5', 3_000, 'rfc4733'],
      ['6', 3_000, 'rfc4733'],
    ]);

    const isLoud = () => ear.packets.slice(-10).some(({ payload }) => payload.some((octet) => (octet & 0x70) < 0x40));
    const prompted = await api(`/v1/sessions/${uuid}/dtmf/collect`, {
      max_digits: 1,
      prompt_files: [`http://127.0.0.1:${files.port}/prompt.wav`],
    });
    expect(prompted.status).toBe(202);
    await ear.until(isLoud, 'the prompt');
    let isLoudAtRelease = true;
    await keypad.hold(7, 2_000, () => {
      isLoudAtRelease = isLoud();
    });
    expect(isLoudAtRelease).toBe(false);
    const collected = () => receiver.of(uuid).filter(({ event }) => event === 'digits.collected');
    await receiver.until(() => collected().length === 2, 'the second collection');
    expect(collected()[1]?.body).toMatchObject({ operation_uuid: prompted.body.operation_uuid, status: 'success', digits: '7' });
    peer.send(peer.request('BYE', { id: 'held', to, cseq: 2 }));
    await receiver.event('session.ended', uuid);
    ear.close();
  }, 60_000);
});
