/** The drain of a node: what its row orders, and how the operator orders it. */
import type { Mover } from '../call/session/handover/mover.ts';
import type { SessionRegistry } from '../call/session/session-registry.ts';
import type { Carrier } from '../carrier/carrier.ts';
import type { Clock } from '../clock.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { NodeRow } from '../database/node/nodes.ts';
import type { Store } from '../database/store.ts';
import type { OperatorNodes } from '../http/operator/hooks.ts';
import type { Log } from '../log.ts';

/** The drain of this node, as its row orders it: no new calls, and the end of those that are left at its deadline. */
export class Drain {
  readonly #carrier: Pick<Carrier, 'drain'>;
  readonly #sessions: Pick<SessionRegistry, 'refuseNew' | 'endAll' | 'size'>;
  readonly #clock: Clock;
  readonly #log: Log;
  /** What hands calls to other nodes; undefined where there are none. */
  mover: Pick<Mover, 'moveAll'> | undefined;
  #since: number | undefined;
  #deadlineSec: number | undefined;
  #cancel = () => {};
  #isLast = false;

  constructor(
    carrier: Pick<Carrier, 'drain'>,
    sessions: Pick<SessionRegistry, 'refuseNew' | 'endAll' | 'size'>,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#carrier = carrier;
    this.#sessions = sessions;
    this.#clock = clock;
    this.#log = log;
  }

  get isOn(): boolean {
    return this.#since !== undefined || this.#isLast;
  }

  /** The process ends: of what its row says only the mode matters from here on. */
  last(): void {
    this.#isLast = true;
    this.#cancel();
  }

  /** Takes what the row says. Another deadline than before counts from now. */
  ordered({ drainingAt, drainSec, drainMode }: Pick<NodeRow, 'drainingAt' | 'drainSec' | 'drainMode'>): void {
    this.mover?.moveAll(drainingAt !== undefined && drainMode === 'move');
    if (this.#isLast) return;
    const isKnown = drainingAt === this.#since;
    if (isKnown && drainSec === this.#deadlineSec) return;
    this.#since = drainingAt;
    this.#deadlineSec = drainSec;
    this.#cancel();
    this.#cancel = () => {};
    if (drainingAt !== undefined && drainSec !== undefined)
      this.#cancel = this.#clock.at(this.#clock.now() + drainSec * 1000, () => this.#sessions.endAll());
    if (isKnown) return;
    this.#carrier.drain(drainingAt !== undefined);
    this.#sessions.refuseNew(drainingAt !== undefined);
    this.#log.info({ sessions: this.#sessions.size }, drainingAt === undefined ? 'in use again' : 'draining by order');
  }
}

/** The nodes as the operator API lists and drains them. */
export function operatorNodes({
  store: { nodes },
  cluster,
  drain,
}: {
  readonly store: Pick<Store, 'nodes'>;
  readonly cluster: Pick<Cluster, 'isSuspect' | 'isUnreached' | 'settingsApart'> | undefined;
  readonly drain: Pick<Drain, 'ordered'>;
}): OperatorNodes {
  const look = async (nodeId: string): Promise<void> => {
    const row = nodeId === nodes.nodeId ? await nodes.get(nodeId) : undefined;
    if (row !== undefined) drain.ordered(row);
  };
  return {
    list: async () =>
      (await nodes.list()).map((row) => ({
        ...row,
        here: row.nodeId === nodes.nodeId,
        suspect: cluster?.isSuspect(row.nodeId) ?? false,
        unreached: cluster?.isUnreached(row.nodeId) ?? false,
        settingsApart: cluster?.settingsApart(row.nodeId) ?? [],
      })),
    async drain(nodeId, deadlineSec, mode) {
      const done = await nodes.drain(nodeId, deadlineSec, mode);
      await look(nodeId);
      return done;
    },
    async undrain(nodeId) {
      const done = await nodes.undrain(nodeId);
      await look(nodeId);
      return done;
    },
  };
}
