/** Counts ticks by how late they began, in steps, since the worker began. */

const TICK_US = 20_000;
/**
 * A tick is counted at the first step that it does not exceed, or after the last. A plane tells of several ticks at
 * once where none of them was later than the first step (`Plane::on_time_us`).
 */
export const LATENESS_STEPS_US = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000] as const;

export class TickLateness {
  readonly #counts = new Array<number>(LATENESS_STEPS_US.length + 1).fill(0);

  /**
   * Counts one run of a plane. `ticks` were due. The first of them began `latenessUs` behind its deadline, and each
   * other a tick less.
   */
  add(ticks: number, latenessUs: number): void {
    for (let i = 0; i < ticks; i++) {
      const late = Math.max(0, latenessUs - i * TICK_US);
      let step = 0;
      while (step < LATENESS_STEPS_US.length && late > (LATENESS_STEPS_US[step] ?? 0)) step++;
      this.#counts[step] = (this.#counts[step] ?? 0) + 1;
    }
  }

  counts(): readonly number[] {
    return [...this.#counts];
  }
}

/** Ticks of `counts` that began more than `us` late; `us` is one of the steps. */
export function ticksOver(counts: readonly number[], us: (typeof LATENESS_STEPS_US)[number]): number {
  return counts.slice(LATENESS_STEPS_US.indexOf(us) + 1).reduce((sum, count) => sum + count, 0);
}
