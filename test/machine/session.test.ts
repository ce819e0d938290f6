import { describe, expect, test } from 'bun:test';
import type { Event } from '../../src/event/event.ts';
import type { Command, Effect, SessionInput } from '../../src/machine/session/input.ts';
import { runningOf, runningText } from '../../src/machine/session/operation/running.ts';
import { connecting, inbound, nextDeadline, outbound, recovered, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const START = 1_000_000;
const about = { sessionUuid: 's', appUuid: 'a', callerId: '+15550001', did: '+15550002', orphanTimeoutMs: 120_000 };
const OPERATION = 'op-dial';
const dialled = () =>
  outbound({ ...about, operationUuid: OPERATION, ringTimeoutMs: 30_000, maxDurationMs: 600_000, clientState: '' }, START);

/** Drives a machine through inputs, each a number of ms after the one before, and keeps all that came out. */
class Run {
  state: SessionState;
  now = START;
  events: Event[] = [];
  effects: Effect[] = [];
  refused: string | undefined;

  constructor(state: SessionState) {
    this.state = state;
    this.give({ type: 'begin' });
  }

  give(input: SessionInput, afterMs = 0): this {
    this.now += afterMs;
    const next = step(this.state, input, this.now);
    this.state = next.state;
    this.events.push(...next.events);
    this.effects.push(...next.effects);
    this.refused = next.refused?.message;
    return this;
  }

  command(command: Command, operationUuid = 'op', afterMs = 0): this {
    return this.give({ type: 'command', command, operationUuid }, afterMs);
  }

  /** Lets time pass to the next deadline. */
  deadline(): this {
    const at = nextDeadline(this.state);
    if (at === undefined) throw new Error('no deadline is armed');
    return this.give({ type: 'deadline' }, Math.max(0, at - this.now));
  }

  get names(): string[] {
    return this.events.map((event) => event.event);
  }

  get last(): Event | undefined {
    return this.events.at(-1);
  }

  get orders(): string[] {
    return this.effects.map((effect) => effect.do);
  }
}

const byeFrom = (by: 'caller' | 'callee'): SessionInput => ({
  type: 'leg.ended',
  end: { cause: 'completed', by, description: 'hung up' },
});
const legEnded = (cause: 'busy' | 'cancelled' | 'not_answered'): SessionInput => ({
  type: 'leg.ended',
  end: { cause, by: 'callee', description: cause },
});
const play = (urls = ['http://a/1.wav']): Command => ({ type: 'play', urls, loop: 1, volume: 100 });

describe('an inbound call', () => {
  test('tells by its type whether a carrier, a SIP device or a browser has called', () => {
    const typeOf = (inboundType?: 'sip' | 'webrtc') => new Run(inbound({ ...about, inboundType }, START)).last;
    expect([typeOf(), typeOf('sip'), typeOf('webrtc')]).toMatchObject([
      { type: 'phone_in' },
      { type: 'sip' },
      { type: 'webrtc' },
    ]);
  });

  test('is announced, rings, is answered by the command and ends with the duration since the answer', () => {
    const run = new Run(inbound(about, START)).command({ type: 'answer' }, 'op-answer').give({ type: 'leg.answered' }, 40);
    expect(run.orders).toEqual(['ring', 'answer']);
    run.give(byeFrom('caller'), 12_999);
    expect(run.events).toEqual([
      { event: 'session.created', session_uuid: 's', caller_id: '+15550001', did: '+15550002', type: 'phone_in' },
      { event: 'session.answered', session_uuid: 's', operation_uuid: 'op-answer' },
      {
        event: 'session.ended',
        session_uuid: 's',
        answered: true,
        hangup_cause: 'completed',
        hangup_by: 'caller',
        hangup_description: 'hung up',
        duration_seconds: 12,
      },
    ]);
  });

  test('a reject ends with its reason as the cause, by the callee', () => {
    for (const reason of ['number_not_found', 'invalid_number', 'timeout', 'busy', 'rejected'] as const) {
      const run = new Run(inbound(about, START)).command({ type: 'reject', reason }, 'op-reject').give(legEnded('busy'), 20);
      expect(run.effects.at(-1)).toEqual({ do: 'reject', reason });
      expect(run.last).toMatchObject({
        event: 'session.ended',
        answered: false,
        duration_seconds: 0,
        hangup_cause: reason,
        hangup_by: 'callee',
        operation_uuid: 'op-reject',
      });
    }
  });

  test('a cancel, a second answer and an answer after the reject are conflicts', () => {
    const run = new Run(inbound(about, START));
    expect(run.command({ type: 'cancel' }).refused).toBe('Session cannot be cancelled in its current state');
    expect(run.command({ type: 'answer' }).refused).toBeUndefined();
    expect(run.command({ type: 'answer' }).refused).toBe('Session cannot be answered in its current state');
    expect(run.command({ type: 'reject', reason: 'busy' }).refused).toBe('Session cannot be rejected in its current state');
  });

  test('playback before the answer starts early media first', () => {
    const run = new Run(inbound(about, START)).command(play());
    expect(run.orders).toEqual(['ring', 'early_media', 'play']);
    run.give({ type: 'leg.early_media' });
    expect(run.state.phase).toBe('early_media');
    expect(run.names).toEqual(['session.created']);
  });

  test('that nobody takes is declined after the orphan timeout, which any activity puts off', () => {
    const run = new Run(inbound(about, START)).command(play(), 'op-play', 100_000);
    run.give({ type: 'leg.media', notice: { type: 'playback.completed', operationUuid: 'op-play' } }, 10_000);
    expect(nextDeadline(run.state)).toBe(run.now + 120_000);
    run.deadline().give(legEnded('busy'));
    expect(run.last).toMatchObject({ event: 'session.ended', hangup_cause: 'timeout', hangup_by: 'system', answered: false });
  });
});

describe('an outbound call', () => {
  test('emits each step once and only forward', () => {
    const run = new Run(dialled());
    for (const type of [
      'leg.ringing',
      'leg.early_media',
      'leg.ringing',
      'leg.early_media',
      'leg.answered',
      'leg.ringing',
      'leg.answered',
    ] as const) {
      run.give({ type });
    }
    expect(run.names).toEqual(['session.ringing_started', 'session.early_media_started', 'session.answered']);
    expect(run.orders).toEqual(['start']);
  });

  test('the ring window counts from the 202 and ends by the system as a timeout', () => {
    const run = new Run(dialled()).give({ type: 'leg.ringing' }, 5_000);
    expect(nextDeadline(run.state)).toBe(START + 30_000);
    run.deadline().give(legEnded('cancelled'), 10);
    expect(run.orders).toEqual(['start', 'cancel']);
    expect(run.last).toMatchObject({ hangup_cause: 'timeout', hangup_by: 'system', answered: false, duration_seconds: 0 });
  });

  test('a cancel is confirmed by the far end, and a 200 that crosses it is hung up and never announced', () => {
    const run = new Run(dialled())
      .command({ type: 'cancel' }, 'op-cancel')
      .give({ type: 'leg.answered' })
      .give(byeFrom('caller'));
    expect(run.orders).toEqual(['start', 'cancel', 'hangup']);
    expect(run.events).toHaveLength(1);
    expect(run.last).toMatchObject({
      answered: false,
      hangup_cause: 'cancelled',
      hangup_by: 'caller',
      operation_uuid: 'op-cancel',
    });
  });

  test('a far end that never confirms the end is not waited for', () => {
    const run = new Run(dialled()).command({ type: 'cancel' }).deadline();
    expect(run.now - START).toBe(5_000);
    expect(run.last).toMatchObject({ event: 'session.ended', hangup_cause: 'cancelled' });
  });

  test('cannot be answered, rejected, or played to before it is answered', () => {
    const run = new Run(dialled());
    expect(run.command({ type: 'answer' }).refused).toBeDefined();
    expect(run.command({ type: 'reject', reason: 'busy' }).refused).toBeDefined();
    expect(run.command(play()).refused).toBeDefined();
    run.give({ type: 'leg.answered' });
    expect(run.command(play()).refused).toBeUndefined();
    expect(run.command({ type: 'cancel' }).refused).toBe('Session cannot be cancelled in its current state');
  });

  test('that is not answered, or is ending, plays nothing: stop and pause fail as no_active_playback', () => {
    const run = new Run(dialled());
    for (const operation of ['unanswered', 'ending']) {
      for (const order of [{ type: 'stop_playback' }, { type: 'control_playback', control: { type: 'pause' } }] as const) {
        expect(run.command(order, operation).refused).toBeUndefined();
        expect(run.last).toMatchObject({ event: 'playback.failed', operation_uuid: operation, reason: 'no_active_playback' });
      }
      run.command({ type: 'cancel' });
    }
    run.give(byeFrom('caller'));
    expect(run.last?.event).toBe('session.ended');
  });

  test('that is not answered collects nothing: what is cancelled is not found', () => {
    const run = new Run(dialled());
    expect(run.command({ type: 'cancel_collect' }).refused).toBe('DTMF collection not found');
    expect(run.command({ type: 'cancel_payment', kind: 'card' }).refused).toBe('Payment collection not found');
  });

  test('ends at its longest duration', () => {
    const run = new Run(dialled()).give({ type: 'leg.answered' }, 1_000).deadline().give(byeFrom('callee'), 0);
    expect(run.last).toMatchObject({ answered: true, duration_seconds: 600, hangup_by: 'system', hangup_cause: 'completed' });
  });
});

describe('an answered call', () => {
  const answered = () => new Run(dialled()).give({ type: 'leg.answered' });

  test('DELETE hangs up by the application side; later DELETEs change nothing', () => {
    const run = answered()
      .command({ type: 'hangup' }, 'first')
      .command({ type: 'hangup' }, 'second')
      .give(byeFrom('callee'), 2_500);
    expect(run.orders).toEqual(['start', 'hangup']);
    expect(run.last).toMatchObject({
      hangup_cause: 'completed',
      hangup_by: 'caller',
      operation_uuid: 'first',
      duration_seconds: 2,
    });
  });

  test('is held and resumed once for each change', () => {
    const run = answered();
    for (const type of ['leg.held', 'leg.held', 'leg.resumed', 'leg.resumed', 'leg.held'] as const) run.give({ type });
    expect(run.names.slice(1)).toEqual(['session.held', 'session.resumed', 'session.held']);
  });

  test('the media timeout ends it as a timeout, but not while it is held', () => {
    const timeout: SessionInput = { type: 'leg.media', notice: { type: 'media.timeout' } };
    const run = answered().give({ type: 'leg.held' }).give(timeout);
    expect(run.state.ending).toBeUndefined();
    run.give({ type: 'leg.resumed' }).give(timeout).give(byeFrom('callee'));
    expect(run.last).toMatchObject({ answered: true, hangup_cause: 'timeout', hangup_by: 'system' });
  });

  test('playback that runs at the end is stopped before session.ended', () => {
    const run = answered().command(play(), 'op-play').give(byeFrom('callee'));
    expect(run.names.slice(1)).toEqual(['playback.ended', 'session.ended']);
    expect(run.events[1]).toMatchObject({ operation_uuid: 'op-play', reason: 'stopped', urls: ['http://a/1.wav'] });
  });

  test('a new play ends the old one as stopped, whose late notices are ignored', () => {
    const run = answered()
      .command(play(['http://a/1']), 'one')
      .command(play(['http://a/2']), 'two');
    run.give({ type: 'leg.media', notice: { type: 'playback.stopped', operationUuid: 'one' } });
    run.give({ type: 'leg.media', notice: { type: 'playback.started', operationUuid: 'two' } });
    run.give({ type: 'leg.media', notice: { type: 'playback.completed', operationUuid: 'two' } });
    expect(run.events.slice(1)).toEqual([
      { event: 'playback.ended', session_uuid: 's', operation_uuid: 'one', urls: ['http://a/1'], reason: 'stopped' },
      { event: 'playback.started', session_uuid: 's', operation_uuid: 'two', urls: ['http://a/2'] },
      { event: 'playback.ended', session_uuid: 's', operation_uuid: 'two', urls: ['http://a/2'], reason: 'completed' },
    ]);
  });

  test('stop with nothing playing is admitted and fails as no_active_playback', () => {
    const run = answered().command({ type: 'stop_playback' }, 'op-stop');
    expect(run.refused).toBeUndefined();
    expect(run.last).toEqual({
      event: 'playback.failed',
      session_uuid: 's',
      operation_uuid: 'op-stop',
      reason: 'no_active_playback',
    });
  });

  test('a source that fails later names its index', () => {
    const run = answered().command(play(['http://a/1', 'http://a/2']), 'op');
    run.give({
      type: 'leg.media',
      notice: { type: 'playback.failed', operationUuid: 'op', reason: 'decode_error', sourceIndex: 1 },
    });
    expect(run.last).toMatchObject({ event: 'playback.failed', reason: 'decode_error', source_index: 1 });
  });
});

describe('collecting digits', () => {
  const terms = {
    minDigits: 1,
    maxDigits: 4,
    validDigits: '0123456789',
    terminators: ['#'],
    firstDigitTimeoutMs: 5000,
    interDigitTimeoutMs: 3000,
    totalTimeoutMs: 60_000,
    bargeIn: true,
  };
  const collect = (promptUrls: string[] = []): Command => ({ type: 'collect', terms, promptUrls });
  const press = (digit: string): SessionInput => ({
    type: 'leg.media',
    notice: { type: 'digit', digit, durationMs: 80, method: 'rfc4733' },
  });
  const prompt = (type: 'playback.started' | 'playback.completed'): SessionInput => ({
    type: 'leg.media',
    notice: { type, operationUuid: 'op-collect/prompt' },
  });
  const answered = () => new Run(dialled()).give({ type: 'leg.answered' });

  test('each key is told before the digits it completes', () => {
    const run = answered().command(collect(), 'op-collect');
    for (const digit of '12#') run.give(press(digit), 100);
    expect(run.names.slice(1)).toEqual(['dtmf.received', 'dtmf.received', 'dtmf.received', 'digits.collected']);
    expect(run.last).toEqual({
      event: 'digits.collected',
      session_uuid: 's',
      operation_uuid: 'op-collect',
      status: 'success',
      digits: '12',
      terminator: '#',
    });
  });

  test('a prompt is played under the operation, emits no playback event, and the clocks start at its end', () => {
    const run = answered()
      .command(play(), 'op-play')
      .command(collect(['http://a/p']), 'op-collect');
    expect(run.names.slice(1)).toEqual(['playback.ended']);
    run.give(prompt('playback.started')).give(prompt('playback.completed'), 7000);
    expect(nextDeadline(run.state)).toBe(run.now + 5000);
    run.deadline();
    expect(run.last).toMatchObject({ event: 'digits.collected', status: 'no_input' });
  });

  test('a key over the prompt stops it', () => {
    const run = answered()
      .command(collect(['http://a/p']), 'op-collect')
      .give(press('7'));
    expect(run.effects.at(-1)).toEqual({ do: 'stop_playback', operationUuid: 'op-collect/prompt' });
    run.deadline();
    expect(run.last).toMatchObject({ status: 'success', digits: '7' });
  });

  test('a second one is a conflict, DELETE cancels, DELETE with none is 404, the end of the call cancels first', () => {
    const run = answered().command(collect(), 'op-collect');
    expect(run.command(collect()).refused).toBe('Session is already collecting digits');
    run.command({ type: 'cancel_collect' });
    expect(run.last).toMatchObject({ event: 'digits.collected', status: 'cancelled', operation_uuid: 'op-collect' });
    expect(run.command({ type: 'cancel_collect' }).refused).toBe('DTMF collection not found');
    run.command(collect(), 'op-2').give(byeFrom('callee'));
    expect(run.events.slice(-2)).toMatchObject([
      { event: 'digits.collected', status: 'cancelled', reason: 'session_ended' },
      { event: 'session.ended' },
    ]);
  });

  test('a prompt that fails fails the collection', () => {
    const run = answered().command(collect(['http://a/p']), 'op-collect');
    run.give({
      type: 'leg.media',
      notice: { type: 'playback.failed', operationUuid: 'op-collect/prompt', reason: 'decode_error' },
    });
    expect(run.last).toMatchObject({ event: 'digits.collected', status: 'failure', reason: 'decode_error' });
  });
});

describe('a WebSocket Session', () => {
  const dialling = () =>
    new Run(
      connecting({ sessionUuid: 's', appUuid: 'a', operationUuid: 'op-ws', clientState: '', orphanTimeoutMs: 120_000 }, START),
    );
  const end = { cause: 'completed', by: 'callee', description: 'closed' } as const;

  test('is answered by its connection, without session.answered, and ends with it', () => {
    const run = dialling();
    expect([run.state.phase, run.orders]).toEqual(['connecting', ['start']]);
    run.give({ type: 'leg.connected', subprotocol: 'sidetone.v1' }).give({ type: 'leg.played', durationMs: 1200 });
    run.give({ type: 'leg.disconnected', reason: 'remote_closed', closeCode: 1000, end }, 3000);
    expect(run.events).toMatchObject([
      { event: 'websocket.connected', operation_uuid: 'op-ws', subprotocol: 'sidetone.v1' },
      { event: 'websocket.audio_playback_completed', duration_ms: 1200 },
      { event: 'websocket.disconnected', reason: 'remote_closed', close_code: 1000 },
      { event: 'session.ended', answered: true, duration_seconds: 3 },
    ]);
  });

  test('that never connects fails, then ends unanswered', () => {
    const run = dialling().give({ type: 'leg.failed', reason: 'dns_failed', error: 'network', end: { ...end, cause: 'failed' } });
    expect(run.events).toMatchObject([
      { event: 'websocket.failed', reason: 'dns_failed', error: 'network', operation_uuid: 'op-ws' },
      { event: 'session.ended', answered: false, duration_seconds: 0, hangup_cause: 'failed' },
    ]);
  });

  test('given up while it connects is cancelled, and told again where it connected after all', () => {
    const run = dialling().command({ type: 'hangup' }, 'op-del').give({ type: 'leg.connected' });
    expect(run.orders).toEqual(['start', 'hangup', 'hangup']);
    run.give({ type: 'leg.disconnected', reason: 'local_closed', closeCode: 1000, end });
    expect(run.names).toEqual(['session.ended']);
    expect(run.last).toMatchObject({
      event: 'session.ended',
      answered: false,
      hangup_cause: 'cancelled',
      operation_uuid: 'op-del',
    });
    expect(dialling().command({ type: 'cancel' }).refused).toBeDefined();
    expect(dialling().command(play()).refused).toBeDefined();
  });
});

test('a hang-up that overtakes the answer of an inbound call ends it as refused, as it would before the answer', () => {
  const run = new Run(inbound(about, START)).command({ type: 'answer' }).command({ type: 'hangup' });
  expect(run.orders).toEqual(['ring', 'answer', 'hangup']);
  run.give({ type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: '' } });
  expect(run.last).toMatchObject({ event: 'session.ended', answered: false, hangup_cause: 'rejected', hangup_by: 'callee' });
});

test('an answer that is never agreed on is taken back by a BYE when its time is over, since its 200 may be out', () => {
  const run = new Run(inbound(about, START)).command({ type: 'answer' });
  expect(run.deadline().orders).toEqual(['ring', 'answer', 'hangup']);
});

describe('a Session whose process is gone', () => {
  const remains = {
    ...about,
    type: 'phone_out',
    phase: 'answered',
    clientState: '',
    createdAt: START - 60_000,
    roomId: '',
    answered: true,
    answeredAt: START - 50_000,
    running: {},
  } as const;

  test('ends synthetically as not answered after the orphan timeout', () => {
    const run = new Run(recovered(remains, START)).deadline();
    expect(run.now - START).toBe(120_000);
    expect(run.last).toMatchObject({
      event: 'session.ended',
      answered: false,
      duration_seconds: 0,
      hangup_by: 'system',
      hangup_cause: 'timeout',
    });
  });

  test('tells at once, in order, of what ran: a collection, a playback, its Room', () => {
    const running = {
      playback: { operationUuid: 'play', kind: 'files', urls: ['http://a/1'] },
      collect: 'collect',
    } as const;
    const run = new Run(recovered({ ...remains, roomId: 'room', running }, START));
    expect(run.events).toMatchObject([
      { event: 'digits.collected', operation_uuid: 'collect', status: 'failure', digits: '' },
      { event: 'playback.failed', operation_uuid: 'play', urls: ['http://a/1'], reason: 'media_unavailable' },
      { event: 'room.member.left', reason: 'orphan' },
    ]);
    expect(
      run
        .deadline()
        .events.slice(3)
        .map(({ event }) => event),
    ).toEqual(['session.ended']);
  });

  test('a member that talked in its Room when its process died is heard no more before it has left', () => {
    const run = new Run(recovered({ ...remains, roomId: 'room', running: { talking: true } }, START));
    expect(run.names).toEqual(['room.member.voice_activity_changed', 'room.member.left']);
    expect(run.events[0]).toMatchObject({ talking: false });
  });

  test('of type websocket tells that its connection is gone before it ends', () => {
    const run = new Run(recovered({ ...remains, type: 'websocket' }, START));
    expect(run.events).toMatchObject([{ event: 'websocket.disconnected', reason: 'network_error', close_code: 1006 }]);
    expect(run.deadline().last).toMatchObject({ event: 'session.ended', answered: false });
  });

  test('of type websocket tells so once, however often its process is lost', () => {
    const lost = new Run(recovered({ ...remains, type: 'websocket' }, START));
    const again = new Run(recovered({ ...remains, type: 'websocket', running: runningOf(runningText(lost.state)) }, START));
    expect(again.events).toEqual([]);
    const twice = new Run(recovered({ ...remains, type: 'websocket', running: runningOf(runningText(again.state)) }, START));
    expect(twice.deadline().names).toEqual(['session.ended']);
  });

  test('of type websocket that waited for its last recording had told so before', () => {
    const from = { sessionUuid: 's', appUuid: 'a', operationUuid: 'op', clientState: '', orphanTimeoutMs: 120_000 };
    const terms = { recordingUuid: 'rec', includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 };
    const end = { cause: 'completed', by: 'callee', description: '' } as const;
    const run = new Run(connecting(from, START)).give({ type: 'leg.connected' }).command({ type: 'record', terms });
    run.give({ type: 'leg.disconnected', reason: 'remote_closed', closeCode: 1000, end });
    expect([run.last?.event, run.state.phase]).toEqual(['websocket.disconnected', 'answered']);
    const lost = recovered({ ...remains, type: 'websocket', running: runningOf(runningText(run.state)) }, START);
    expect(new Run(lost).events).toEqual([]);
  });

  test('can only be ended by command, which keeps what was stored of the answer', () => {
    const run = new Run(recovered(remains, START));
    expect(run.command(play()).refused).toBeDefined();
    expect(run.command({ type: 'hangup' }).last).toMatchObject({ event: 'session.ended', answered: true, duration_seconds: 0 });
    expect(run.state.answeredAt).toBe(START - 50_000);
  });

  test('that was not answered ends by command as one whose process lives', () => {
    for (const [type, hangup_cause, hangup_by] of [
      ['phone_in', 'rejected', 'callee'],
      ['phone_out', 'cancelled', 'caller'],
      ['websocket', 'cancelled', 'caller'],
    ] as const) {
      const phase = type === 'websocket' ? 'connecting' : 'ringing';
      const run = new Run(recovered({ ...remains, type, phase, answered: false, answeredAt: undefined }, START));
      const ended = run.command({ type: 'hangup' }).last;
      expect(ended).toMatchObject({ event: 'session.ended', answered: false, duration_seconds: 0, hangup_cause, hangup_by });
    }
  });
});
