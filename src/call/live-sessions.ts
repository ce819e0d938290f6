/** The live Sessions of a node by their identifiers: how many an application has, and when the last call has ended. */
import type { Clock } from '../clock.ts';
import { LIVE_SESSIONS_MAX } from '../limits.ts';
import type { SessionActor } from './session/session-actor.ts';

export class LiveSessions {
  readonly #actors = new Map<string, SessionActor>();
  readonly #counts = new Map<string, number>();
  readonly #perAppMax: number;
  #whenEmpty: (() => void) | undefined;

  /** `perAppMax` is the most that one application may begin at this node. */
  constructor(perAppMax = LIVE_SESSIONS_MAX) {
    this.#perAppMax = perAppMax;
  }

  get size(): number {
    return this.#actors.size;
  }

  /** Whether one more Session of the application may begin. */
  hasRoomFor(appUuid: string): boolean {
    return this.#actors.size < LIVE_SESSIONS_MAX && (this.#counts.get(appUuid) ?? 0) < this.#perAppMax;
  }

  get(sessionUuid: string): SessionActor | undefined {
    return this.#actors.get(sessionUuid);
  }

  has(sessionUuid: string): boolean {
    return this.#actors.has(sessionUuid);
  }

  values(): IterableIterator<SessionActor> {
    return this.#actors.values();
  }

  /** Adds a Session, whether or not there is room: what another node began is not refused. */
  add(actor: SessionActor): void {
    const { sessionUuid, appUuid } = actor.state;
    if (!this.#actors.has(sessionUuid)) this.#counts.set(appUuid, (this.#counts.get(appUuid) ?? 0) + 1);
    this.#actors.set(sessionUuid, actor);
  }

  delete(sessionUuid: string): void {
    const appUuid = this.#actors.get(sessionUuid)?.state.appUuid;
    if (appUuid === undefined) return;
    this.#actors.delete(sessionUuid);
    const left = (this.#counts.get(appUuid) ?? 0) - 1;
    if (left > 0) this.#counts.set(appUuid, left);
    else this.#counts.delete(appUuid);
    if (this.#whenEmpty !== undefined && !this.#hasCall()) this.#whenEmpty();
  }

  /** Resolves with true when the last call has ended, or with false after `ms`. Only one may wait at a time. */
  emptyWithin(ms: number, clock: Clock): Promise<boolean> {
    if (!this.#hasCall()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const stop = clock.at(clock.now() + ms, () => {
        this.#whenEmpty = undefined;
        resolve(false);
      });
      this.#whenEmpty = () => {
        stop();
        this.#whenEmpty = undefined;
        resolve(true);
      };
    });
  }

  /** Whether a Session has its leg, or its end is not told yet. What was taken over without its call has neither. */
  #hasCall(): boolean {
    for (const { state } of this.#actors.values()) if (state.hasLeg || state.closedAt !== undefined) return true;
    return false;
  }
}
