/** What the far ends of calls have in common, and an application's WebSocket servers. Phones are in `phone.ts`. */
import type { Leg, LegListener, LegSignal } from '../../src/call/ports/leg.ts';
import type { LegEnd } from '../../src/notice/signal.ts';
import type { Gate, Timers } from './gate.ts';
import type { SimulatedMedia } from './media.ts';
import type { Random } from './random.ts';
import type { LegSound } from './sound.ts';

export interface FarEndWorld {
  readonly scheduler: Timers;
  readonly pass: Gate['pass'];
  readonly random: Random;
  readonly isAlive: () => boolean;
  readonly media: SimulatedMedia;
}

export const hungUp = (by: LegEnd['by']): LegEnd => ({ cause: 'completed', by, description: 'The call was hung up' });

/** What far ends have in common: signals in order, sound, and one end. */
export abstract class FarEnd implements Leg {
  protected readonly world: FarEndWorld;
  protected isUp = false;
  protected isOver = false;
  readonly #sound: LegSound;
  readonly #onOver: () => void;
  #listener: LegListener | undefined;
  #unheard: LegSignal[] = [];

  constructor(world: FarEndWorld, onOver: () => void) {
    this.world = world;
    this.#onOver = onOver;
    this.#sound = world.media.leg(
      (notice) => {
        // A leg that closes is out of its room as part of its end, which says why.
        if (!this.isOver || notice.type !== 'room.left') this.signal({ type: 'leg.media', notice });
      },
      () => this.signal({ type: 'leg.media', notice: { type: 'media.lost' } }),
    );
  }

  get audio() {
    return this.isOver ? undefined : this.#sound;
  }

  listen(listener: LegListener): void {
    this.#listener = listener;
    for (const signal of this.#unheard.splice(0)) listener(signal);
  }

  protected signal(signal: LegSignal): void {
    this.world.pass(() => {
      if (!this.world.isAlive()) return;
      if (this.#listener === undefined) this.#unheard.push(signal);
      else this.#listener(signal);
    });
  }

  protected later(ms: number, run: () => void): void {
    this.world.scheduler.after(ms, () => {
      if (this.world.isAlive()) run();
    });
  }

  /** Gives back what it holds, without a word. */
  protected letGo(): void {
    if (this.isOver) return;
    this.isOver = true;
    const listener = this.#listener ?? (() => {});
    this.#listener = (signal) => {
      if (signal.type === 'leg.media' && 'recordingUuid' in signal.notice) listener(signal);
    };
    this.#onOver();
    void this.#sound.close();
  }

  /** The last signal, once; the sound is closed before it. */
  protected end(signal: Extract<LegSignal, { readonly end: LegEnd }>): void {
    if (this.isOver) return;
    this.isOver = true;
    void this.#sound.close().then(() => {
      this.#onOver();
      this.signal(signal);
    });
  }

  abstract start(): void;
  abstract hangup(): void;
  ring(): void {}
  startEarlyMedia(): void {}
  answer(): void {}
  reject(): void {}
  cancel(): void {}
}

/** What a WebSocket server does of itself. */
export interface BotWill {
  readonly connects: boolean;
  readonly connectsAfterMs: number;
  readonly closesAfterMs: number;
}

export class Bot extends FarEnd {
  readonly #will: BotWill;
  /** It was hung up on: it connects no more. */
  #isGivenUp = false;

  constructor(world: FarEndWorld, will: BotWill, listener: LegListener) {
    super(world, () => {});
    this.#will = will;
    this.listen(listener);
  }

  start(): void {
    const { connects, connectsAfterMs, closesAfterMs } = this.#will;
    this.later(connectsAfterMs, () => {
      if (this.isOver || this.#isGivenUp) return;
      if (!connects) {
        const end: LegEnd = { cause: 'failed', by: 'network', description: 'Refused' };
        this.end({ type: 'leg.failed', reason: 'connection_refused', error: 'network', end });
        return;
      }
      this.isUp = true;
      this.signal({ type: 'leg.connected' });
      this.later(closesAfterMs, () => this.#close('remote_closed', 'callee'));
    });
  }

  #close(reason: 'remote_closed' | 'local_closed', by: LegEnd['by']): void {
    this.end({ type: 'leg.disconnected', reason, closeCode: 1000, end: hungUp(by) });
  }

  hear(): void {}

  hangup(): void {
    const wasUp = this.isUp;
    this.#isGivenUp = true;
    this.later(this.world.random.between(1, 100), () => {
      const end: LegEnd = { cause: 'cancelled', by: 'caller', description: 'Given up before it was connected' };
      if (wasUp) this.#close('local_closed', 'caller');
      else this.end({ type: 'leg.ended', end });
    });
  }

  override cancel(): void {
    this.hangup();
  }
}
