/** The trunks as the composition root keeps them for the carrier: all of them, in memory. */

import { coalesce } from '../database/journal/coalesce.ts';
import type { TrunkRow, TrunkStore } from '../database/trunk/trunks.ts';

export class TrunkList {
  #rows: readonly TrunkRow[] = [];
  readonly #read: (set: string | undefined) => Promise<readonly string[] | undefined>;

  constructor(list: TrunkStore['list']) {
    const load = async (asked: readonly (string | undefined)[]) => {
      const known = JSON.stringify(this.#rows);
      this.#rows = await list();
      const set = asked.filter((name) => name !== undefined);
      const isToTell = set.length > 0 || JSON.stringify(this.#rows) !== known;
      return asked.map((_, at) => (isToTell && at === 0 ? set : undefined));
    };
    // Looks follow each other, as one that was overtaken would bring the trunks of before back.
    this.#read = coalesce({ load, flights: 1 });
  }

  get rows(): readonly TrunkRow[] {
    return this.#rows;
  }

  /**
   * Reads them again. `set`: the one that the operator set up. Where they are others now, or some were set up, it
   * resolves with the names of those, for all that asked meanwhile, once: to whoever asked first.
   */
  reload(set?: string): Promise<readonly string[] | undefined> {
    return this.#read(set);
  }
}
