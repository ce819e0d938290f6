/**
 * What a start begins with: the database is opened while the rest of the program is loaded. Each takes about half of a
 * start, and the server works beside us.
 */
import { type Clock, systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { openStore, type Store } from '../database/store.ts';
import { newUuid } from '../id.ts';
import type { Log } from '../log.ts';

export interface Opening {
  readonly clock: Clock;
  /** Names this process in what it writes. */
  readonly nodeId: string;
  /** Rejects with one line where the database cannot be opened. */
  readonly store: Promise<Store>;
}

/** Begins to open the configured database, as a node of a cluster or alone. */
export function beginOpening(settings: Config, log: Log): Opening {
  const clock = systemClock();
  const nodeId = newUuid();
  const store = openStore(settings, log, clock, nodeId, settings.natsUrls === undefined ? 'one' : 'node');
  // `compose` awaits this promise and tells of a failure; one that comes earlier is no unhandled rejection.
  store.catch(() => undefined);
  return { clock, nodeId, store };
}
