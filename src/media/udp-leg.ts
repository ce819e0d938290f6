/** One leg on the main thread: turns the engine's calls into orders, and the plane's records into notices in the words of the Session. */

import { isIP } from 'node:net';
import type { DecoderThread } from './decoder.ts';
import type { LegCounters, MediaNotice, PlayOptions, RtpLeg, RtpParameters } from './engine.ts';
import type { LegEars, MediaWorker } from './media-worker.ts';
import { NOTICE, type NoticeRecord } from './notice.ts';
import { codecRateHz } from './order.ts';
import { Playbacks } from './playbacks.ts';

/**
 * What the plane takes: literal addresses, ports of 16 bits, packets of 10 to 60 ms. A far end of none is one we cannot send to until it is
 * heard from.
 */
function bounded(agreed: RtpParameters): RtpParameters {
  const port = (value: number) => (Number.isInteger(value) && value > 0 && value <= 65_535 ? value : 9); // discard (RFC 863)
  return {
    ...agreed,
    remoteHost: isIP(agreed.remoteHost) === 0 ? '0.0.0.0' : agreed.remoteHost,
    remotePort: port(agreed.remotePort),
    remoteRtcpPort: port(agreed.remoteRtcpPort),
    ptimeMs: Math.min(60, Math.max(10, Math.round(agreed.ptimeMs) || 20)),
  };
}

const NO_COUNTERS: LegCounters = { packetsReceived: 0, packetsSent: 0, packetsLost: 0, jitterMs: 0 };

export class UdpLeg implements RtpLeg, LegEars {
  readonly host: string;
  readonly port: number;
  readonly #id: number;
  readonly #worker: MediaWorker;
  readonly #notify: (notice: MediaNotice) => void;
  readonly #bound: (errno: number) => void;
  readonly #freed: () => void;
  readonly #playbacks: Playbacks;
  #rateHz = 8_000;
  #closing: Promise<LegCounters> | undefined;
  #finished: ((counters: LegCounters) => void) | undefined;
  #lost = false;

  constructor(options: {
    readonly id: number;
    readonly host: string;
    readonly port: number;
    readonly worker: MediaWorker;
    readonly decoders: DecoderThread;
    readonly notify: (notice: MediaNotice) => void;
    readonly nextPlayback: () => number;
    /** The ports were bound (0), or why not. */
    readonly bound: (errno: number) => void;
    /** The ports are free again; called once. */
    readonly freed: () => void;
  }) {
    this.#id = options.id;
    this.host = options.host;
    this.port = options.port;
    this.#worker = options.worker;
    this.#notify = options.notify;
    this.#bound = options.bound;
    this.#freed = options.freed;
    this.#playbacks = new Playbacks({
      id: options.id,
      order: (order) => this.#worker.order(order),
      decoders: options.decoders,
      notify: options.notify,
      nextPlayback: options.nextPlayback,
    });
  }

  negotiate(parameters: RtpParameters): void {
    if (this.#closing !== undefined) return;
    this.#rateHz = codecRateHz(parameters.codec);
    this.#worker.order({ type: 'negotiate', leg: this.#id, parameters: bounded(parameters) });
  }

  play(options: PlayOptions): void {
    this.#playbacks.play(options, this.#rateHz);
  }

  stopPlayback(operationUuid: string): void {
    this.#playbacks.stop(operationUuid);
  }

  counters(): Promise<LegCounters> {
    return this.#lost ? Promise.resolve(NO_COUNTERS) : (this.#closing ?? this.#worker.counters(this.#id));
  }

  close(): Promise<LegCounters> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      this.#playbacks.close();
      if (this.#lost) resolve(NO_COUNTERS);
      else this.#worker.order({ type: 'close', leg: this.#id });
    });
    return this.#closing;
  }

  opened(errno: number): void {
    this.#bound(errno);
  }

  notice(record: NoticeRecord): void {
    if (this.#playbacks.notice(record)) return;
    switch (record.kind) {
      case NOTICE.mediaStarted:
        this.#notify({ type: 'media.started' });
        break;
      case NOTICE.mediaTimeout:
        this.#notify({ type: 'media.timeout' });
        break;
      case NOTICE.digit:
        this.#notify({ type: 'digit', digit: String.fromCharCode(record.a), durationMs: record.b, method: 'rfc4733' });
        break;
    }
  }

  closed(counters: LegCounters): void {
    this.#worker.detach(this.#id);
    this.#freed();
    this.#finished?.(counters);
  }

  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#playbacks.lost();
    this.#bound(-1);
    this.closed(NO_COUNTERS);
  }
}
