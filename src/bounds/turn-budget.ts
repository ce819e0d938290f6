/**
 * Work of which so much is begun in one turn of the event loop. What waits has its turns round robin by application, so
 * that one which begins a thousand things at once holds up its own, and nobody else by more than a turn.
 */
import { RoundRobin } from './round-robin.ts';

export class TurnBudget {
  readonly #ofTurn: number;
  readonly #afterTurn: (then: () => void) => void;
  readonly #waiting = new RoundRobin<() => void>();
  #begun = 0;

  /** `afterTurn` calls back once the present turn of the event loop is over. */
  constructor(ofTurn: number, afterTurn: (then: () => void) => void = (then) => void setImmediate(then)) {
    this.#ofTurn = ofTurn;
    this.#afterTurn = afterTurn;
  }

  /**
   * Resolves when the application may begin. Undefined: it may at once, as there is room in this turn and nobody waits.
   */
  take(appUuid: string): Promise<void> | undefined {
    if (this.#begun === 0 && this.#waiting.size === 0) this.#afterTurn(() => this.#next());
    if (this.#begun < this.#ofTurn && this.#waiting.size === 0) {
      this.#begun++;
      return undefined;
    }
    return new Promise<void>((resolve) => this.#waiting.add(appUuid, resolve));
  }

  #next(): void {
    this.#begun = 0;
    for (let go = this.#take(); go !== undefined; go = this.#take()) go();
    if (this.#begun > 0) this.#afterTurn(() => this.#next());
  }

  #take(): (() => void) | undefined {
    const go = this.#begun < this.#ofTurn ? this.#waiting.take() : undefined;
    if (go !== undefined) this.#begun++;
    return go;
  }
}
