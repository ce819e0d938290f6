/**
 * Work of which so much is begun in one turn of the event loop. What waits has its turns round robin by application, so
 * that one which begins a thousand things at once holds up its own, and nobody else by more than a turn.
 */
import { RoundRobin } from './round-robin.ts';

interface Waiting {
  readonly go: () => void;
  /** Nobody waits for it any more: it has no turn, and takes none from others. */
  readonly isGone: () => boolean;
}

export class TurnBudget {
  readonly #ofTurn: number;
  readonly #afterTurn: (then: () => void) => void;
  readonly #waiting = new RoundRobin<Waiting>();
  #begun = 0;

  /** `afterTurn` calls back once the present turn of the event loop is over. */
  constructor(ofTurn: number, afterTurn: (then: () => void) => void = (then) => void setImmediate(then)) {
    this.#ofTurn = ofTurn;
    this.#afterTurn = afterTurn;
  }

  /**
   * Resolves when the application may begin, or is found to have gone meanwhile. Undefined: it may at once, as there is
   * room in this turn and nobody waits.
   */
  take(appUuid: string, isGone = () => false): Promise<void> | undefined {
    if (this.#begun === 0 && this.#waiting.size === 0) this.#afterTurn(() => this.#next());
    if (this.#begun < this.#ofTurn && this.#waiting.size === 0) {
      this.#begun++;
      return undefined;
    }
    return new Promise<void>((go) => this.#waiting.add(appUuid, { go, isGone }));
  }

  #next(): void {
    this.#begun = 0;
    while (this.#begun < this.#ofTurn) {
      const next = this.#waiting.take();
      if (next === undefined) break;
      if (!next.isGone()) this.#begun++;
      next.go();
    }
    if (this.#begun > 0) this.#afterTurn(() => this.#next());
  }
}
