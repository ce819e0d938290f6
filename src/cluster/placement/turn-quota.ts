/**
 * `max_cps` of a trunk over all nodes. One node, found by rendezvous hashing, gives the turns away, each to the node
 * that asks for it. While a node has just come or gone, so that others may see another home, and where the home does
 * not answer, each node has the turns of its share: the rate divided by the number of nodes.
 */
import { Pace } from '../../bounds/pace.ts';
import type { Clock } from '../../clock.ts';
import { NODE_BEAT_MS, NODE_PING_TIMEOUT_MS, SIP_PACE_WAIT_MAX_MS } from '../../limits.ts';
import type { Bus } from '../bus/bus.ts';
import type { Members } from '../membership/members.ts';
import { homeOf } from './rendezvous.ts';

export interface TurnQuotaOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  readonly members: Pick<Members, 'rows' | 'changedAt'>;
  readonly nodeId: string;
  readonly clock: Clock;
}

export class TurnQuota {
  readonly #options: TurnQuotaOptions;
  /** The turns of all nodes where this one is the home, and those of this node everywhere. */
  readonly #pace = new Pace(SIP_PACE_WAIT_MAX_MS);

  constructor(options: TurnQuotaOptions) {
    this.#options = options;
    options.bus.answer('turn', async (body) => (isWish(body) ? { waitMs: this.#give(body) ?? null } : {}));
  }

  /**
   * Takes the next turn of a trunk for an application. The result is the wait in milliseconds, undefined when it would
   * be too long.
   */
  async take(trunk: string, appUuid: string, maxCps: number): Promise<number | undefined> {
    const { bus, clock, members, nodeId } = this.#options;
    const nodes = members.rows.map((row) => row.nodeId);
    const home = homeOf(trunk, nodes);
    const isSettled = clock.now() - members.changedAt >= 2 * NODE_BEAT_MS;
    if (home !== undefined && home !== nodeId && isSettled) {
      const wish: Wish = { trunk, appUuid, maxCps, aheadMs: this.#pace.ahead(trunk, clock.now()) ?? null };
      const result = await bus.ask(home, 'turn', wish, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
      if (result.outcome === 'answered' && isTurn(result.body)) {
        const { waitMs } = result.body;
        if (waitMs !== null) this.#pace.follow(trunk, clock.now() + waitMs);
        return waitMs ?? undefined;
      }
    }
    const isAlone = nodes.length < 2 || (home === nodeId && isSettled);
    return this.#pace.take(trunk, appUuid, isAlone ? maxCps : maxCps / nodes.length, clock.now());
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    this.#pace.keep(names);
  }

  #give({ trunk, appUuid = '', maxCps, aheadMs }: Wish): number | undefined {
    const { clock, members } = this.#options;
    const now = clock.now();
    // A new home follows the turns that the others know of.
    const isNew = now - members.changedAt < 2 * NODE_BEAT_MS + SIP_PACE_WAIT_MAX_MS;
    if (isNew && aheadMs !== null) this.#pace.follow(trunk, now + Math.min(aheadMs, SIP_PACE_WAIT_MAX_MS));
    return this.#pace.take(trunk, appUuid, maxCps, now);
  }
}

interface Wish {
  readonly trunk: string;
  /** The application that dials. A node of an older release does not say. */
  readonly appUuid?: string;
  readonly maxCps: number;
  /** How far ahead the last turn lies that the node has had, in milliseconds. */
  readonly aheadMs: number | null;
}

const isWish = (body: unknown): body is Wish =>
  typeof body === 'object' &&
  body !== null &&
  'trunk' in body &&
  typeof body.trunk === 'string' &&
  'maxCps' in body &&
  typeof body.maxCps === 'number' &&
  (!('appUuid' in body) || typeof body.appUuid === 'string') &&
  'aheadMs' in body &&
  (body.aheadMs === null || typeof body.aheadMs === 'number');
const isTurn = (body: unknown): body is { readonly waitMs: number | null } =>
  typeof body === 'object' && body !== null && 'waitMs' in body && (body.waitMs === null || typeof body.waitMs === 'number');
