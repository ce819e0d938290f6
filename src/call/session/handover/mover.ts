/** Hands the calls of a node that drains to others, one by one, and takes those of others (ports/session-moves.ts). */
import { type Clock, sleep } from '../../../clock.ts';
import { MOVE_CSEQ_STEP, MOVE_LOOK_MS, MOVE_PREPARED_MS, MOVE_RETRY_MAX_MS, MOVE_RETRY_MS, MOVES_MAX } from '../../../limits.ts';
import type { Log } from '../../../log.ts';
import { carriedOver, isMovable } from '../../../machine/session/movable.ts';
import type { SessionState } from '../../../machine/session/session.ts';
import type { Dialer, ResumedLeg } from '../../ports/leg.ts';
import type { MovePeers, MoveReply, MoveRequest } from '../../ports/session-moves.ts';
import { untilStored } from '../../until-stored.ts';
import type { SessionActor } from '../session-actor.ts';
import { FarEndsAsked } from './far-ends-asked.ts';

/** A live Session of this node. */
type Call = Pick<SessionActor, 'state' | 'epoch' | 'traces' | 'snapshot' | 'handOver' | 'reclaim'>;

interface MoverOptions {
  readonly peers: MovePeers;
  readonly dialer: Pick<Dialer, 'resume'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  /** The live Sessions of this node. */
  all(): Iterable<Call>;
  find(sessionUuid: string): { readonly epoch: number } | undefined;
  /**
   * Takes the row of a Session from a node, this one or another, at its epoch. False: it is not that node's at that
   * epoch any more. It may be asked again where it was not answered.
   */
  take(sessionUuid: string, from: string, epoch: number): Promise<boolean>;
  /** The row of a Session is being taken by this node, or given, until the returned function is called. */
  hold(sessionUuid: string): () => void;
  /** Goes on with a Session here. */
  goOn(state: SessionState, leg: ResumedLeg, epoch: number, traceparent: string): Promise<void>;
  /** A Session of this node goes on at another: its seat in a Room is that one's. */
  handedOver(state: SessionState, nodeId: string): void;
}

const refused = (why: string, asked = false): MoveReply => ({ type: 'failed', why, asked });

export class Mover {
  readonly #options: MoverOptions;
  /** Calls whose far end has followed here, until their Session is committed. */
  readonly #prepared = new Map<string, { readonly leg: ResumedLeg; readonly cancel: () => void }>();
  /**
   * When a call that could not go is tried again, and after how long once more: a far end that has refused is asked
   * less and less often.
   */
  readonly #again = new Map<string, { readonly at: number; readonly nextMs: number }>();
  /** The Sessions that are being handed over, also by a drain that was taken back meanwhile: nothing else is tried. */
  readonly #moving = new Set<string>();
  readonly #asked: FarEndsAsked;
  #isOn = false;
  #isLooking = false;

  constructor(options: MoverOptions) {
    this.#options = options;
    this.#asked = new FarEndsAsked(options.clock, MOVES_MAX);
    options.peers.serve((request, from, until) => this.#answer(request, from, until));
  }

  /** Begins to hand over every call, or ends that. */
  moveAll(on: boolean): void {
    this.#isOn = on;
    if (on && !this.#isLooking) void this.#run();
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    this.#isLooking = true;
    while (this.#isOn) {
      this.#begin();
      if (this.#asked.free > 0) await sleep(clock, MOVE_LOOK_MS);
      else await this.#asked.untilHalfFree();
    }
    this.#isLooking = false;
    this.#again.clear();
  }

  /** Begins to hand over those whose turn it is, as many as may be asked for beside others. */
  #begin(): void {
    const { clock, all, find } = this.#options;
    for (const actor of all()) {
      const { sessionUuid } = actor.state;
      if (this.#asked.free === 0) break;
      const { at, nextMs } = this.#again.get(sessionUuid) ?? { at: 0, nextMs: MOVE_RETRY_MS };
      if (!isMovable(actor.state) || at > clock.now() || this.#moving.has(sessionUuid)) continue;
      this.#moving.add(sessionUuid);
      const moved = this.#move(actor).then((outcome) => {
        this.#moving.delete(sessionUuid);
        const now = clock.now();
        if (outcome === 'moved') this.#again.delete(sessionUuid);
        else if (outcome === 'not_now') this.#again.set(sessionUuid, { at: now + MOVE_RETRY_MS, nextMs });
        else this.#again.set(sessionUuid, { at: now + nextMs, nextMs: Math.min(2 * nextMs, MOVE_RETRY_MAX_MS) });
      });
      this.#asked.add(moved);
    }
    for (const sessionUuid of this.#again.keys()) if (find(sessionUuid) === undefined) this.#again.delete(sessionUuid);
  }

  /** Hands a call over. `refused`: its far end was asked, and stays here. */
  async #move(actor: Call): Promise<'moved' | 'refused' | 'not_now'> {
    const { peers, log } = this.#options;
    const { sessionUuid, appUuid, membership } = actor.state;
    const snapshot = actor.snapshot();
    if (snapshot === undefined) return 'not_now';
    const near = membership === undefined ? [] : [membership.roomId];
    const nodeId = await peers.place(appUuid, snapshot.trunk, near).catch(() => undefined);
    if (nodeId === undefined) return 'not_now';
    // The snapshot has the numbers of now: one step is beyond what this node sends until then, and below `reclaim`.
    const ahead = MOVE_CSEQ_STEP;
    const prepared = await peers.ask(nodeId, { type: 'prepare', sessionUuid, snapshot, ahead });
    const given = prepared?.type === 'prepared' && (await this.#give(nodeId, actor));
    if (given) {
      log.info({ session_uuid: sessionUuid, to: nodeId }, 'a call goes on at another node');
      return 'moved';
    }
    const why = prepared?.type === 'failed' ? prepared.why : prepared === undefined ? 'no answer' : 'it was not taken';
    log.warn({ session_uuid: sessionUuid, to: nodeId, why }, 'a call could not be handed over');
    void peers.ask(nodeId, { type: 'abort', sessionUuid });
    const isAsked = prepared?.type !== 'failed' || prepared.asked;
    if (isAsked) actor.reclaim();
    return isAsked ? 'refused' : 'not_now';
  }

  /** Its row may be at the next epoch before the Session is: it is not to be taken for another node's meanwhile. */
  async #give(nodeId: string, actor: Call): Promise<boolean> {
    const given = this.#options.hold(actor.state.sessionUuid);
    return await actor.handOver((state) => this.#commit(nodeId, actor, state)).finally(given);
  }

  /**
   * Gives the Session away between two of its inputs. Where the other node does not answer, the row decides: this node
   * raises its epoch, so that the other one cannot take it any more, or finds that it has.
   */
  async #commit(nodeId: string, { epoch, traces }: Call, state: SessionState): Promise<'given' | number> {
    const { peers, clock, take, nodeId: own, handedOver } = this.#options;
    const { sessionUuid } = state;
    const request = { type: 'commit', sessionUuid, epoch, state, now: clock.now(), traceparent: traces.latest } as const;
    const reply = await peers.ask(nodeId, request);
    if (reply === undefined && (await untilStored(clock, () => take(sessionUuid, own, epoch)))) return epoch + 1;
    if (reply !== undefined && reply.type !== 'committed') return epoch;
    handedOver(state, nodeId);
    return 'given';
  }

  async #answer(request: MoveRequest, from: string, until: number): Promise<MoveReply> {
    const { sessionUuid } = request;
    if (request.type === 'prepare') return await this.#prepare(request, until);
    const prepared = this.#prepared.get(sessionUuid);
    this.#prepared.delete(sessionUuid);
    prepared?.cancel();
    if (prepared === undefined) return refused('it is not prepared');
    const { leg } = prepared;
    if (request.type === 'commit' && this.#hasTaken(request)) {
      leg.leg.handOver.release();
      return { type: 'committed' };
    }
    if (request.type === 'commit' && this.#options.clock.now() < until && (await this.#takeUp(request, from, leg)))
      return { type: 'committed' };
    leg.leg.handOver.release();
    return refused('it was not taken', true);
  }

  /** Whether the Session goes on here by another leg: it was taken over while its node was silent (takeover.ts). */
  #hasTaken({ sessionUuid, epoch }: Extract<MoveRequest, { type: 'commit' }>): boolean {
    return (this.#options.find(sessionUuid)?.epoch ?? 0) > epoch;
  }

  /** Goes on with a Session here, once its row is this node's. False: it is not. */
  async #takeUp(
    { sessionUuid, epoch, state, now, traceparent }: Extract<MoveRequest, { type: 'commit' }>,
    from: string,
    leg: ResumedLeg,
  ): Promise<boolean> {
    const { clock, take, hold, goOn } = this.#options;
    const taken = hold(sessionUuid);
    try {
      if (!(await untilStored(clock, () => take(sessionUuid, from, epoch)))) return false;
      await goOn(carriedOver(state, clock.now() - now), leg, epoch + 1, traceparent);
      return true;
    } finally {
      taken();
    }
  }

  async #prepare({ sessionUuid, snapshot, ahead }: Extract<MoveRequest, { type: 'prepare' }>, until: number): Promise<MoveReply> {
    const { dialer, clock } = this.#options;
    // Whoever asked has given it up, and the far end back to itself: it would follow this node to nobody.
    if (clock.now() >= until) return refused('it came too late');
    if (dialer.resume === undefined || this.#prepared.has(sessionUuid)) return refused('it cannot be taken now');
    const leg = await dialer.resume(snapshot, ahead, MOVE_PREPARED_MS);
    if ('failed' in leg) return refused(leg.failed, leg.asked);
    const cancel = clock.at(clock.now() + MOVE_PREPARED_MS, () => {
      this.#prepared.delete(sessionUuid);
      leg.leg.handOver.release();
    });
    this.#prepared.set(sessionUuid, { leg, cancel });
    return { type: 'prepared' };
  }
}
