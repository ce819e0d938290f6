/** A far end that is gone without a word, in the states where no media timeout runs. */
import { describe, expect, test } from 'bun:test';
import { sessionRow } from '../../src/call/session/session-row.ts';
import { afterEnd } from '../../src/machine/session/after-end.ts';
import type { SessionInput, Step } from '../../src/machine/session/input.ts';
import { inbound, nextDeadline, outbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const ORPHAN_MS = 120_000;
const about = { sessionUuid: 's', appUuid: 'a', callerId: '+15550009', did: '+15550002', orphanTimeoutMs: ORPHAN_MS };

/**
 * A Session on a clock of its own: inputs are taken, deadlines fire in between, and what was told and ordered is kept.
 */
class Simulation {
  readonly events: { readonly at: number; readonly event: string; readonly more: object }[] = [];
  readonly effects: { readonly at: number; readonly effect: string }[] = [];
  now = 0;
  state: SessionState;

  constructor(state: SessionState, ...inputs: SessionInput[]) {
    this.state = state;
    for (const input of inputs) this.take(input);
  }

  take(input: SessionInput): void {
    const next: Step = step(this.state, input, this.now);
    this.state = next.state;
    for (const { event, ...more } of next.events) this.events.push({ at: this.now, event, more });
    for (const effect of next.effects) this.effects.push({ at: this.now, effect: effect.do });
  }

  /** Lets time pass. `onProbe` says what the leg signals when it is asked for a sign of life. */
  run(until: number, onProbe: SessionInput | undefined = undefined): void {
    for (let due = nextDeadline(this.state); due !== undefined && due <= until; due = nextDeadline(this.state)) {
      this.now = due;
      const before = this.effects.length;
      this.take({ type: 'deadline' });
      if (onProbe !== undefined && this.effects.slice(before).some(({ effect }) => effect === 'probe')) this.take(onProbe);
    }
    this.now = until;
  }

  at(effect: string): number[] {
    return this.effects.flatMap((each) => (each.effect === effect ? [each.at] : []));
  }
  ended() {
    return this.events.find(({ event }) => event === 'session.ended');
  }
}

const held = () => new Simulation(inbound(about, 0), { type: 'begin' }, { type: 'leg.answered' }, { type: 'leg.held' });
const early = () =>
  new Simulation(
    outbound({ ...about, operationUuid: 'o', ringTimeoutMs: 600_000, maxDurationMs: 14_400_000, clientState: '' }, 0),
    { type: 'begin' },
    { type: 'leg.early_media' },
  );

describe('a held call', () => {
  test('is probed every half of the orphan timeout, and goes on while the far end answers', () => {
    const call = held();
    call.run(600_000, { type: 'leg.alive' });
    expect(call.at('probe')).toEqual([60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000, 480_000, 540_000, 600_000]);
    expect(call.ended()).toBeUndefined();
  });

  test('that shows no sign of life for the orphan timeout ends as never answered, and is hung up', () => {
    const call = held();
    call.run(300_000);
    expect(call.at('hangup')).toEqual([ORPHAN_MS]);
    expect(call.ended()?.more).toMatchObject({
      answered: false,
      duration_seconds: 0,
      hangup_cause: 'timeout',
      hangup_by: 'system',
    });
  });

  test('whose far end does not answer a probe ends as never answered; one whose far end forgot it keeps its duration', () => {
    for (const orphaned of [true, false]) {
      const call = held();
      const end = { cause: 'timeout', by: 'system', description: 'gone', ...(orphaned ? { orphaned } : {}) } as const;
      call.run(92_000);
      call.take({ type: 'leg.ended', end });
      expect(call.ended()?.more).toMatchObject({
        answered: !orphaned,
        duration_seconds: orphaned ? 0 : 92,
        hangup_cause: 'timeout',
        hangup_by: 'system',
      });
    }
  });

  test('that was silent was answered all the same: in its row, and for a reject after its end', () => {
    const end = { cause: 'timeout', by: 'system', description: 'gone', orphaned: true } as const;
    for (const ofLeg of [true, false]) {
      const call = new Simulation(inbound(about, 0), { type: 'begin' });
      call.now = 5_000;
      call.take({ type: 'leg.answered' });
      call.take({ type: 'leg.held' });
      if (ofLeg) call.take({ type: 'leg.ended', end });
      else call.run(300_000);
      const row = sessionRow(call.state, [], { nodeId: 'n', epoch: 1, trunk: '', call: undefined });
      expect([row.state, row.answered, row.answeredAt, afterEnd(row, 'reject')]).toEqual(['ended', true, 5_000, 'conflict']);
    }
  });

  test('that is resumed is not probed any more, nor ended for silence', () => {
    const call = held();
    call.run(50_000);
    call.take({ type: 'leg.resumed' });
    call.run(1_000_000);
    expect([call.at('probe'), call.ended()]).toEqual([[], undefined]);
  });

  test('is not kept up by what is played to it', () => {
    const call = held();
    call.run(100_000);
    call.take({ type: 'leg.media', notice: { type: 'playback.completed', operationUuid: 'p' } });
    call.run(200_000);
    expect(call.at('hangup')).toEqual([ORPHAN_MS]);
  });

  test('is kept up by a transfer that its far end refuses, and not by one that it does not answer', () => {
    for (const status of [603, 0]) {
      const call = held();
      call.run(50_000);
      call.take({ type: 'leg.transfer', phase: 'refused', status });
      call.run(300_000);
      expect(call.at('hangup')).toEqual([ORPHAN_MS + (status === 0 ? 0 : 50_000)]);
    }
  });
});

describe('an outbound call in early media', () => {
  test('that gets neither packets nor messages for the orphan timeout is cancelled and ends as timeout', () => {
    const call = early();
    call.run(200_000);
    expect(call.at('cancel')).toEqual([ORPHAN_MS]);
    expect(call.ended()?.more).toMatchObject({
      answered: false,
      duration_seconds: 0,
      hangup_cause: 'timeout',
      hangup_by: 'system',
    });
  });

  test('goes on until its ring timeout while packets or messages come', () => {
    const call = early();
    call.run(599_000, { type: 'leg.alive' });
    expect(call.at('cancel')).toEqual([]);
    call.run(610_000, { type: 'leg.alive' });
    expect(call.at('cancel')).toEqual([600_000]);
  });

  test('that is answered is not watched any more', () => {
    const call = early();
    call.take({ type: 'leg.answered' });
    call.run(1_000_000);
    expect([call.at('probe'), call.ended()]).toEqual([[], undefined]);
  });
});

describe('a call whose media worker is lost', () => {
  const lost: SessionInput = { type: 'leg.media', notice: { type: 'media.lost' } };
  const dialled = () =>
    outbound({ ...about, operationUuid: 'o', ringTimeoutMs: 600_000, maxDurationMs: 14_400_000, clientState: '' }, 0);
  const rows: readonly (readonly [string, () => Simulation, string, boolean])[] = [
    ['answered', () => new Simulation(inbound(about, 0), { type: 'begin' }, { type: 'leg.answered' }), 'hangup', true],
    ['held', held, 'hangup', true],
    ['in early media', early, 'cancel', false],
    ['dialled', () => new Simulation(dialled(), { type: 'begin' }), 'cancel', false],
    ['ringing here', () => new Simulation(inbound(about, 0), { type: 'begin' }), 'reject', false],
  ];
  for (const [name, make, order, answered] of rows) {
    test(`ends as a timeout by the system: ${name}`, () => {
      const call = make();
      call.now = 2_000;
      call.take(lost);
      call.take(lost);
      expect(call.at(order)).toEqual([2_000]);
      call.run(60_000);
      expect(call.ended()?.more).toMatchObject({ answered, hangup_cause: 'timeout', hangup_by: 'system' });
    });
  }
});

describe('a call that the application holds', () => {
  const answered = () => new Simulation(inbound(about, 0), { type: 'begin' }, { type: 'leg.answered' });
  const order = (type: 'hold' | 'unhold'): SessionInput => ({ type: 'command', command: { type }, operationUuid: 'o' });
  const refused = (call: Simulation, type: 'hold' | 'unhold') => step(call.state, order(type), call.now).refused?.status;

  test('tells session.held by the application once it has taken effect, and session.resumed at its end', () => {
    const call = answered();
    call.take(order('hold'));
    expect(call.events.map(({ event }) => event)).not.toContain('session.held');
    call.take({ type: 'leg.own_hold', on: true });
    call.take({ type: 'leg.held' });
    call.take(order('unhold'));
    call.take({ type: 'leg.own_hold', on: false });
    call.take({ type: 'leg.own_hold', on: false });
    call.take({ type: 'leg.resumed' });
    expect(call.events.slice(2).map(({ event, more }) => [event, 'by' in more && more.by])).toEqual([
      ['session.held', 'application'],
      ['session.held', 'far_end'],
      ['session.resumed', 'application'],
      ['session.resumed', 'far_end'],
    ]);
  });

  test('is held once and resumed once; a call that is not answered cannot be held', () => {
    const call = answered();
    expect(refused(call, 'unhold')).toBe(409);
    call.take(order('hold'));
    expect(refused(call, 'hold')).toBe(409);
    call.take(order('unhold'));
    expect(refused(call, 'unhold')).toBe(409);
    expect(refused(new Simulation(inbound(about, 0), { type: 'begin' }), 'hold')).toBe(409);
  });

  test('is watched for silence, because nothing is expected of its far end', () => {
    const call = answered();
    call.take(order('hold'));
    call.run(300_000);
    expect(call.at('hangup')).toEqual([ORPHAN_MS]);
  });
});
