/**
 * A WebRTC client of nobody here: libdatachannel, which has its own ICE, DTLS and SRTP. It calls in by WHIP, says a
 * tone and keeps what it hears as RTP packets.
 */
import * as datachannel from 'node-datachannel';
import type { Answered } from './platform.ts';
import { decodeMulaw, type RtpPacket, rtpPacketOf } from './rtp-peer.ts';

export interface Token {
  readonly url: string;
  readonly token: string;
}

/** The token in an answer of `POST /v1/webrtc-tokens`. */
export const tokenOf = ({ body }: Answered): Token => ({ url: String(body.url), token: String(body.token) });

/** One request of WHIP. */
export const whip = (
  { url, token }: Token,
  method: string,
  body?: string,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/sdp' },
): Promise<Response> =>
  fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : headers) },
    ...(body === undefined ? {} : { body }),
  });

export interface PeerOptions {
  /** Changes the offer before it is sent. */
  readonly alter?: (offer: string) => string;
  /** The payload type and name of the codec that is offered. */
  readonly codec?: readonly [payloadType: number, name: string];
  /** The address that it binds (127.0.0.1). */
  readonly address?: string;
}

const EVENT_PAYLOAD_TYPE = 101;

export class WebrtcPeer {
  readonly packets: RtpPacket[] = [];
  readonly #connection: datachannel.PeerConnection;
  readonly #track: datachannel.Track;
  readonly #payloadType: number;
  #location: Token = { url: '', token: '' };
  #speaking: ReturnType<typeof setInterval> | undefined;
  #sequence = 1000;
  #timestamp = 5000;
  #waiting: { ready: () => boolean; resolve: () => void }[] = [];
  #isLooking = false;
  /** The states of the connection so far. */
  readonly states: string[] = [];
  /** The platform's port, as its answer has it. */
  port = 0;

  private constructor({ codec: [payloadType, name] = [0, 'PCMU/8000'], address = '127.0.0.1' }: PeerOptions) {
    this.#payloadType = payloadType;
    this.#connection = new datachannel.PeerConnection('peer', { iceServers: [], bindAddress: address });
    const audio = new datachannel.Audio('0', 'SendRecv');
    audio.addAudioCodec(payloadType, name);
    audio.addAudioCodec(EVENT_PAYLOAD_TYPE, `telephone-event/${name.split('/')[1]}`);
    audio.addSSRC(4711, 'peer');
    this.#track = this.#connection.addTrack(audio);
    this.#track.onMessage((bytes) => this.#hear(bytes));
    this.#connection.onStateChange((state) => {
      this.states.push(state);
      this.#look();
    });
  }

  /** Makes the offer, and sends it. The response is not looked at when it is none of success. */
  static async call(
    token: Token,
    options: PeerOptions = {},
  ): Promise<{ readonly peer: WebrtcPeer; readonly response: Response }> {
    const peer = new WebrtcPeer(options);
    const offer = await peer.#offer();
    const response = await whip(token, 'POST', options.alter?.(offer) ?? offer);
    if (response.status === 201) {
      peer.#location = { ...token, url: response.headers.get('location') ?? '' };
      peer.#accept(await response.text());
    }
    return { peer, response };
  }

  /** Makes the offer, and takes the answer to it from another server than ours. */
  static async meet(signal: (offer: string) => Promise<string>, options: PeerOptions = {}): Promise<WebrtcPeer> {
    const peer = new WebrtcPeer(options);
    peer.#accept(await signal(await peer.#offer()));
    return peer;
  }

  #accept(answer: string): void {
    this.port = Number(/^m=audio ([0-9]+)/m.exec(answer)?.[1]);
    this.#connection.setRemoteDescription(answer, 'answer');
  }

  get sessionUuid(): string {
    return this.#location.url.split('/').at(-1) ?? '';
  }

  get location(): Token {
    return this.#location;
  }

  #offer(): Promise<string> {
    return new Promise((resolve) => {
      this.#connection.onGatheringStateChange((state) => {
        const sdp = this.#connection.localDescription()?.sdp;
        if (state === 'complete' && sdp !== undefined) resolve(sdp);
      });
      this.#connection.setLocalDescription();
    });
  }

  connected(): Promise<void> {
    return this.until(() => this.#connection.state() === 'connected', 'the connection');
  }

  #hear(data: Buffer): void {
    if (data.length < 12 || ((data[1] ?? 0) >= 192 && (data[1] ?? 0) <= 223)) return;
    this.packets.push(rtpPacketOf(data));
    this.#look();
  }

  /**
   * Looks whether somebody has waited for this, once for all packets of a turn: a look at each, which may take longer
   * than 20 ms on a busy machine, would leave no turn to the clock, and the test would never end.
   */
  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => {
      this.#isLooking = false;
      this.#waiting = this.#waiting.filter((waiter) => {
        if (!waiter.ready()) return true;
        waiter.resolve();
        return false;
      });
    });
  }

  async until(ready: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => reject(new Error(`waited for ${what}; states ${this.states}; ${this.packets.length} packets came`)),
      timeoutMs,
    );
    this.#waiting.push({ ready, resolve });
    await promise.finally(() => clearTimeout(timer));
  }

  /** The last half second that it has heard, of PCMU, from its packet number `from` on. */
  heard(from = 0): Float32Array {
    return decodeMulaw(this.packets.slice(Math.max(from, this.packets.length - 25)));
  }

  /** Sends one RTP packet. */
  send(payload: Uint8Array, timestamp: number, marker = false, payloadType = this.#payloadType): void {
    const packet = Buffer.alloc(12 + payload.length);
    packet[0] = 0x80;
    packet[1] = (marker ? 0x80 : 0) | payloadType;
    packet.writeUInt16BE(this.#sequence++ & 0xffff, 2);
    packet.writeUInt32BE(timestamp >>> 0, 4);
    packet.writeUInt32BE(4711, 8);
    packet.set(payload, 12);
    if (!this.#track.isOpen()) return;
    try {
      this.#track.sendMessageBinary(packet);
    } catch (error) {
      // The library closes a track on its own thread: it may have done so since the line above.
      if (this.#track.isOpen()) throw error;
    }
  }

  /** Says what `frame` gives for each 20 ms, in `units` of timestamp, until `hush` or `close`. */
  say(frame: (at: number) => Uint8Array, units = 160): void {
    this.hush();
    const began = performance.now();
    let sent = 0;
    this.#speaking = setInterval(() => {
      const due = Math.floor((performance.now() - began) / 20);
      for (; sent < due; sent++) {
        this.send(frame(sent), this.#timestamp);
        this.#timestamp += units;
      }
    }, 10);
  }

  hush(): void {
    clearInterval(this.#speaking);
  }

  /** Presses a key for 100 ms (RFC 4733), on a clock of `unitsPerMs`. */
  press(event: number, unitsPerMs = 8): void {
    for (const [step, end] of [
      [20, false],
      [60, false],
      [100, true],
      [100, true],
      [100, true],
    ] as const) {
      const units = step * unitsPerMs;
      const payload = new Uint8Array([event, (end ? 0x80 : 0) | 10, units >> 8, units & 0xff]);
      this.send(payload, this.#timestamp, step === 20, EVENT_PAYLOAD_TYPE);
    }
    this.#timestamp += 100 * unitsPerMs;
  }

  /** Hangs up as WHIP has it. */
  hangUp(): Promise<Response> {
    return whip(this.location, 'DELETE');
  }

  close(): void {
    this.hush();
    this.#connection.close();
  }
}

/** 20 ms of a tone, in mu-law. */
export const mulawTone =
  (hz: number, amplitude = 8000) =>
  (frame: number): Uint8Array =>
    Uint8Array.from({ length: 160 }, (_, at) =>
      mulaw(Math.round(amplitude * Math.sin((2 * Math.PI * hz * (frame * 160 + at)) / 8000))),
    );

/** ITU-T G.711, by its definition. */
function mulaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(32_635, Math.abs(sample)) + 132;
  const exponent = Math.max(0, Math.floor(Math.log2(magnitude)) - 7);
  return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)) & 0xff;
}
