/**
 * Lets the calls go that other nodes have taken over from this one (takeover.ts). They tell it over the bus. A node
 * that was cut off did not hear that, so it looks for itself when it is back: twice, since a statement may be under
 * way.
 */
import { type Clock, sleep } from '../../../clock.ts';
import type { SessionRow } from '../../../database/journal/journal.ts';
import { NODE_LEFT_LOOK_MS } from '../../../limits.ts';
import type { SessionState } from '../../../machine/session/session.ts';
import { untilStored } from '../../until-stored.ts';
import type { SessionActor } from '../session-actor.ts';

/** A live Session of this node. */
type Call = Pick<SessionActor, 'state' | 'abandon' | 'dropTaken'>;

interface TakenCallsOptions {
  readonly clock: Clock;
  /** The live Sessions of this node. */
  all(): Iterable<Call>;
  find(sessionUuid: string): Call | undefined;
  /** The live Sessions that are this node's by their rows. */
  mine(): Promise<readonly Pick<SessionRow, 'sessionUuid'>[]>;
  /** The node of a live Session. Undefined: it has ended. */
  owner(appUuid: string, sessionUuid: string): Promise<string | undefined>;
  /** A Session of this node goes on at none (''): it has no seat in a Room. */
  handedOver(state: SessionState, nodeId: ''): void;
}

export class TakenCalls {
  readonly #options: TakenCallsOptions;

  constructor(options: TakenCallsOptions) {
    this.#options = options;
  }

  /**
   * Another node tells that it has taken a Session. Its row says whether that is so still: somebody may have sent an
   * old message again. Where the database is away, the call goes on until the next write or look finds its epoch.
   */
  async told(nodeId: string, sessionUuid: string): Promise<void> {
    const actor = this.#options.find(sessionUuid);
    if (actor === undefined) return;
    const owner = await this.#options.owner(actor.state.appUuid, sessionUuid).catch(() => undefined);
    if (owner === nodeId) this.#let(actor, nodeId);
  }

  #let(actor: Call, nodeId: string): void {
    if (this.#options.find(actor.state.sessionUuid) === actor) actor.dropTaken(nodeId);
  }

  /** This node was cut off for so long that others may have taken its calls. */
  async look(): Promise<void> {
    const { clock } = this.#options;
    for (let look = 0; look < 2; look++) {
      if (look > 0) await sleep(clock, NODE_LEFT_LOOK_MS);
      await untilStored(clock, () => this.#look());
    }
  }

  async #look(): Promise<void> {
    const { all, find, mine, owner } = this.#options;
    // Others take answered calls only, whose rows were stored long ago.
    const before = [...all()].filter(({ state }) => state.phase === 'answered' && state.hasLeg);
    if (before.length === 0) return;
    const kept = new Set((await mine()).map(({ sessionUuid }) => sessionUuid));
    for (const actor of before) {
      const { appUuid, sessionUuid } = actor.state;
      if (kept.has(sessionUuid)) continue;
      const nodeId = await owner(appUuid, sessionUuid);
      if (find(sessionUuid) !== actor) continue;
      if (nodeId !== undefined) this.#let(actor, nodeId);
      else {
        // It was taken over, and has ended by now: nobody else gives its seat in a Room back here.
        this.#options.handedOver(actor.state, '');
        actor.abandon();
      }
    }
  }
}
