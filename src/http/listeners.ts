/**
 * The listeners of recordings: how many there may be, and what becomes of one that takes nothing. A listener is given
 * bytes only when it has taken what it was given before, so each costs one slice of memory, and a slow one waits by
 * itself.
 */
import { Shares } from '../bounds/shares.ts';
import type { Clock } from '../clock.ts';
import { LISTENER_SHARES, LISTENER_STALL_MAX_MS, LISTENER_SWEEP_MS, LISTENERS_OF_ONE_MAX } from '../limits.ts';

/** The bytes that a listener hears. */
export interface ByteSource {
  /** Resolves with the next bytes, or with undefined when that was all. */
  next(): Promise<Uint8Array | undefined>;
  /** Gives up what is held; the end of `next` too. */
  close(): void;
}

/** The connection of a listener. */
export interface Connection {
  /** It may be silent for as long as there is nothing to send. */
  wait(): void;
  /** It has to go on within the usual time again. */
  resume(): void;
  /** It is closed soon, since it takes nothing. */
  drop(): void;
}

export class Listeners {
  readonly #clock: Clock;
  readonly #all = new Set<Listener>();
  readonly #shares = new Shares(LISTENER_SHARES);
  /** The listeners of each recording. */
  readonly #counts = new Map<string, number>();
  #sweeping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#all.size;
  }

  /**
   * A place for one more. Undefined: there is none, altogether, for this recording or for its application. It is given
   * back by `close`.
   */
  admit(recordingUuid: string, appUuid: string, connection: Connection): Listener | undefined {
    if ((this.#counts.get(recordingUuid) ?? 0) >= LISTENERS_OF_ONE_MAX) return undefined;
    if (!this.#shares.take(appUuid)) return undefined;
    const listener = new Listener(this.#clock, connection, () => {
      this.#all.delete(listener);
      this.#shares.give(appUuid);
      this.#count(recordingUuid, -1);
    });
    this.#all.add(listener);
    this.#count(recordingUuid, 1);
    this.#sweep();
    return listener;
  }

  #count(recordingUuid: string, by: 1 | -1): void {
    const count = (this.#counts.get(recordingUuid) ?? 0) + by;
    if (count > 0) this.#counts.set(recordingUuid, count);
    else this.#counts.delete(recordingUuid);
  }

  /** Cuts off who has taken nothing for too long, for as long as there is anyone. */
  #sweep(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#clock.at(this.#clock.now() + LISTENER_SWEEP_MS, () => {
      this.#sweeping = false;
      for (const listener of [...this.#all]) listener.cutIfStalled();
      if (this.#all.size > 0) this.#sweep();
    });
  }
}

export class Listener {
  readonly #clock: Clock;
  readonly #connection: Connection;
  readonly #gone: () => void;
  #source: ByteSource | undefined;
  /** When it was given what it has not taken yet. */
  #givenAt: number | undefined;
  #over = false;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(clock: Clock, connection: Connection, gone: () => void) {
    this.#clock = clock;
    this.#connection = connection;
    this.#gone = gone;
  }

  /**
   * The body of the response; it closes the listener, and the source with it. `prologue` comes before what the source
   * has.
   */
  listen(source: ByteSource, prologue?: Uint8Array): ReadableStream<Uint8Array> {
    this.#source = source;
    this.#connection.wait();
    let first = prologue;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          this.#controller = controller;
          this.#givenAt = undefined;
          try {
            const bytes = first ?? (await source.next());
            first = undefined;
            if (this.#over) return;
            if (bytes === undefined) {
              this.close();
              this.#connection.resume();
              controller.close();
              return;
            }
            this.#givenAt = this.#clock.now();
            controller.enqueue(bytes);
          } catch {
            this.#abort();
          }
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Gives its place back, and the source. May be called at any time, more than once. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#gone();
    this.#source?.close();
  }

  cutIfStalled(): void {
    if (this.#givenAt !== undefined && this.#clock.now() - this.#givenAt >= LISTENER_STALL_MAX_MS) this.#abort();
  }

  /** The body breaks off, and so does the connection: what was sent is not taken for the whole. */
  #abort(): void {
    if (this.#over) return;
    this.close();
    this.#connection.drop();
    // No reason is given, as the server would write it to its standard error.
    this.#controller?.error(undefined);
  }
}
