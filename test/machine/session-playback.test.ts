/**
 * Playback in the Session's machine: what is admitted, what is refused, and one terminal event for each play whatever
 * the order of things.
 */
import { describe, expect, test } from 'bun:test';
import type { Event } from '../../src/event/event.ts';
import type { PlaybackControl } from '../../src/machine/playback/playback.ts';
import type { Command, Effect, SessionInput } from '../../src/machine/session/input.ts';
import { inbound, outbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';
import fc from '../support/fast-check.ts';

const START = 1_000_000;

class Run {
  state: SessionState = outbound(
    {
      sessionUuid: 's',
      appUuid: 'a',
      callerId: '+15550001',
      did: '+15550002',
      orphanTimeoutMs: 120_000,
      operationUuid: 'dial',
      ringTimeoutMs: 30_000,
      maxDurationMs: 600_000,
      clientState: '',
    },
    START,
  );
  events: Event[] = [];
  effects: Effect[] = [];
  refused: string | undefined;

  constructor() {
    this.give({ type: 'begin' }).give({ type: 'leg.answered' });
    this.events = [];
    this.effects = [];
  }

  give(input: SessionInput): this {
    const next = step(this.state, input, START);
    this.state = next.state;
    this.events.push(...next.events);
    this.effects.push(...next.effects);
    this.refused = next.refused?.message;
    return this;
  }

  command(command: Command, operationUuid: string): this {
    return this.give({ type: 'command', command, operationUuid });
  }

  notice(notice: MediaNotice): this {
    return this.give({ type: 'leg.media', notice });
  }
}

const files: Command = { type: 'play', urls: ['http://a/1'], loop: 1, volume: 100 };
const stream: Command = { type: 'play_stream', url: 'http://a/live', volume: 50 };
const silence: Command = { type: 'play_silence' };
const push: Command = { type: 'play_push', format: { encoding: 'mulaw', sample_rate: 8000 }, volume: 100 };
const controls: readonly PlaybackControl[] = [
  { type: 'pause' },
  { type: 'resume' },
  { type: 'restart' },
  { type: 'seek', place: { offsetMs: -500 } },
];
const order = (control: PlaybackControl): Command => ({ type: 'control_playback', control });

describe('an order for the playback', () => {
  test('of files goes to the leg under the operation of the play', () => {
    const run = new Run().command(files, 'play');
    for (const control of controls) {
      run.effects = [];
      run.command(order(control), 'control');
      expect(run.effects).toEqual([{ do: 'control_playback', operationUuid: 'play', control }]);
      expect([run.refused, run.events]).toEqual([undefined, []]);
    }
  });

  test('where nothing plays, or what plays is being stopped, is admitted and fails as no_active_playback', () => {
    for (const begin of [[], [files, { type: 'stop_playback' } as const]]) {
      for (const control of controls) {
        const run = new Run();
        for (const command of begin) run.command(command, 'before');
        run.effects = [];
        run.command(order(control), 'control');
        expect(run.events).toEqual([
          { event: 'playback.failed', session_uuid: 's', operation_uuid: 'control', reason: 'no_active_playback' },
        ]);
        expect([run.refused, run.effects]).toEqual([undefined, []]);
      }
    }
  });

  test('of a stream, a silence or a push is refused, but to resume it changes nothing', () => {
    for (const play of [stream, silence, push]) {
      for (const control of controls) {
        const run = new Run().command(play, 'play');
        run.effects = [];
        run.command(order(control), 'control');
        expect([control.type, run.refused !== undefined]).toEqual([control.type, control.type !== 'resume']);
        expect([run.effects, run.events]).toEqual([[], []]);
      }
    }
  });
});

describe('a play', () => {
  test('of a stream or a push is played once, at the volume that was asked for', () => {
    expect(new Run().command(stream, 'play').effects).toEqual([{ do: 'play', operationUuid: 'play', loop: 1, volume: 50 }]);
    expect(new Run().command(push, 'play').effects).toEqual([{ do: 'play', operationUuid: 'play', loop: 1, volume: 100 }]);
  });

  test('that is being stopped is stopped once, and a start that comes late does not bring it back', () => {
    const run = new Run().command(files, 'play').command({ type: 'stop_playback' }, 'stop');
    const ordered = run.effects.length;
    run.notice({ type: 'playback.started', operationUuid: 'play' }).command({ type: 'stop_playback' }, 'again');
    expect([run.effects.length, run.events, run.state.playback?.phase]).toEqual([ordered, [], 'stopping']);
    run.notice({ type: 'playback.stopped', operationUuid: 'play' });
    expect(run.events).toMatchObject([{ event: 'playback.ended', reason: 'stopped' }]);
  });

  test('of silence after silence orders nothing of the leg', () => {
    const run = new Run().command(silence, 'one').command(silence, 'two');
    expect(run.effects).toEqual([]);
    expect(run.events).toMatchObject([{ event: 'playback.ended', operation_uuid: 'one', reason: 'stopped' }]);
  });

  test('names the source that failed, where one is known', () => {
    const failed = (more: { sourceIndex?: number }) =>
      new Run().command(files, 'play').notice({ type: 'playback.failed', operationUuid: 'play', reason: 'decode_error', ...more })
        .events;
    const event = {
      event: 'playback.failed',
      session_uuid: 's',
      operation_uuid: 'play',
      urls: ['http://a/1'],
      reason: 'decode_error',
    };
    expect<unknown>([failed({}), failed({ sourceIndex: 0 })]).toEqual([[event], [{ ...event, source_index: 0 }]]);
  });

  test('before the answer of a call that comes in needs early media, also of silence; not once it is being answered', () => {
    const ringing = inbound({ sessionUuid: 's', appUuid: 'a', callerId: '', did: '', orphanTimeoutMs: 120_000 }, START);
    const effects = (state: SessionState, command: Command) =>
      step(state, { type: 'command', command, operationUuid: 'o' }, START).effects;
    for (const play of [files, silence]) {
      expect(effects(ringing, play)[0]).toEqual({ do: 'early_media' });
      const answering = step(ringing, { type: 'command', command: { type: 'answer' }, operationUuid: 'o' }, START).state;
      expect(effects(answering, play)).not.toContainEqual({ do: 'early_media' });
    }
  });

  test('of a stream or a push is started and ended without urls, and its start is not an event', () => {
    for (const play of [stream, push]) {
      const run = new Run().command(play, 'play');
      run.notice({ type: 'playback.started', operationUuid: 'play' });
      run.notice({ type: 'playback.failed', operationUuid: 'play', reason: 'source_disconnected' });
      expect(run.events).toEqual([
        { event: 'playback.failed', session_uuid: 's', operation_uuid: 'play', reason: 'source_disconnected' },
      ]);
    }
  });

  test('of silence stops what plays, is never over by itself, and ends at once when it is stopped', () => {
    const run = new Run().command(files, 'one').command(silence, 'quiet');
    expect(run.effects).toEqual([
      { do: 'play', operationUuid: 'one', loop: 1, volume: 100 },
      { do: 'stop_playback', operationUuid: 'one' },
    ]);
    run.notice({ type: 'playback.stopped', operationUuid: 'one' });
    run.command({ type: 'stop_playback' }, 'stop');
    expect(run.events).toEqual([
      { event: 'playback.ended', session_uuid: 's', operation_uuid: 'one', urls: ['http://a/1'], reason: 'stopped' },
      { event: 'playback.ended', session_uuid: 's', operation_uuid: 'quiet', reason: 'stopped' },
    ]);
    expect(run.effects).toHaveLength(2);
    expect(run.command({ type: 'stop_playback' }, 'again').events.at(-1)).toMatchObject({ reason: 'no_active_playback' });
  });

  test('of silence is not over by the end of what it replaced under the same Operation-Id', () => {
    const run = new Run().command(files, 'same').command(silence, 'same');
    run.notice({ type: 'playback.stopped', operationUuid: 'same' });
    expect(run.state.playback?.kind).toBe('silence');
    expect(run.events).toHaveLength(1);
  });

  const terms = {
    minDigits: 1,
    maxDigits: 4,
    validDigits: '0123456789',
    terminators: ['#'],
    firstDigitTimeoutMs: 5_000,
    interDigitTimeoutMs: 5_000,
    totalTimeoutMs: 60_000,
    bargeIn: true,
  };

  test('under the Operation-Id of a collection, or before one, is not taken for its prompt', () => {
    const collect = { type: 'collect', terms, promptUrls: ['http://a/p'] } as const;
    const run = new Run().command(files, 'same').notice({ type: 'playback.started', operationUuid: 'same' });
    run.command(collect, 'same').notice({ type: 'playback.stopped', operationUuid: 'same' });
    expect(run.state.collect?.phase).toBe('prompting');
    run.command(files, 'same').notice({ type: 'playback.stopped', operationUuid: 'same/prompt' });
    expect(run.state.collect?.phase).toBe('collecting');
    run.notice({ type: 'playback.started', operationUuid: 'same' });
    expect(run.state.playback?.phase).toBe('playing');
    expect(run.events.map(({ event }) => event)).toEqual(['playback.started', 'playback.ended', 'playback.started']);
  });

  test('of silence over a prompt ends the prompt, and the collection goes on', () => {
    const run = new Run().command({ type: 'collect', terms, promptUrls: ['http://a/p'] }, 'collect').command(silence, 'quiet');
    expect(run.effects.at(-1)).toEqual({ do: 'stop_playback', operationUuid: 'collect/prompt' });
    run.notice({ type: 'playback.stopped', operationUuid: 'collect/prompt' });
    expect(run.state.collect?.phase).toBe('collecting');
  });

  test('of a prompt that breaks off just when a key has ended it leaves the collection to go on', () => {
    const run = new Run().command({ type: 'collect', terms, promptUrls: ['http://a/p'] }, 'collect');
    run.notice({ type: 'playback.started', operationUuid: 'collect/prompt' });
    run.notice({ type: 'digit', digit: '1', durationMs: 100, method: 'rfc4733' });
    run.notice({ type: 'playback.failed', operationUuid: 'collect/prompt', reason: 'source_disconnected' });
    run.notice({ type: 'digit', digit: '2', durationMs: 100, method: 'rfc4733' });
    run.notice({ type: 'digit', digit: '#', durationMs: 100, method: 'rfc4733' });
    expect(run.events.at(-1)).toMatchObject({ event: 'digits.collected', status: 'success', digits: '12', terminator: '#' });
  });

  test('has one terminal event, whatever happens in whatever order, and none comes after session.ended', () => {
    const plays = [files, stream, silence, push];
    type Move =
      | { readonly kind: 'play'; readonly which: number }
      | { readonly kind: 'stop' | 'bye' | 'hangup' }
      | { readonly kind: 'control'; readonly which: number }
      | { readonly kind: 'notice'; readonly what: number; readonly of: number };
    const move = fc.oneof(
      fc.record({ kind: fc.constant('play' as const), which: fc.nat(3) }),
      fc.record({ kind: fc.constantFrom('stop' as const, 'stop' as const, 'hangup' as const) }),
      fc.record({ kind: fc.constant('control' as const), which: fc.nat(3) }),
      fc.record({ kind: fc.constant('notice' as const), what: fc.nat(3), of: fc.nat(8) }),
    ) as fc.Arbitrary<Move>;
    fc.assert(
      fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
        const run = new Run();
        const admitted: string[] = [];
        let last = 0;
        for (const next of moves) {
          const operation = `op${++last}`;
          if (next.kind === 'play') {
            run.command(plays[next.which] ?? files, operation);
            if (run.refused === undefined) admitted.push(operation);
          } else if (next.kind === 'stop') run.command({ type: 'stop_playback' }, operation);
          else if (next.kind === 'hangup') run.command({ type: 'hangup' }, operation);
          else if (next.kind === 'control') run.command(order(controls[next.which] ?? { type: 'pause' }), operation);
          else if (next.kind === 'notice') {
            const operationUuid = admitted[next.of % Math.max(1, admitted.length)] ?? 'none';
            if (next.what === 3) run.notice({ type: 'playback.failed', operationUuid, reason: 'decode_error', sourceIndex: 0 });
            else {
              const type = (['playback.started', 'playback.completed', 'playback.stopped'] as const)[next.what];
              if (type !== undefined) run.notice({ type, operationUuid });
            }
          }
        }
        run.give({ type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: 'over' } });
        const terminal = run.events.filter(
          (event) =>
            event.event === 'playback.ended' || (event.event === 'playback.failed' && event.reason !== 'no_active_playback'),
        );
        expect(terminal.map((event) => ('operation_uuid' in event ? event.operation_uuid : '')).sort()).toEqual(
          [...admitted].sort(),
        );
        expect(run.events.at(-1)?.event).toBe('session.ended');
      }),
      { numRuns: 500 },
    );
  });
});
