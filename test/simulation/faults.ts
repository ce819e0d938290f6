/** What is broken at the moment, everywhere at once or between two places. */
import type { DatabaseLink } from './database/simulated-database.ts';
import type { Random } from './random.ts';

/** How the receiver of webhooks answers. */
export type ReceiverMood = 'well' | 'fails' | 'hangs' | 'unheard' | 'slow' | 'moody';

export class Faults {
  readonly #random: Random;
  /** Processes that cannot reach the database; `all` is every one. */
  readonly databaseAway = new Set<number | 'all'>();
  /** Chances that a write is rolled back, and that the answer to one is lost. */
  databaseFails = 0;
  databaseLoses = 0;
  databaseSlow = 1;
  receiver: ReceiverMood = 'well';
  isStoreFull = false;
  /** Places whose node is parted from the bus. */
  readonly busAway = new Set<number>();
  /** Chances that a message between nodes is lost, and that it comes twice; and how much slower it is. */
  busDrops = 0;
  busDoubles = 0;
  busSlow = 1;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Everything works again. */
  heal(): void {
    this.databaseAway.clear();
    this.databaseFails = 0;
    this.databaseLoses = 0;
    this.databaseSlow = 1;
    this.receiver = 'well';
    this.isStoreFull = false;
    this.busAway.clear();
    this.busDrops = 0;
    this.busDoubles = 0;
    this.busSlow = 1;
  }

  /** The way of one process to the database. */
  databaseLink(place: number, isAlive: () => boolean, pass: DatabaseLink['pass']): DatabaseLink {
    const random = this.#random;
    return {
      isAlive,
      pass,
      isAway: () => this.databaseAway.has('all') || this.databaseAway.has(place),
      latencyMs: () => this.databaseSlow * (random.chance(0.03) ? random.between(5, 60) : random.between(0.1, 1.5)),
      fails: () => this.databaseFails > 0 && random.chance(this.databaseFails),
      losesAnswer: () => this.databaseLoses > 0 && random.chance(this.databaseLoses),
    };
  }
}
