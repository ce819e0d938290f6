/**
 * The holds of a call, of either side. The far end's is told from the answer on. Ours takes effect at once, and is told
 * when the far end has answered the re-INVITE that tells it so:
 *
 *   settled --order--> offered --answer or refusal--> settled
 */
import type { LegSignal } from '../../call/ports/leg.ts';

export class Holds {
  readonly #tell: (signal: LegSignal) => void;
  #isAnswered = false;
  #far = false;
  #farAsTold = false;
  #own = false;
  #isOffered = false;

  constructor(tell: (signal: LegSignal) => void) {
    this.#tell = tell;
  }

  /** Whether the call was answered on both sides. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Whether we hold the far end. */
  get isOwn(): boolean {
    return this.#own;
  }

  /** Whether either side holds the other, or is about to. */
  get isAny(): boolean {
    return this.#far || this.#own || this.#isOffered;
  }

  /** The call is answered, which `announce` tells. A hold that came before is told after it. */
  answered(announce: () => void): void {
    this.#isAnswered = true;
    announce();
    this.far(this.#far);
  }

  /** The call was answered on another node, which may have told otherwise whether the far end holds us. */
  resumed(): void {
    this.#isAnswered = true;
    this.#tellFar();
  }

  /** The far end holds us, or no longer, by what was agreed on last. */
  far(on: boolean): void {
    this.#far = on;
    if (this.#isAnswered && on !== this.#farAsTold) this.#tellFar();
  }

  /** We hold the far end, or no longer, and offer it so. */
  order(on: boolean): void {
    // A hold that is taken back before the far end has answered has taken effect here all the same, and is told.
    if (this.#isOffered && on !== this.#own) this.#tell({ type: 'leg.own_hold', on: this.#own });
    this.#own = on;
    this.#isOffered = true;
  }

  /** The far end has answered, or refused, our re-INVITE. False where no order waited for that. */
  settle(): boolean {
    const wasOffered = this.#isOffered;
    this.#isOffered = false;
    return wasOffered;
  }

  #tellFar(): void {
    this.#farAsTold = this.#far;
    this.#tell({ type: this.#far ? 'leg.held' : 'leg.resumed' });
  }
}
