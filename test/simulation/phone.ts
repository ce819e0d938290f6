/**
 * Phones behind a carrier, each with a will of its own. A phone outlives the node that has its call: its `Line` is what
 * it does and which node it hears, and a `Phone` is the leg of one node. A node that goes on with the call asks the
 * phone to follow, as a re-INVITE would: a phone obeys whoever asks with the highest number (RFC 3261 §12.2.2).
 */

import type { LegHandOver, LegSignal, LegSnapshot, LegTransfers, ResumedLeg } from '../../src/call/ports/leg.ts';
import type { TrunkRow } from '../../src/database/trunk/trunks.ts';
import { MOVE_CSEQ_STEP } from '../../src/limits.ts';
import type { LegEnd, MediaNotice } from '../../src/notice/signal.ts';
import { FarEnd, type FarEndWorld, hungUp } from './far-end.ts';
import type { Timers } from './gate.ts';
import type { Random } from './random.ts';

const TIMED_OUT_MS = 5_500;
/** How far ahead a node asks that has its call back. */
const RECLAIM_NUMBERS = 2 * MOVE_CSEQ_STEP;
const REFUSES = 0.08;

/** What a phone does of itself. Milliseconds. */
export interface PhoneWill {
  readonly direction: 'inbound' | 'outbound';
  /** What it does when it is called: it answers, is busy, or does nothing. */
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

/** The phones of all calls, by the Call-ID of their dialogs. */
export type Lines = Map<string, Line>;

export class Line {
  readonly callId: string;
  readonly will: PhoneWill;
  isUp = false;
  isOver = false;
  readonly #scheduler: Timers;
  readonly #random: Random;
  /** The leg that it hears, and the number of the last request that it obeyed. */
  #leg: Phone | undefined;
  #number = 0;
  #isHeld = false;

  constructor(lines: Lines, { scheduler, random }: Pick<FarEndWorld, 'scheduler' | 'random'>, will: PhoneWill) {
    this.callId = `call-${lines.size + 1}`;
    this.will = will;
    this.#scheduler = scheduler;
    this.#random = random;
    lines.set(this.callId, this);
  }

  begin(leg: Phone): void {
    this.#leg = leg;
    if (this.will.direction === 'inbound') this.#later(this.will.hangsUpAfterMs, () => this.#hangUpItself());
  }

  ring(): void {
    const { direction, reactsAfterMs, reaction, hasEarlyMedia, hangsUpAfterMs } = this.will;
    if (direction === 'inbound') return;
    this.#later(this.#random.between(20, 300), () => this.#leg?.told({ type: 'leg.ringing' }));
    if (hasEarlyMedia) this.#later(reactsAfterMs / 2, () => this.#leg?.told({ type: 'leg.early_media' }));
    this.#later(reactsAfterMs, () => {
      if (reaction === 'answers') this.answer();
      else if (reaction === 'busy') this.end({ cause: 'busy', by: 'callee', description: 'Busy here' });
    });
    this.#later(reactsAfterMs + hangsUpAfterMs, () => this.#hangUpItself());
  }

  #later(ms: number, run: () => void): void {
    this.#scheduler.after(ms, () => {
      if (!this.isOver) run();
    });
  }

  answer(): void {
    if (this.isOver || this.isUp) return;
    this.isUp = true;
    this.#leg?.answered();
    const { keys, keysAfterMs } = this.will;
    for (const [at, digit] of [...keys].entries()) {
      if (digit === 'w') continue;
      const upMs = keysAfterMs + at * 300;
      this.#later(Math.max(0, upMs - 100), () => this.#hears({ type: 'key.down', digit, method: 'rfc4733' }));
      this.#later(upMs, () => this.#hears({ type: 'digit', digit, durationMs: 100, method: 'rfc4733' }));
    }
    if (this.#random.chance(0.15)) this.#holdsNowAndThen();
  }

  #hears(notice: MediaNotice): void {
    this.#leg?.told({ type: 'leg.media', notice });
  }

  #holdsNowAndThen(): void {
    this.#later(this.#random.between(200, 9_000), () => {
      this.#isHeld = !this.#isHeld;
      this.#leg?.told({ type: this.#isHeld ? 'leg.held' : 'leg.resumed' });
      this.#holdsNowAndThen();
    });
  }

  #hangUpItself(): void {
    if (!this.will.isDeaf) this.end(hungUp(this.will.direction === 'inbound' ? 'caller' : 'callee'));
  }

  end(end: LegEnd): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#leg?.over(end);
  }

  /** An order of a leg arrives. One of a leg that the phone has left is refused, and ends that leg only. */
  obey(leg: Phone, run: () => void): void {
    this.#scheduler.after(this.#random.between(5, 250), () => {
      if (leg === this.#leg && !this.isOver) run();
      else leg.over(hungUp('network'));
    });
  }

  /** A node asks it to follow. Resolves with whether it does; never where the network is cut. */
  follow(leg: Phone): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (this.will.isDeaf) return promise;
    this.#scheduler.after(this.#random.between(10, 600), () => {
      const follows = !this.isOver && leg.number > this.#number && !this.#random.chance(REFUSES);
      if (follows) {
        this.#leg = leg;
        this.#number = leg.number;
        leg.told({ type: this.#isHeld ? 'leg.held' : 'leg.resumed' });
      }
      resolve(follows);
    });
    return promise;
  }
}

/** The trunk of all phones. */
export const TRUNK: TrunkRow = {
  name: 'trunk',
  uri: 'sip:192.0.2.1',
  username: undefined,
  password: undefined,
  register: false,
  inboundCidrs: [],
  maxChannels: undefined,
  codecs: undefined,
  settings: {},
  tlsKey: undefined,
};

/** The leg of one node to a phone. */
export class Phone extends FarEnd {
  readonly #line: Line;
  /** The number of its last request in the dialog. */
  #number: number;

  constructor(world: FarEndWorld, line: Line, onOver: () => void, number = 0) {
    super(world, onOver);
    this.#line = line;
    this.#number = number;
    this.isUp = line.isUp;
    if (number === 0) line.begin(this);
  }

  /** Goes on with the call of another node. */
  static async resume(
    world: FarEndWorld,
    line: Line,
    number: number,
    timeoutMs: number,
    onOver: () => void,
  ): Promise<ResumedLeg | { readonly failed: string; readonly asked: boolean }> {
    const leg = new Phone(world, line, onOver, number);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    void line.follow(leg).then(resolve);
    world.scheduler.after(timeoutMs, () => resolve(false));
    if (await promise) return { leg, listen: (listener) => leg.listen(listener) };
    leg.letGo();
    return { failed: 'the far end did not follow', asked: true };
  }

  get number(): number {
    return this.#number;
  }

  get transfers(): LegTransfers {
    return {
      trunk: TRUNK.name,
      permits: () => true,
      dialled: () => '',
      replacement: () => (this.isUp && !this.isOver ? '<sip:far@end.invalid?Replaces=1>' : undefined),
      isNamedBy: () => false,
      transfer: () => this.#transfer(),
    };
  }

  get handOver(): LegHandOver {
    const snapshot = () => (this.isUp && !this.isOver ? this.#snapshot() : undefined);
    return { snapshot, kept: snapshot, release: () => this.letGo(), reclaim: () => this.#reclaim() };
  }

  #snapshot(): LegSnapshot {
    const { callId, will } = this.#line;
    const numbers = { localNumber: this.#number, remoteNumber: undefined };
    const ends = { localTag: 'l', remoteTag: 'r', local: '', remote: '', target: '', routes: [] };
    const peer = { transport: 'udp', host: 'carrier.invalid', port: 5060 } as const;
    const call = { direction: will.direction, dialog: { callId, ...ends, ...numbers }, peer, farAllowsUpdate: false };
    return { trunk: TRUNK.name, call, origin: { sessionId: 1, version: 1 } };
  }

  #reclaim(): void {
    if (this.isOver) return;
    this.#number += RECLAIM_NUMBERS;
    void this.#line.follow(this).then((follows) => {
      if (!follows && this.#line.isOver) this.over(hungUp('network'));
    });
  }

  start(): void {
    this.#line.ring();
  }

  /** The phone has answered. */
  answered(): void {
    this.isUp = true;
    this.told({ type: 'leg.answered' });
  }

  told(signal: LegSignal): void {
    if (!this.isOver) this.signal(signal);
  }

  over(end: LegEnd): void {
    this.end({ type: 'leg.ended', end });
  }

  /** What was ordered takes effect a little later, where the far end still hears. */
  #ordered(run: () => void): void {
    if (!this.#line.will.isDeaf) this.#line.obey(this, run);
  }

  /** The sound of a call whose end nobody confirms is given back when its transaction has timed out. */
  #ending(end: LegEnd): void {
    if (this.#line.will.isDeaf) this.later(TIMED_OUT_MS, () => void this.audio?.close());
    this.#ordered(() => this.#line.end(end));
  }

  override answer(): void {
    this.#ordered(() => this.#line.answer());
  }

  override startEarlyMedia(): void {
    this.#ordered(() => this.told({ type: 'leg.early_media' }));
  }

  override reject(): void {
    this.#ending({ cause: 'rejected', by: 'callee', description: 'Declined' });
  }

  override cancel(): void {
    this.#ending({ cause: 'cancelled', by: 'caller', description: 'Cancelled' });
  }

  hangup(): void {
    this.#ending(hungUp(this.#line.will.direction === 'inbound' ? 'callee' : 'caller'));
  }

  hold(on: boolean): void {
    this.#ordered(() => this.told({ type: 'leg.own_hold', on }));
  }

  sendDigits(operationUuid: string, digits: string, durationMs: number, gapMs: number): void {
    this.later(digits.length * (durationMs + gapMs), () =>
      this.told({ type: 'leg.media', notice: { type: 'keys.sent', keysOf: operationUuid } }),
    );
  }

  detectMachine(timeoutMs: number): void {
    const { random } = this.world;
    const afterMs = random.between(500, timeoutMs);
    const isMachine = random.chance(0.5);
    this.later(afterMs, () => {
      const result = isMachine ? 'machine' : 'human';
      this.told({ type: 'leg.media', notice: { type: 'machine.detected', result, afterMs: Math.floor(afterMs) } });
    });
    if (isMachine)
      this.later(afterMs + random.between(100, 4_000), () =>
        this.told({ type: 'leg.media', notice: { type: 'machine.greeting_ended', beep: true } }),
      );
  }

  probe(): void {
    this.#ordered(() => this.told({ type: 'leg.alive' }));
  }

  secure(): void {}

  #transfer(): void {
    const { random } = this.world;
    const outcome = random.int(0, 3);
    const at = random.between(20, 2_000);
    if (outcome === 0) return;
    this.later(at / 2, () =>
      this.told(
        outcome === 1 ? { type: 'leg.transfer', phase: 'refused', status: 603 } : { type: 'leg.transfer', phase: 'accepted' },
      ),
    );
    if (outcome === 1) return;
    this.later(at, () =>
      this.told(
        outcome === 2 ? { type: 'leg.transfer', phase: 'completed' } : { type: 'leg.transfer', phase: 'failed', status: 486 },
      ),
    );
  }
}
