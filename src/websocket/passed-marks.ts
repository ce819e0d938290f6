/**
 * The marks of a bot that have been heard, or were cleared: told in their order, so many of all bots in one turn of the
 * event loop. A hundred bots that clear a thousand each would else hold it for seconds.
 */
import type { TurnBudget } from '../bounds/turn-budget.ts';
import { STREAM_MARKS_MAX } from '../limits.ts';

interface PassedMarksOptions {
  readonly appUuid: string;
  readonly turns: TurnBudget;
  tell(name: string): void;
}

export class PassedMarks {
  readonly #options: PassedMarksOptions;
  readonly #waiting: string[] = [];
  #isTelling = false;

  constructor(options: PassedMarksOptions) {
    this.#options = options;
  }

  /** Tells a mark at once where there is room in this turn, else later. As many wait as in the audio itself. */
  add(name: string): void {
    this.#waiting.push(name);
    if (this.#waiting.length > STREAM_MARKS_MAX) this.#tellOne();
    if (!this.#isTelling) void this.#tell();
  }

  /** Nobody is there to be told any more. */
  drop(): void {
    this.#waiting.length = 0;
  }

  async #tell(): Promise<void> {
    const { turns, appUuid } = this.#options;
    this.#isTelling = true;
    while (this.#waiting.length > 0) {
      const turn = turns.take(appUuid, () => this.#waiting.length === 0);
      if (turn !== undefined) await turn;
      this.#tellOne();
    }
    this.#isTelling = false;
  }

  #tellOne(): void {
    const name = this.#waiting.shift();
    if (name !== undefined) this.#options.tell(name);
  }
}
