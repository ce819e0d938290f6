/** A party of a room in real time: says a tone in frames of 20 ms, and hears what the plane sends it. */
import type { Call } from './harness.ts';
import { alawOctet, alawSample, mulawOctet, mulawSample } from './sound.ts';

const AMPLITUDE = 8_000;

export class Talker {
  readonly call: Call;
  readonly hz: number;
  readonly codec: 'PCMU' | 'PCMA';
  /** What it says, in dB below full scale. */
  readonly level = 20 * Math.log10(AMPLITUDE / 32_768);
  #saying: number;
  #at = 0;
  #sent = 0;
  #started = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(call: Call, hz: number, codec: 'PCMU' | 'PCMA') {
    this.call = call;
    this.hz = hz;
    this.#saying = hz;
    this.codec = codec;
  }

  /** Begins to send, against the clock: a late timer is made up for. */
  start(): void {
    this.#started = performance.now();
    this.#timer = setInterval(() => {
      while (this.#sent * 20 < performance.now() - this.#started) this.#frame();
    }, 10);
  }

  /** Another tone from now on; 0 is silence. */
  say(hz: number): void {
    this.#saying = hz;
  }

  #frame(): void {
    const payload = Uint8Array.from({ length: 160 }, (_, i) => {
      const sample = Math.round(AMPLITUDE * Math.sin((2 * Math.PI * this.#saying * (this.#at + i)) / 8_000));
      return this.codec === 'PCMU' ? mulawOctet(sample) : alawOctet(sample);
    });
    this.#at += 160;
    this.call.peer.send(this.call.leg, this.codec === 'PCMU' ? 0 : 8, this.#sent * 160, payload);
    this.#sent++;
  }

  /** Everything heard so far as PCM. */
  all(): number[] {
    const octets = this.call.peer.heard.flatMap(({ payload }) => [...payload]);
    return octets.map(this.codec === 'PCMU' ? mulawSample : alawSample);
  }

  /** Waits for so many more packets. */
  async hears(packets: number): Promise<void> {
    const wanted = this.call.peer.heard.length + packets;
    await this.call.peer.until(() => this.call.peer.heard.length >= wanted);
  }

  /**
   * What is heard during `ms`, from `settleMs` from now on. What came before and is still to be read does not count.
   */
  async listen(ms: number, settleMs: number): Promise<number[]> {
    await this.call.peer.caughtUp();
    await this.hears((settleMs + ms) / 20);
    return this.all().slice(-ms * 8);
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.call[Symbol.asyncDispose]();
  }
}
