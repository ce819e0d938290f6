/** The signals of one leg on their way to its Session, from the first one until its recordings are finished. */
import type { CallQuality } from '../event/call-report.ts';
import { SIP_LEG_CLOSE_MS, SIP_LEG_SIGNALS_MAX } from '../limits.ts';
import type { LegEnd, LegListener, LegSignal } from './ports/leg.ts';

export class LegSignals {
  #listener: LegListener | undefined;
  /** Signals that nobody listens to yet. */
  #unheard: LegSignal[] = [];

  constructor(listener?: LegListener) {
    this.#listener = listener;
  }

  /** Hands over the signals so far, and then all that follow. */
  listen(listener: LegListener): void {
    this.#listener = listener;
    for (const signal of this.#unheard.splice(0)) listener(signal);
  }

  tell(signal: LegSignal): void {
    if (this.#listener !== undefined) this.#listener(signal);
    else if (this.#unheard.length < SIP_LEG_SIGNALS_MAX || signal.type === 'leg.ended') this.#unheard.push(signal);
  }

  /** Drops all but the notices of recordings from now on: a recording is finished after its leg is gone. */
  dropAllButRecordings(): void {
    const listener = this.#listener;
    this.#listener = (signal) => {
      if (signal.type === 'leg.media' && 'recordingUuid' in signal.notice) listener?.(signal);
    };
  }

  /**
   * Tells the end, once: when `closed` resolves with the quality of the call, or without it when closing fails or takes
   * longer than SIP_LEG_CLOSE_MS. `wait` calls its function after so long, unless its result is called before.
   */
  tellEnd(end: LegEnd, closed: Promise<CallQuality | undefined>, wait: (ms: number, then: () => void) => () => void): void {
    let told = false;
    const tell = (quality?: CallQuality) => {
      if (told) return;
      told = true;
      cancel();
      this.tell({ type: 'leg.ended', end: { ...end, ...(quality === undefined ? {} : { quality }) } });
      this.dropAllButRecordings();
    };
    const cancel = wait(SIP_LEG_CLOSE_MS, () => tell());
    closed.then(tell, () => tell());
  }
}
