/**
 * Stories of a Session in which everything may happen that an application, a far end, the media plane, a clock and a
 * crash can do to it. The stories of single operations are in the files of these.
 */
import { expect, test } from 'bun:test';
import type { Event } from '../../src/event/event.ts';
import type { Command, SessionInput, Step } from '../../src/machine/session/input.ts';
import { carriedOver, isMovable } from '../../src/machine/session/movable.ts';
import { runningOf, runningText } from '../../src/machine/session/operation/running.ts';
import {
  connecting,
  inbound,
  nextDeadline,
  outbound,
  recovered,
  rises,
  type SessionState,
  takenOver,
} from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { LegEnd, MediaNotice } from '../../src/notice/signal.ts';
import fc from '../support/fast-check.ts';

const START = 1_000_000;
const about = { sessionUuid: 's', appUuid: 'a', callerId: '1', did: '2', orphanTimeoutMs: 120_000 };
const seat = { roomId: 'one', room: 1, muted: false, voiceActivityEvents: true };
const placed = { ...about, operationUuid: 'dial', ringTimeoutMs: 30_000, maxDurationMs: 600_000, clientState: '' };
const BEGINNINGS: readonly (() => SessionState)[] = [
  () => inbound(about, START),
  () => inbound({ ...about, inboundType: 'sip' }, START),
  () => inbound({ ...about, inboundType: 'webrtc' }, START),
  () => outbound(placed, START),
  () => outbound({ ...placed, detectMachineMs: 3_000 }, START),
  () => outbound({ ...placed, seat, sendDigits: '12', detectMachineMs: 3_000 }, START),
  () => connecting({ sessionUuid: 's', appUuid: 'a', operationUuid: 'dial', orphanTimeoutMs: 120_000, clientState: '' }, START),
  () => connecting({ sessionUuid: 's', appUuid: 'a', operationUuid: 'dial', orphanTimeoutMs: 9, clientState: '', seat }, START),
];

const terms = {
  minDigits: 1,
  maxDigits: 3,
  validDigits: '0123456789',
  terminators: ['#'],
  firstDigitTimeoutMs: 5_000,
  interDigitTimeoutMs: 5_000,
  totalTimeoutMs: 9_000,
  bargeIn: true,
};
const cvv = {
  kind: 'cvv',
  reference: 'cvv_1',
  maxAttempts: 2,
  firstDigitTimeoutMs: 5_000,
  interDigitTimeoutMs: 5_000,
  terminators: ['#'],
  acceptedBrands: [],
  cardBrand: undefined,
  hasPrompt: true,
  retryUrls: ['http://a/again'],
} as const;

/** What happens next: it may name what is under way just then. `at` picks one where there are several. */
type Move = (run: Story, at: number) => SessionInput | 'crash' | 'taken over' | 'handed over' | undefined;

const order =
  (command: Command): Move =>
  (run) => ({ type: 'command', command, operationUuid: run.newOperation() });
const orderOf =
  (type: 'stop_recording' | 'mask_recording' | 'unmask_recording'): Move =>
  (run, at) =>
    order({ type, recordingUuid: run.recording(at) })(run, at);
const heard =
  (notice: MediaNotice): Move =>
  () => ({ type: 'leg.media', notice });
const said =
  (signal: SessionInput): Move =>
  () =>
    signal;
const heardOf =
  (make: (run: Story, at: number) => MediaNotice): Move =>
  (run, at) => ({ type: 'leg.media', notice: make(run, at) });
const over = (cause: LegEnd['cause'], by: LegEnd['by'], more: Partial<LegEnd> = {}): LegEnd => ({
  cause,
  by,
  description: 'over',
  ...more,
});

const ANSWER: SessionInput = { type: 'command', command: { type: 'answer' }, operationUuid: 'answer' };
const PAYMENT = order({ type: 'collect_payment', terms: cvv, promptUrls: ['http://a/p'], cardUuid: 'card_1' });
const TRANSFER = order({ type: 'transfer', target: { number: '+1' }, timeoutMs: 20_000 });
const JOIN = order({ type: 'member_join', ...seat });
const JOINED = heardOf(({ state }) => ({ type: 'room.joined', room: state.membership?.room ?? 1 }));
const VOLUME = order({ type: 'member_volume', volume: 50, direction: 'both' });
const VOLUME_SET: Move = ({ state }, at) => {
  const set = picked(state.setting, at);
  return set && { type: 'volume_set', order: set, failed: at % 2 === 0 ? [] : ['to_member'] };
};
const TALKS = heard({ type: 'voice', talking: true });
const RECORD: Move = (run) => {
  const recordingUuid = run.newOperation();
  const asked = { recordingUuid, includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 };
  return { type: 'command', operationUuid: recordingUuid, command: { type: 'record', terms: asked } };
};
const key = (digit: string) => heard({ type: 'digit', digit, durationMs: 100, method: 'rfc4733' });

const PLAYS: readonly Move[] = [
  order({ type: 'play', urls: ['http://a/1'], loop: 1, volume: 100 }),
  order({ type: 'play_stream', url: 'http://a/s', volume: 100 }),
  order({ type: 'play_silence' }),
  order({ type: 'play_push', format: { encoding: 'mulaw', sample_rate: 8000 }, volume: 100 }),
  order({ type: 'stop_playback' }),
  order({ type: 'control_playback', control: { type: 'pause' } }),
  order({ type: 'control_playback', control: { type: 'resume' } }),
  ...(['playback.started', 'playback.completed', 'playback.stopped'] as const).map((type) =>
    heardOf((run, at) => ({ type, operationUuid: run.sound(at) })),
  ),
  heardOf((run, at) => ({ type: 'playback.failed', operationUuid: run.sound(at), reason: 'decode_error' })),
];
const KEYS: readonly Move[] = [
  order({ type: 'collect', terms, promptUrls: ['http://a/p'] }),
  order({ type: 'collect', terms: { ...terms, terminators: [], bargeIn: false }, promptUrls: [] }),
  order({ type: 'cancel_collect' }),
  PAYMENT,
  order({ type: 'collect_payment', terms: { ...cvv, hasPrompt: false, retryUrls: [] }, promptUrls: [], cardUuid: 'card_1' }),
  order({ type: 'cancel_payment', kind: 'cvv' }),
  ...['1', '2', '#', '*'].map(key),
  heard({ type: 'key.down', digit: '3', method: 'rfc4733' }),
  heard({ type: 'key.up' }),
  said({ type: 'leg.digit', digit: '5', durationMs: 100 }),
  order({ type: 'send_digits', digits: '123', durationMs: 100, gapMs: 100 }),
  heardOf(({ state }, at) => ({ type: 'keys.sent', keysOf: picked(state.sending, at)?.operationUuid ?? 'none' })),
];
const ROOMS: readonly Move[] = [
  JOIN,
  order({ type: 'member_join', ...seat, roomId: 'two', room: 2, muted: true }),
  order({ type: 'member_leave', roomId: 'one' }),
  order({ type: 'member_mute' }),
  order({ type: 'member_unmute' }),
  VOLUME,
  JOINED,
  heardOf(({ state }) => ({ type: 'room.left', room: state.membership?.room ?? 1 })),
  TALKS,
  heard({ type: 'voice', talking: false }),
  said({ type: 'room_closed', roomId: 'one' }),
  said({ type: 'room_moved', roomId: 'one', room: 3 }),
  VOLUME_SET,
];
const RECORDINGS: readonly Move[] = [
  RECORD,
  orderOf('stop_recording'),
  orderOf('mask_recording'),
  orderOf('unmask_recording'),
  heardOf((run, at) => ({ type: 'recording.started', recordingUuid: run.recording(at) })),
  heardOf((run, at) => ({ type: 'recording.ended', recordingUuid: run.recording(at), durationMs: 1_000, bytes: 1 })),
  heardOf((run, at) => ({
    type: 'recording.failed',
    recordingUuid: run.recording(at),
    reason: 'media_unavailable',
    durationMs: 10,
  })),
];
const CALL: readonly Move[] = [
  order({ type: 'answer' }),
  said({ type: 'leg.ringing' }),
  said({ type: 'leg.early_media' }),
  said({ type: 'leg.answered' }),
  said({ type: 'leg.connected' }),
  said({ type: 'leg.played', durationMs: 10 }),
  order({ type: 'hold' }),
  order({ type: 'unhold' }),
  ({ state }) => ({ type: 'leg.own_hold', on: state.holding }),
  said({ type: 'leg.held' }),
  said({ type: 'leg.resumed' }),
  said({ type: 'leg.alive' }),
  said({ type: 'leg.transfer_requested', target: 'sip:a@b' }),
  said({ type: 'hand_over' }),
  TRANSFER,
  said({ type: 'leg.transfer', phase: 'accepted' }),
  said({ type: 'leg.transfer', phase: 'completed' }),
  said({ type: 'leg.transfer', phase: 'refused', status: 603 }),
  heard({ type: 'machine.detected', result: 'machine', afterMs: 10 }),
  heard({ type: 'machine.detected', result: 'human', afterMs: 10 }),
  heard({ type: 'machine.greeting_ended', beep: true }),
];
const ENDS: readonly Move[] = [
  order({ type: 'hangup' }),
  order({ type: 'cancel' }),
  order({ type: 'reject', reason: 'busy' }),
  heard({ type: 'media.timeout' }),
  heard({ type: 'media.lost' }),
  said({ type: 'shutdown' }),
  said({ type: 'broken' }),
  (run) => run.gone(over('busy', 'callee')),
  (run) => run.gone(over('completed', 'caller', { hungUp: true })),
  (run) => run.gone(over('timeout', 'system', { orphaned: true })),
  ({ state }) =>
    state.phase === 'connecting'
      ? { type: 'leg.failed', reason: 'connect_timeout', error: 'timeout', end: over('failed', 'network') }
      : undefined,
];
const LOSSES: readonly Move[] = [() => 'crash', () => 'taken over', () => 'handed over'];
/** Moves that seldom come in this order by chance. */
const CHAINS: readonly (readonly Move[])[] = [
  [TRANSFER, said({ type: 'leg.transfer', phase: 'accepted' })],
  [TRANSFER, said({ type: 'leg.transfer', phase: 'completed' })],
  [TRANSFER, said({ type: 'leg.transfer', phase: 'refused', status: 603 })],
  [heard({ type: 'machine.detected', result: 'machine', afterMs: 10 }), heard({ type: 'machine.greeting_ended', beep: true })],
  [PAYMENT, key('1'), key('2'), key('3'), key('#')],
  [JOIN, JOINED, TALKS],
  [JOIN, JOINED, VOLUME, VOLUME, VOLUME_SET],
  [RECORD, PAYMENT],
  [said({ type: 'leg.answered' }), () => 'crash'],
  [JOIN, JOINED, VOLUME, () => 'crash'],
  [RECORD, (run) => run.gone(over('completed', 'caller')), () => 'crash'],
  [said({ type: 'leg.held' }), () => 'taken over', said({ type: 'leg.resumed' })],
];

const picked = <T>(of: readonly T[], at: number): T | undefined => of[at % Math.max(1, of.length)];

const WEBSOCKET: ReadonlySet<string> = new Set(['leg.connected', 'leg.failed', 'leg.disconnected', 'leg.played']);

/** What is told about a Session from its beginning to its end, whichever process has it. */
class Story {
  state: SessionState;
  now = START;
  events: Event[] = [];
  /** The operations that were admitted, each with the event that ends it. */
  readonly admitted = new Map<string, RegExp>();
  /** The recordings of which their own rows tell: those that a crash, or patience, left without an end. */
  readonly left = new Set<string>();
  /** A dial that asked who answers was answered. */
  detects = false;
  /** Its leg went with its process, and nothing more is heard of it. */
  isLost = false;
  isAnswered = false;
  #operations = 0;

  constructor(state: SessionState) {
    this.state = state;
    this.give({ type: 'begin' });
  }

  newOperation = (): string => `op${++this.#operations}`;
  recording = (at: number): string => picked(this.state.recordings, at)?.recordingUuid ?? 'none';
  /** The name of what is heard, which is mostly the prompt or playback of now. */
  sound(at: number): string {
    const { playback, collect, collection } = this.state;
    const names = [
      ...(playback === undefined ? [] : [playback.operationUuid]),
      ...(collect === undefined ? [] : [`${collect.operationUuid}/prompt`]),
      ...(collection === undefined ? [] : [`${collection.operationUuid}/${collection.attempt}`]),
    ];
    return picked(names, at) ?? `op${at}`;
  }

  /** The last signal of its leg. */
  gone(end: LegEnd): SessionInput {
    if (this.state.type !== 'websocket') return { type: 'leg.ended', end };
    return { type: 'leg.disconnected', reason: 'remote_closed', closeCode: 1000, end };
  }

  go(next: ReturnType<Move>): void {
    const { type, phase, hasLeg, closedAt, collection } = this.state;
    if (next === 'crash') this.lose(false);
    else if (next === 'taken over') {
      const isKept = type !== 'websocket' && phase === 'answered' && hasLeg && closedAt === undefined;
      if (isKept && collection === undefined) this.lose(true);
    } else if (next === 'handed over') {
      if (isMovable(this.state)) this.#handOver();
    } else if (next !== undefined && this.#isHeard(next)) this.give(next);
  }

  give(input: SessionInput): void {
    const before = this.state;
    const next = step(before, input, this.now);
    this.state = next.state;
    this.events.push(...next.events);
    if (input.type === 'command' && next.refused === undefined) this.#admit(input.command, input.operationUuid, before);
    const { phase } = next.state;
    expect(phase === before.phase || rises(before.phase, phase)).toBe(true);
    // Nothing may wait for ever but a WebSocket that comes up, of which the leg tells in time.
    if (phase !== 'ended' && phase !== 'connecting' && input.type !== 'begin') expect(nextDeadline(next.state)).toBeDefined();
    this.#expectSecure(before, next);
    if (before.membership?.muted === true) {
      expect(next.events.some((event) => 'talking' in event && event.talking)).toBe(false);
    }
    if (!this.isAnswered && next.state.phase === 'answered') {
      this.isAnswered = true;
      this.detects = before.detection !== undefined;
      if (before.sendAtAnswer !== '') this.admitted.set('dial', /^dtmf\.sent$/);
    }
    const left = this.left.size;
    const stays = new Set(next.state.recordings.map(({ recordingUuid }) => recordingUuid));
    const told = new Set(
      [...next.events, ...next.state.untold].map((event) => (event.event === 'recording.ended' ? event.recording_uuid : '')),
    );
    for (const { recordingUuid } of before.recordings) {
      if (!stays.has(recordingUuid) && !told.has(recordingUuid)) this.left.add(recordingUuid);
    }
    // Only patience that is over, or a bug, ends a Session before its recordings.
    const isGivenUp = input.type === 'deadline' || input.type === 'broken';
    expect(this.left.size === left || (isGivenUp && this.state.phase === 'ended')).toBe(true);
  }

  /** What would have an end of its own stays behind at a planned hand-over, so that nothing may be under way. */
  #handOver(): void {
    const { talking: _, ...running } = runningOf(runningText(this.state));
    expect([running, this.state.recordings, this.state.collection]).toEqual([{}, [], undefined]);
    this.state = carriedOver(this.state, 0);
  }

  /** A call and a WebSocket signal what is theirs, and one whose process is lost signals nothing. */
  #isHeard({ type }: SessionInput): boolean {
    if (!type.startsWith('leg.')) return true;
    const isCommon = type === 'leg.media';
    return !this.isLost && (isCommon || WEBSOCKET.has(type) === (this.state.type === 'websocket'));
  }

  /** Nobody is told of keys, and no recording hears them, while a card or CVV is keyed in. */
  #expectSecure(before: SessionState, { state, events, effects }: Step): void {
    if (before.collection !== undefined) {
      expect(events.some(({ event }) => event === 'dtmf.received')).toBe(false);
      expect(effects.some((effect) => effect.do === 'mask_recording' && !effect.masked)).toBe(false);
    }
    if (state.collection === undefined) return;
    expect(state.recordings.every(({ masked, phase }) => masked || phase === 'stopping')).toBe(true);
  }

  /** Lets time pass. Of what falls due meanwhile nothing may stay due. */
  pass(ms: number): void {
    const until = this.now + ms;
    for (let turn = 0; ; turn++) {
      const due = nextDeadline(this.state);
      if (due === undefined || due > until) break;
      expect(turn).toBeLessThan(500);
      this.now = Math.max(this.now, due);
      this.give({ type: 'deadline' });
    }
    this.now = until;
  }

  /** Its process is lost. What was stored is taken up by another node, which goes on with the call, or as remains. */
  lose(goesOn: boolean): void {
    const { state } = this;
    const { phase, type, createdAt, answeredAt, membership, recordings } = state;
    const running = runningOf(runningText(state, goesOn ? 'call' : undefined));
    const roomId = membership?.phase === 'joined' ? membership.roomId : '';
    const remains = {
      ...{ ...about, phase, type, createdAt, answeredAt, roomId, running, clientState: '' },
      ...{ answered: answeredAt !== undefined, maxDurationMs: 600_000 },
    };
    // Their own rows tell of these.
    for (const { operationUuid } of recordings) this.admitted.delete(operationUuid);
    if (state.collection !== undefined) this.admitted.delete(state.collection.operationUuid);
    this.isLost = !goesOn;
    this.state = goesOn ? takenOver(remains, this.now) : recovered(remains, this.now);
    this.give({ type: 'begin' });
  }

  #admit(command: Command, operation: string, before: SessionState): void {
    if (/^play/.test(command.type)) this.admitted.set(operation, /^playback\.(ended|failed)$/);
    else if (command.type === 'stop_playback' || command.type === 'control_playback') {
      const isNone = before.playback === undefined || (before.playback.phase === 'stopping' && command.type !== 'stop_playback');
      if (isNone) this.admitted.set(operation, /^playback\.failed$/);
    } else if (command.type === 'collect') this.admitted.set(operation, /^digits\.collected$/);
    else if (command.type === 'collect_payment') this.admitted.set(operation, /^payment\.cvv\.collected$/);
    else if (command.type === 'send_digits') this.admitted.set(operation, /^dtmf\.sent$/);
    else if (command.type === 'transfer') this.admitted.set(operation, /^session\.transfer\.(completed|failed)$/);
    else if (command.type === 'record') this.admitted.set(operation, /^recording\.ended$/);
    else if (command.type === 'member_volume') {
      this.admitted.set(operation, /^room\.member\.volume_change(d|_failed)$/);
    }
  }
}

/** Each word of a pair is told by turns, and in the end neither is left open where `closes` says so. */
function expectTurns(events: readonly Event[], opens: (event: Event) => boolean | undefined, closes: boolean): void {
  let isOpen = false;
  for (const event of events) {
    const opening = opens(event);
    if (opening === undefined) continue;
    expect([event, opening]).toEqual([event, !isOpen]);
    isOpen = opening;
  }
  if (closes) expect(isOpen).toBe(false);
}

function expectWhole({ events, admitted, left, state, detects, isAnswered }: Story): void {
  const names = events.map(({ event }) => event);
  expect(names.filter((name) => name === 'session.ended')).toHaveLength(1);
  expect(names.at(-1)).toBe('session.ended');
  // By it an event finds its lane: without one it could overtake what came before it.
  for (const event of events) expect(event).toMatchObject({ session_uuid: about.sessionUuid });
  for (const once of [
    'session.created',
    'session.ringing_started',
    'session.early_media_started',
    'session.answered',
    'websocket.connected',
    'websocket.disconnected',
  ]) {
    expect(names.filter((name) => name === once).length).toBeLessThanOrEqual(1);
  }
  for (const [operation, end] of admitted) {
    const ends = events.filter(
      (event) => end.test(event.event) && 'operation_uuid' in event && event.operation_uuid === operation,
    );
    expect([operation, end, ends.length]).toEqual([operation, end, left.has(operation) ? 0 : 1]);
  }
  const isOf = (event: Event, by: string) => 'by' in event && event.by === by;
  for (const by of ['application', 'far_end']) {
    expectTurns(
      events,
      (event) =>
        isOf(event, by) && event.event === 'session.held'
          ? true
          : isOf(event, by) && event.event === 'session.resumed'
            ? false
            : undefined,
      false,
    );
  }
  const verdicts = events.flatMap((event) => (event.event === 'session.machine_detection.completed' ? [event.result] : []));
  const greetings = names.filter((name) => name === 'session.machine_greeting.ended');
  expect([verdicts.length, greetings.length]).toEqual([detects ? 1 : 0, verdicts[0] === 'machine' ? 1 : 0]);
  expectTurns(events, (event) => ('talking' in event ? event.talking : undefined), true);
  if (state.type !== 'websocket' && isAnswered) {
    const answered = names.indexOf('session.answered');
    expect(answered).toBeGreaterThanOrEqual(0);
    expect(names.slice(0, answered).filter((name) => /^(dtmf\.sent|recording|session\.(held|machine))/.test(name))).toEqual([]);
  }
}

const one = (of: readonly Move[]) => fc.constantFrom(...of.map((move) => [move]));
const moves = fc.oneof(
  { weight: 6, arbitrary: one(CALL) },
  { weight: 4, arbitrary: one(PLAYS) },
  { weight: 5, arbitrary: one(KEYS) },
  { weight: 4, arbitrary: one(ROOMS) },
  { weight: 3, arbitrary: one(RECORDINGS) },
  { weight: 2, arbitrary: fc.constantFrom(...CHAINS) },
  { weight: 1, arbitrary: one(LOSSES) },
  { weight: 1, arbitrary: one(ENDS) },
);

test('Whatever happens to a Session, a crash too, each operation has one end of its own, and the last word is one end.', () => {
  const wait = fc.oneof(
    { weight: 4, arbitrary: fc.nat(400) },
    { weight: 2, arbitrary: fc.nat(12_000) },
    { weight: 1, arbitrary: fc.nat(200_000) },
  );
  const steps = fc.array(fc.tuple(moves, fc.nat(7), wait), { maxLength: 60 });
  fc.assert(
    fc.property(fc.constantFrom(...BEGINNINGS), fc.nat(2), steps, (begins, calls, told) => {
      const story = new Story(begins());
      if (calls > 0) {
        if (story.state.phase === 'ringing') story.give(ANSWER);
        story.give(story.state.type === 'websocket' ? { type: 'leg.connected' } : { type: 'leg.answered' });
      }
      for (const [chain, at, ms] of told) {
        for (const move of chain) if (story.state.phase !== 'ended') story.go(move(story, at));
        story.pass(ms);
      }
      if (story.state.phase !== 'ended' && !story.isLost) story.give(story.gone(over('completed', 'callee')));
      story.pass(1_000_000);
      expectWhole(story);
    }),
    { numRuns: 2_000 },
  );
});
