/**
 * Goes on with the calls of a node that is lost, where CALL_TAKEOVER is on: their dialogs were stored with the answer.
 * Those of the process before on this DATA_DIR are taken as this one starts (own-calls.ts).
 *
 *   suspect, silent over NATS too ─rows taken by epoch→ re-INVITE ─answered→ the call goes on · else it is an orphan
 */

import type { Clock } from '../../../clock.ts';
import type { SessionRow } from '../../../database/journal/journal.ts';
import { warnUnlessAway } from '../../../database/journal/journal.ts';
import { MOVE_CSEQ_STEP, MOVE_PREPARED_MS, TAKEOVERS_MAX } from '../../../limits.ts';
import type { Log } from '../../../log.ts';
import { runningOf } from '../../../machine/session/operation/running.ts';
import { type SessionState, takenOver } from '../../../machine/session/session.ts';
import type { Dialer, LegSnapshot, ResumedLeg } from '../../ports/leg.ts';
import { FarEndsAsked } from './far-ends-asked.ts';

/**
 * What a lost node may have used since its row was written, for each node that has had the call since: the numbers of a
 * hand-over under way (MOVE_CSEQ_STEP), those of taking the far end back (twice as many), and its own requests.
 */
const TAKEOVER_CSEQ_STEP = 4 * MOVE_CSEQ_STEP;
/** The same of the versions of its description. */
const TAKEOVER_VERSIONS = 3;

interface TakeoverOptions {
  readonly dialer: Pick<Dialer, 'resume'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly orphanTimeoutMs: number;
  /** How far the clock of a node was ahead of this one's, in milliseconds. Undefined: they were not compared. */
  lead(nodeId: string): number | undefined;
  takeCalls(from: string, most: number, trunks: readonly string[]): Promise<readonly SessionRow[]>;
  /** The trunks that this node may use. Calls over others are left to nodes that may, or to theirs when it is back. */
  trunks(): readonly string[];
  /** Calls are being taken, until the returned function is called. */
  hold(): () => void;
  /** Tells all nodes which Sessions were taken, the one that they were taken from among them. */
  tell(sessions: readonly string[]): void;
  goOn(state: SessionState, leg: ResumedLeg, epoch: number): Promise<void>;
  /** The far end did not follow: the Session can only be ended. */
  orphan(row: SessionRow): void;
}

interface Kept {
  readonly leg: LegSnapshot;
  readonly maxDurationMs: number;
}

export class Takeover {
  readonly #options: TakeoverOptions;
  /** The nodes whose calls are being taken over, each with the end of that. */
  readonly #under = new Map<string, Promise<void>>();

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  /**
   * Takes over the calls of a node until it has none left, once for all who ask meanwhile. Those whose far ends are
   * silent hold up no others.
   */
  take(nodeId: string): Promise<void> {
    const under = this.#under.get(nodeId) ?? this.#takeAll(nodeId).finally(() => this.#under.delete(nodeId));
    this.#under.set(nodeId, under);
    return under;
  }

  /** Goes on with calls that are this node's by their rows already. Resolves when each has gone on or is an orphan. */
  async goOnWith(rows: readonly SessionRow[]): Promise<void> {
    const asked = new FarEndsAsked(this.#options.clock, TAKEOVERS_MAX);
    const going: Promise<void>[] = [];
    for (const row of rows) {
      if (asked.free === 0) await asked.untilHalfFree();
      const one = this.#goOn(row, 0).catch((error: unknown) => this.#warn(error, row.nodeId));
      going.push(one);
      asked.add(one);
    }
    await Promise.all(going);
  }

  async #takeAll(nodeId: string): Promise<void> {
    const taken = this.#options.hold();
    const going = new Set<Promise<void>>();
    const asked = new FarEndsAsked(this.#options.clock, TAKEOVERS_MAX);
    try {
      while (await this.#takeSome(nodeId, going, asked)) await asked.untilHalfFree();
    } catch (error) {
      this.#warn(error, nodeId);
    } finally {
      await Promise.all(going);
      taken();
    }
  }

  /** Takes some of the calls, as many as may go beside those of `going`. Resolves with false when none is left. */
  async #takeSome(nodeId: string, going: Set<Promise<void>>, asked: FarEndsAsked): Promise<boolean> {
    const { takeCalls, trunks, tell, log } = this.#options;
    const rows = await takeCalls(nodeId, asked.free, trunks());
    if (rows.length === 0) return false;
    log.warn({ node_id: nodeId, sessions: rows.length }, 'calls of a lost node go on at this one');
    tell(rows.map(({ sessionUuid }) => sessionUuid));
    const lead = this.#options.lead(nodeId) ?? 0;
    for (const row of rows) {
      const one = this.#goOn(row, lead)
        .catch((error: unknown) => this.#warn(error, nodeId))
        .finally(() => going.delete(one));
      going.add(one);
      asked.add(one);
    }
    return true;
  }

  #warn(error: unknown, nodeId: string): void {
    warnUnlessAway(this.#options.log, error, { node_id: nodeId }, 'the calls of a lost node could not be taken over');
  }

  /** `lead`: how far the clock by which the row was written is ahead of this one, in milliseconds. */
  async #goOn(row: SessionRow, lead: number): Promise<void> {
    const { dialer, clock, log, orphanTimeoutMs, goOn, orphan } = this.#options;
    const running = runningOf(row.running);
    const { leg: stored, maxDurationMs }: Kept = JSON.parse(running.call ?? '{}');
    const version = stored.origin.version + TAKEOVER_VERSIONS * row.epoch;
    const snapshot = { ...stored, origin: { ...stored.origin, version } };
    const leg = await dialer.resume?.(snapshot, TAKEOVER_CSEQ_STEP * row.epoch, MOVE_PREPARED_MS).catch(() => undefined);
    if (leg === undefined || 'failed' in leg) {
      log.warn({ session_uuid: row.sessionUuid, why: leg?.failed ?? 'no carrier' }, 'a call could not be taken over');
      orphan(row);
      return;
    }
    const answeredAt = row.answeredAt === undefined ? undefined : row.answeredAt - lead;
    const remains = { ...row, answeredAt, phase: row.state, running, orphanTimeoutMs, maxDurationMs };
    await goOn(takenOver(remains, clock.now()), leg, row.epoch);
  }
}
