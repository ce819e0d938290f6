/** The far ends of calls: phones behind a carrier, and an application's WebSocket servers, each with a will of its own. */
import type { Leg, LegListener, LegSignal, LegTransfers } from '../../src/call/ports/leg.ts';
import type { LegEnd } from '../../src/notice/signal.ts';
import type { SimulatedMedia } from './media.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { LegSound } from './sound.ts';

export interface FarEndWorld {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly isAlive: () => boolean;
  readonly media: SimulatedMedia;
}

const hungUp = (by: LegEnd['by']): LegEnd => ({ cause: 'completed', by, description: 'The call was hung up' });

/** What far ends have in common: signals in order, sound, and one end. */
abstract class FarEnd implements Leg {
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
    if (!this.world.isAlive()) return;
    if (this.#listener === undefined) this.#unheard.push(signal);
    else this.#listener(signal);
  }

  protected later(ms: number, run: () => void): void {
    this.world.scheduler.after(ms, () => {
      if (this.world.isAlive()) run();
    });
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

const TIMED_OUT_MS = 5_500;

/** What a phone does of itself. Milliseconds. */
export interface PhoneWill {
  readonly direction: 'inbound' | 'outbound';
  /** After so long it answers, is busy, or does nothing (an outbound call). */
  readonly reaction: 'answers' | 'busy' | 'silent';
  readonly reactsAfterMs: number;
  readonly hasEarlyMedia: boolean;
  /** It hangs up by itself so long after the call began. */
  readonly hangsUpAfterMs: number;
  /** Keys, pressed so long after the answer, one every 300 ms; `w` is a pause. */
  readonly keys: string;
  readonly keysAfterMs: number;
  /** It confirms no order and never hangs up: the network is cut. */
  readonly isDeaf: boolean;
}

export class Phone extends FarEnd {
  readonly #will: PhoneWill;
  #isHeld = false;

  constructor(world: FarEndWorld, will: PhoneWill, onOver: () => void) {
    super(world, onOver);
    this.#will = will;
    if (will.direction === 'inbound') this.later(will.hangsUpAfterMs, () => this.#hangUpItself());
  }

  get transfers(): LegTransfers {
    return {
      trunk: 'trunk',
      permits: () => true,
      replacement: () => (this.isUp && !this.isOver ? '<sip:far@end.invalid?Replaces=1>' : undefined),
      transfer: () => this.#transfer(),
    };
  }

  start(): void {
    const { direction, reactsAfterMs, reaction, hasEarlyMedia, hangsUpAfterMs } = this.#will;
    if (direction === 'inbound') return;
    this.later(this.world.random.between(20, 300), () => this.#unlessOver({ type: 'leg.ringing' }));
    if (hasEarlyMedia) this.later(reactsAfterMs / 2, () => this.#unlessOver({ type: 'leg.early_media' }));
    this.later(reactsAfterMs, () => {
      if (reaction === 'answers') this.#answered();
      else if (reaction === 'busy') this.#over({ cause: 'busy', by: 'callee', description: 'Busy here' });
    });
    this.later(reactsAfterMs + hangsUpAfterMs, () => this.#hangUpItself());
  }

  #unlessOver(signal: LegSignal): void {
    if (!this.isOver) this.signal(signal);
  }

  #answered(): void {
    if (this.isOver || this.isUp) return;
    this.isUp = true;
    this.signal({ type: 'leg.answered' });
    const { keys, keysAfterMs } = this.#will;
    for (const [at, digit] of [...keys].entries())
      this.later(keysAfterMs + at * 300, () => {
        if (!this.isOver && digit !== 'w')
          this.signal({ type: 'leg.media', notice: { type: 'digit', digit, durationMs: 100, method: 'rfc4733' } });
      });
    if (this.world.random.chance(0.15)) this.#holdsNowAndThen();
  }

  #holdsNowAndThen(): void {
    this.later(this.world.random.between(200, 9_000), () => {
      if (this.isOver) return;
      this.#isHeld = !this.#isHeld;
      this.signal({ type: this.#isHeld ? 'leg.held' : 'leg.resumed' });
      this.#holdsNowAndThen();
    });
  }

  #hangUpItself(): void {
    if (this.#will.isDeaf) return;
    this.#over(hungUp(this.#will.direction === 'inbound' ? 'caller' : 'callee'));
  }

  #over(end: LegEnd): void {
    this.end({ type: 'leg.ended', end });
  }

  /** What was ordered takes effect a little later, where the far end still hears. */
  #ordered(run: () => void): void {
    if (!this.#will.isDeaf) this.later(this.world.random.between(5, 250), run);
  }

  /** The sound of a call whose end nobody confirms is given back when its transaction has timed out. */
  #ending(run: () => void): void {
    if (this.#will.isDeaf) this.later(TIMED_OUT_MS, () => void this.audio?.close());
    this.#ordered(run);
  }

  override answer(): void {
    this.#ordered(() => this.#answered());
  }

  override startEarlyMedia(): void {
    this.#ordered(() => this.#unlessOver({ type: 'leg.early_media' }));
  }

  override reject(): void {
    this.#ending(() => this.#over({ cause: 'rejected', by: 'callee', description: 'Declined' }));
  }

  override cancel(): void {
    this.#ending(() => this.#over({ cause: 'cancelled', by: 'caller', description: 'Cancelled' }));
  }

  hangup(): void {
    this.#ending(() => this.#over(hungUp(this.#will.direction === 'inbound' ? 'callee' : 'caller')));
  }

  hold(on: boolean): void {
    this.#ordered(() => this.#unlessOver({ type: 'leg.own_hold', on }));
  }

  sendDigits(operationUuid: string, digits: string, durationMs: number, gapMs: number): void {
    this.later(digits.length * (durationMs + gapMs), () => {
      if (!this.isOver) this.signal({ type: 'leg.media', notice: { type: 'keys.sent', keysOf: operationUuid } });
    });
  }

  detectMachine(timeoutMs: number): void {
    const { random } = this.world;
    const afterMs = random.between(500, timeoutMs);
    const isMachine = random.chance(0.5);
    this.later(afterMs, () => {
      if (this.isOver) return;
      const result = isMachine ? 'machine' : 'human';
      this.signal({ type: 'leg.media', notice: { type: 'machine.detected', result, afterMs: Math.floor(afterMs) } });
    });
    if (isMachine)
      this.later(afterMs + random.between(100, 4_000), () => {
        if (!this.isOver) this.signal({ type: 'leg.media', notice: { type: 'machine.greeting_ended', beep: true } });
      });
  }

  probe(): void {
    this.#ordered(() => this.#unlessOver({ type: 'leg.alive' }));
  }

  secure(): void {}

  #transfer(): void {
    const { random } = this.world;
    const outcome = random.int(0, 3);
    const at = random.between(20, 2_000);
    if (outcome === 0) return;
    this.later(at / 2, () =>
      this.#unlessOver(
        outcome === 1 ? { type: 'leg.transfer', phase: 'refused', status: 603 } : { type: 'leg.transfer', phase: 'accepted' },
      ),
    );
    if (outcome === 1) return;
    this.later(at, () =>
      this.#unlessOver(
        outcome === 2 ? { type: 'leg.transfer', phase: 'completed' } : { type: 'leg.transfer', phase: 'failed', status: 486 },
      ),
    );
  }
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
