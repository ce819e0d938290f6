/** The trunks as the composition root keeps them for the carrier: all of them, in memory. */

import { coalesce } from '../database/journal/coalesce.ts';
import type { TrunkRow, TrunkStore } from '../database/trunk/trunks.ts';

export class TrunkList {
  #rows: readonly TrunkRow[] = [];
  readonly #read: (asked: undefined) => Promise<boolean>;

  constructor(list: TrunkStore['list']) {
    const load = async (asked: readonly undefined[]): Promise<readonly boolean[]> => {
      const known = JSON.stringify(this.#rows);
      this.#rows = await list();
      const isChanged = JSON.stringify(this.#rows) !== known;
      return asked.map((_, at) => isChanged && at === 0);
    };
    // Looks follow each other, as one that was overtaken would bring the trunks of before back.
    this.#read = coalesce({ load, flights: 1 });
  }

  get rows(): readonly TrunkRow[] {
    return this.#rows;
  }

  /** Reads them again. Resolves with whether they are others now, which is told once, to whoever asked first. */
  reload(): Promise<boolean> {
    return this.#read(undefined);
  }
}
