/** Hands the calls of a node that drains to others, one by one, and takes those of others (ports/session-moves.ts). */
import { type Clock, sleep } from '../../clock.ts';
import type { SessionRow } from '../../database/journal/journal.ts';
import {
  MOVE_CSEQ_STEP,
  MOVE_LOOK_MS,
  MOVE_PREPARED_MS,
  MOVE_RETRY_MS,
  MOVES_MAX,
  NODE_COMMAND_TIMEOUT_MS,
} from '../../limits.ts';
import type { Log } from '../../log.ts';
import { carriedOver, isMovable } from '../../machine/session/movable.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { Dialer, ResumedLeg } from '../ports/leg.ts';
import type { MovePeers, MoveReply, MoveRequest } from '../ports/session-moves.ts';
import type { SessionActor } from './session-actor.ts';

interface MoverOptions {
  readonly peers: MovePeers;
  readonly dialer: Pick<Dialer, 'resume'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  /** The live Sessions of this node. */
  all(): Iterable<SessionActor>;
  find(sessionUuid: string): SessionActor | undefined;
  row(appUuid: string, sessionUuid: string): Promise<SessionRow | undefined>;
  /** Takes the row of a Session from a node, at its epoch. False: it is not that node's any more. */
  take(sessionUuid: string, from: string, epoch: number): Promise<boolean>;
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
  /** When a call that could not go is tried again. */
  readonly #again = new Map<string, number>();
  #moving = 0;
  #isOn = false;

  constructor(options: MoverOptions) {
    this.#options = options;
    options.peers.serve((request, from, until) => this.#answer(request, from, until));
  }

  /** Begins to hand over every call, or ends that. */
  moveAll(on: boolean): void {
    if (on && !this.#isOn) {
      this.#isOn = true;
      void this.#run();
    }
    this.#isOn = on;
  }

  async #run(): Promise<void> {
    const { clock, all } = this.#options;
    while (this.#isOn) {
      for (const actor of all()) {
        const { sessionUuid } = actor.state;
        if (this.#moving >= MOVES_MAX) break;
        if (!isMovable(actor.state) || (this.#again.get(sessionUuid) ?? 0) > clock.now()) continue;
        // Nothing else is tried with it meanwhile.
        this.#again.set(sessionUuid, Infinity);
        this.#moving++;
        void this.#move(actor).then((moved) => {
          this.#moving--;
          if (moved) this.#again.delete(sessionUuid);
          else this.#again.set(sessionUuid, clock.now() + MOVE_RETRY_MS);
        });
      }
      for (const sessionUuid of this.#again.keys())
        if (this.#options.find(sessionUuid) === undefined) this.#again.delete(sessionUuid);
      await sleep(clock, MOVE_LOOK_MS);
    }
    this.#again.clear();
  }

  async #move(actor: SessionActor): Promise<boolean> {
    const { peers, log } = this.#options;
    const { sessionUuid, appUuid, membership } = actor.state;
    const snapshot = actor.snapshot();
    if (snapshot === undefined) return false;
    const near = membership === undefined ? [] : [membership.roomId];
    const nodeId = await peers.place(appUuid, snapshot.trunk, near).catch(() => undefined);
    if (nodeId === undefined) return false;
    const ahead = MOVE_CSEQ_STEP * (actor.epoch + 1);
    const prepared = await peers.ask(nodeId, { type: 'prepare', sessionUuid, snapshot, ahead });
    const given = prepared?.type === 'prepared' && (await actor.handOver((state) => this.#commit(nodeId, actor, state)));
    if (given) {
      log.info({ session_uuid: sessionUuid, to: nodeId }, 'a call goes on at another node');
      return true;
    }
    const why = prepared?.type === 'failed' ? prepared.why : prepared === undefined ? 'no answer' : 'it was not taken';
    log.warn({ session_uuid: sessionUuid, to: nodeId, why }, 'a call could not be handed over');
    void peers.ask(nodeId, { type: 'abort', sessionUuid });
    if (prepared?.type !== 'failed' || prepared.asked) actor.reclaim();
    return false;
  }

  /** Gives the Session away between two of its inputs. */
  async #commit(nodeId: string, { epoch, traceparent }: SessionActor, state: SessionState): Promise<boolean> {
    const { peers, clock, row, nodeId: own, handedOver } = this.#options;
    const { sessionUuid } = state;
    const request = { type: 'commit', sessionUuid, epoch, state, now: clock.now(), traceparent } as const;
    const reply = await peers.ask(nodeId, request);
    let given = reply?.type === 'committed';
    if (reply === undefined) {
      // From the timeout on it refuses the commit: what the row says then stays so.
      await sleep(clock, NODE_COMMAND_TIMEOUT_MS);
      given = await row(state.appUuid, sessionUuid).then(
        (found) => found !== undefined && found.nodeId !== own,
        () => false,
      );
    }
    if (given) handedOver(state, nodeId);
    return given;
  }

  async #answer(request: MoveRequest, from: string, until: number): Promise<MoveReply> {
    const { sessionUuid } = request;
    if (request.type === 'prepare') return await this.#prepare(request);
    const prepared = this.#prepared.get(sessionUuid);
    this.#prepared.delete(sessionUuid);
    prepared?.cancel();
    if (prepared === undefined) return refused('it is not prepared');
    const { leg } = prepared;
    const { clock, take, goOn } = this.#options;
    const isTaken =
      request.type === 'commit' && clock.now() < until && (await take(sessionUuid, from, request.epoch).catch(() => false));
    if (request.type === 'abort' || !isTaken) {
      leg.leg.handOver.release();
      return refused('it was not taken', true);
    }
    await goOn(carriedOver(request.state, clock.now() - request.now), leg, request.epoch + 1, request.traceparent);
    return { type: 'committed' };
  }

  async #prepare({ sessionUuid, snapshot, ahead }: Extract<MoveRequest, { type: 'prepare' }>): Promise<MoveReply> {
    const { dialer, clock } = this.#options;
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
