/** The live Sessions of a node by their identifiers, and how many each application has. */
import { LIVE_SESSIONS_MAX } from '../limits.ts';
import type { SessionActor } from './session/session-actor.ts';

export class LiveSessions {
  readonly #actors = new Map<string, SessionActor>();
  readonly #counts = new Map<string, number>();
  readonly #perAppMax: number;

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
  }
}
