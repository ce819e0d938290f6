/**
 * Goes on with the calls of the process that used this DATA_DIR before, where CALL_TAKEOVER is on and that process was
 * lost: their dialogs were stored with the answer. They are taken before anything else is, since whatever nobody takes
 * is an orphan, and go on once the sockets are open.
 *
 *   start ─rows taken by epoch→ sockets open ─re-INVITE, answered→ the call goes on · else it is an orphan
 */
import type { SessionRow } from '../../../database/journal/journal.ts';
import { LIVE_SESSIONS_MAX, OWN_CALL_EPOCH_MAX } from '../../../limits.ts';
import type { Log } from '../../../log.ts';
import type { SessionRegistry } from '../session-registry.ts';
import type { Takeover } from './takeover.ts';

interface OwnCallsOptions {
  readonly sessions: Pick<SessionRegistry, 'adoption' | 'expect' | 'orphan'>;
  readonly log: Log;
  takeCalls(from: string, most: number, trunks: readonly string[]): Promise<readonly SessionRow[]>;
  /** The trunks that this node may use, and what calls with devices have in place of one. */
  trunks(): Promise<readonly string[]>;
}

export class OwnCalls {
  readonly #options: OwnCallsOptions;
  #rows: readonly SessionRow[] = [];
  #taken: () => void = () => {};

  constructor(options: OwnCallsOptions) {
    this.#options = options;
  }

  /** Takes the calls of the process before. Until they go on, `adoption` takes them for nobody's. */
  async take(before: string): Promise<void> {
    const { sessions, log, takeCalls, trunks } = this.#options;
    this.#taken = sessions.adoption.holdAll();
    this.#rows = await sessions.adoption.one(takeCalls(before, LIVE_SESSIONS_MAX, await trunks()));
    if (this.#rows.length > 0) log.warn({ sessions: this.#rows.length }, 'goes on with the calls of the process before');
  }

  /**
   * Asks the far ends. Resolves when each call has gone on or is an orphan. One that has changed hands
   * OWN_CALL_EPOCH_MAX times is left an orphan: it may be what ends each process that goes on with it.
   */
  async goOn(takeover: Pick<Takeover, 'goOnWith'>): Promise<void> {
    const isWorn = ({ epoch }: SessionRow) => epoch > OWN_CALL_EPOCH_MAX;
    const { sessions } = this.#options;
    for (const row of this.#rows) sessions.expect(row);
    for (const row of this.#rows.filter(isWorn)) sessions.orphan(row);
    await takeover.goOnWith(this.#rows.filter((row) => !isWorn(row))).finally(this.#taken);
    this.#rows = [];
  }
}
