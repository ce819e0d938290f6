/** What `session.ended` says of how a call sounded, after a network that loses and delays packets on purpose. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { createSocket, type Socket } from 'node:dgram';
import { field, RawPeer, sdp } from '../carrier/raw-peer.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { seeded } from '../support/random.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';

const PACKETS = 300;
const PACKET_MS = 20;
const SAMPLES = 160;

interface Network {
  /** The part of the packets that it loses. */
  readonly loss: number;
  /** The longest delay in milliseconds. Every packet has another one, and none overtakes the one before. */
  readonly delayMs: number;
}

/** What was done to one stream. */
interface Done {
  readonly dropped: number;
  /** Interarrival jitter by the times at which packets were really sent, in milliseconds (RFC 3550 §6.4.1). */
  readonly jitterMs: number;
}

/** A telephone that speaks through a bad network. */
class Speaker {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(): Promise<Speaker> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new Speaker(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  close(): void {
    this.#socket.close();
  }

  /** Says PACKETS packets to a port, at their own pace. */
  async speak(port: number, { loss, delayMs }: Network, seed: number): Promise<Done> {
    const random = seeded(seed);
    const began = performance.now();
    let [dropped, jitter, transit] = [0, 0, Number.NaN];
    for (let n = 0; n < PACKETS; n++) {
      const due = began + n * PACKET_MS + random() * delayMs;
      // The first and the last arrive, so that a loss is one between others.
      const isLost = random() < loss && n > 0 && n < PACKETS - 1;
      const wait = due - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (isLost) {
        dropped++;
        continue;
      }
      const now = performance.now() - began - n * PACKET_MS;
      if (!Number.isNaN(transit)) jitter += (Math.abs(now - transit) - jitter) / 16;
      transit = now;
      const packet = Buffer.alloc(12 + SAMPLES, 0x40 + (n % 32));
      packet.writeUInt16BE(0x8000, 0);
      packet.writeUInt16BE(n, 2);
      packet.writeUInt32BE(n * SAMPLES, 4);
      packet.writeUInt32BE(0x0badcafe, 8);
      const isLast = n === PACKETS - 1;
      const sent = new Promise((resolve) => this.#socket.send(packet, port, '127.0.0.1', resolve));
      if (isLast) await sent;
    }
    return { dropped, jitterMs: jitter };
  }
}

/** The E-model of ITU-T G.107 for G.711 with concealment: `lost` is a part of 1, `oneWayMs` from mouth to ear. */
function emodel(lost: number, oneWayMs: number): number {
  const percent = lost * 100;
  const r = 93.2 - 0.024 * oneWayMs - 0.11 * Math.max(0, oneWayMs - 177.3) - (95 * percent) / (percent + 25.1);
  return 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r);
}

describe('the quality of a call', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: RawPeer;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, '+15550002');
    peer = await RawPeer.carrierOf(platform);
  }, 60_000);
  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
  });

  /** A call that speaks over that network and is recorded: what was done to it, and what is told of it. */
  async function call(id: string, network: Network, seed: number) {
    const speaker = await Speaker.open();
    peer.send(peer.request('INVITE', { id, body: sdp(`m=audio ${speaker.port} RTP/AVP 0`) }));
    const created = () => receiver.events.find(({ event, body }) => event === 'session.created' && sipId(body) === id);
    await receiver.until(() => created() !== undefined, 'session.created');
    const uuid = String(created()?.body.session_uuid);
    await platform.api(app, 'POST', `/v1/sessions/${uuid}/answer`, {});
    const ok = await peer.until(new RegExp(`^SIP/2.0 200[\\s\\S]*Call-ID: ${id}\\r`));
    const to = field(ok, 'To');
    peer.send(peer.request('ACK', { id, to }));
    await receiver.event('session.answered', uuid);
    await platform.api(app, 'POST', `/v1/sessions/${uuid}/recordings`, { direction: 'both', channels: 'mono' });
    const done = await speaker.speak(Number(/^m=audio ([0-9]+)/m.exec(ok)?.[1]), network, seed);
    peer.send(peer.request('BYE', { id, to, cseq: 2 }));
    const { body } = await receiver.event('session.ended', uuid);
    speaker.close();
    return { done, quality: numbersOf(body.quality) };
  }

  const networks = {
    clean: { loss: 0, delayMs: 0 },
    'loses 3 %': { loss: 0.03, delayMs: 0 },
    'loses 15 %': { loss: 0.15, delayMs: 0 },
    'delays by up to 18 ms': { loss: 0, delayMs: 18 },
    'does both': { loss: 0.08, delayMs: 18 },
  } satisfies Record<string, Network>;

  test('is loss, jitter and MOS of what the network did to it', async () => {
    const names = Object.keys(networks);
    const run = crypto.randomUUID();
    const calls = await Promise.all(
      Object.values(networks).map((network, i) => call(`${run}-${i}`, network, 7 + i).then((told) => ({ network, ...told }))),
    );
    for (const [i, { network, done, quality }] of calls.entries()) {
      const about = `${names[i]}: ${JSON.stringify({ done, quality })}`;
      expect(quality.packets_lost, about).toBe(done.dropped);
      expect(quality.packets_in, about).toBe(PACKETS - done.dropped);
      expect(done.dropped / PACKETS, about).toBeGreaterThanOrEqual(network.loss / 2);
      expect(Math.abs((quality.jitter_ms ?? 0) - done.jitterMs), about).toBeLessThan(1 + done.jitterMs / 4);
      const unheard = (done.dropped + (quality.packets_late ?? 0)) / PACKETS;
      const expected = emodel(unheard, PACKET_MS + (quality.round_trip_ms ?? 0) / 2 + (quality.buffer_ms ?? 0));
      expect(Math.abs((quality.mos ?? 0) - expected), about).toBeLessThan(0.06);
    }
    const mos = Object.fromEntries(calls.map(({ quality }, i) => [names[i], quality.mos ?? 0]));
    expect(mos.clean).toBeGreaterThan(mos['loses 3 %'] ?? 0);
    expect(mos['loses 3 %']).toBeGreaterThan(mos['loses 15 %'] ?? 0);
    expect(mos['delays by up to 18 ms']).toBeGreaterThan(mos['does both'] ?? 0);
  }, 40_000);
});

const sipId = ({ sip }: Readonly<Record<string, unknown>>): unknown =>
  typeof sip === 'object' && sip !== null && 'call_id' in sip ? sip.call_id : undefined;

/** The numbers of an object by their names. */
const numbersOf = (value: unknown): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(value ?? {}).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
