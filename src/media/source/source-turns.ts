/**
 * The sources that each application opens at a time, at this node. Whoever asks for more waits for a turn, so that an
 * application whose servers never answer takes none of the descriptors that the others need.
 */
import { Semaphore } from '../../bounds/semaphore.ts';
import { TurnBudget } from '../../bounds/turn-budget.ts';
import {
  PLAYLISTS_OF_APP_OPENING_MAX,
  PLAYLISTS_OF_APP_WAITING_MAX,
  SOURCE_CONNECTIONS_OF_APP_OPENING_MAX,
  SOURCES_BEGUN_A_TURN_MAX,
} from '../../limits.ts';

interface Turns {
  readonly playlists: Semaphore;
  readonly connections: Semaphore;
  /** Jobs that run or wait. */
  jobs: number;
}

export class SourceTurns {
  /** The turns of the applications that have jobs. */
  readonly #apps = new Map<string, Turns>();
  readonly #begun = new TurnBudget(SOURCES_BEGUN_A_TURN_MAX);

  /**
   * Runs the admission of a playlist, or of a stream, when it is its turn. Undefined: too many wait, or `signal` was
   * aborted before. There are more connections than playlists, so that those which wait for their first ones hold up
   * none that have theirs.
   */
  playlist<T>(appUuid: string, signal: AbortSignal, job: () => Promise<T>): Promise<T | undefined> {
    return this.#run(appUuid, 'playlists', signal, job);
  }

  /** Runs a job that has a connection to the server of a source, when it is its turn. Undefined: as for a playlist. */
  connection<T>(appUuid: string, signal: AbortSignal, job: () => Promise<T>): Promise<T | undefined> {
    return this.#run(appUuid, 'connections', signal, async () => {
      await this.#begun.take(appUuid);
      return await job();
    });
  }

  async #run<T>(
    appUuid: string,
    kind: 'playlists' | 'connections',
    signal: AbortSignal,
    job: () => Promise<T>,
  ): Promise<T | undefined> {
    const turns = this.#apps.get(appUuid) ?? {
      playlists: new Semaphore(PLAYLISTS_OF_APP_OPENING_MAX, PLAYLISTS_OF_APP_WAITING_MAX),
      // Each playlist asks for no more than it opens at once, so that those that wait are bounded with the playlists.
      connections: new Semaphore(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX, Number.POSITIVE_INFINITY),
      jobs: 0,
    };
    this.#apps.set(appUuid, turns);
    turns.jobs++;
    try {
      return await turns[kind].run(signal, job);
    } finally {
      turns.jobs--;
      if (turns.jobs === 0) this.#apps.delete(appUuid);
    }
  }
}
