import { describe, expect, test } from 'bun:test';
import { RECORDINGS_PER_SESSION_MAX } from '../../src/limits.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { Command, SessionInput, Step } from '../../src/machine/session/input.ts';
import { inbound, nextDeadline, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { RecordingNotice } from '../../src/notice/recording.ts';

const NOW = 1_000_000;
const answered: SessionState = {
  ...inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1000 }, NOW),
  phase: 'answered',
  answeredAt: NOW,
  deadlines: {},
};
const record = (recordingUuid: string): Command => ({
  type: 'record',
  terms: { recordingUuid, includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 },
});
const order = (state: SessionState, command: Command, now = NOW): Step =>
  step(state, { type: 'command', command, operationUuid: `op of ${command.type}` }, now);
const hear = (state: SessionState, notice: RecordingNotice, now = NOW): Step => step(state, { type: 'leg.media', notice }, now);
const recorded = (...uuids: string[]) => uuids.reduce((state, uuid) => order(state, record(uuid)).state, answered);
const over = (recordingUuid: string): RecordingNotice => ({
  type: 'recording.ended',
  recordingUuid,
  durationMs: 2_000,
  bytes: 1,
});
const hungUp: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: '' } };
const names = ({ events }: Step) => events.map(({ event }) => event);

describe('the recordings of a Session', () => {
  test('are begun by the connected call, each under its own operation, and written down', () => {
    const begun = order(answered, record('a'));
    expect(begun.effects).toMatchObject([{ do: 'record', recording: { recordingUuid: 'a' } }]);
    expect(begun.recordings).toMatchObject([{ record: 'begun', recording: { operationUuid: 'op of record' } }]);
    expect(nextDeadline(begun.state)).toBe(NOW + 10_000);
    expect(names(step(begun.state, { type: 'deadline' }, NOW + 10_000))).toEqual(['recording.failed']);
    const ringing = { ...answered, phase: 'ringing' } as const;
    expect(order(ringing, record('a')).refused?.status).toBe(409);
    const full = recorded(...Array.from({ length: RECORDINGS_PER_SESSION_MAX }, (_, at) => `r${at}`));
    expect(order(full, record('more')).refused?.status).toBe(409);
  });

  test('are stopped, masked and unmasked each on its own; what is not live is 404', () => {
    const two = recorded('a', 'b');
    expect(order(two, { type: 'mask_recording', recordingUuid: 'b' }).effects).toEqual([
      { do: 'mask_recording', recordingUuid: 'b', masked: true },
    ]);
    const stopping = order(two, { type: 'stop_recording', recordingUuid: 'a' });
    expect(stopping.effects).toEqual([{ do: 'stop_recording', recordingUuid: 'a' }]);
    expect(order(stopping.state, { type: 'stop_recording', recordingUuid: 'a' }).refused).toBeUndefined();
    expect(order(stopping.state, { type: 'unmask_recording', recordingUuid: 'a' }).refused?.status).toBe(404);
    const one = hear(stopping.state, over('a'));
    expect(names(one)).toEqual(['recording.ended']);
    expect(one.state.recordings.map(({ recordingUuid }) => recordingUuid)).toEqual(['b']);
    expect(order(one.state, { type: 'stop_recording', recordingUuid: 'a' }).refused).toMatchObject({
      status: 404,
      message: 'Recording not found',
    });
  });

  test('end before the Session does, which waits for their files; its length is the length of the call', () => {
    const ended = step(recorded('a', 'b'), hungUp, NOW + 7_000);
    expect(names(ended)).toEqual([]);
    expect(ended.state.phase).toBe('answered');
    expect(ended.effects).toEqual([
      { do: 'stop_recording', recordingUuid: 'a' },
      { do: 'stop_recording', recordingUuid: 'b' },
    ]);
    const first = hear(ended.state, over('b'), NOW + 8_200);
    expect(names(first)).toEqual(['recording.ended']);
    const last = hear(first.state, over('a'), NOW + 9_000);
    expect(names(last)).toEqual(['recording.ended', 'session.ended']);
    expect(last.events.at(-1)).toMatchObject({ duration_seconds: 7 });
    expect(last.state.phase).toBe('ended');
  });

  test('that take over five seconds follow it', () => {
    const ended = step(recorded('a'), hungUp, NOW);
    expect(nextDeadline(ended.state)).toBe(NOW + 5_000);
    expect(names(step(ended.state, { type: 'deadline' }, NOW + 4_999))).toEqual([]);
    const late = step(ended.state, { type: 'deadline' }, NOW + 5_000);
    expect(names(late)).toEqual(['session.ended']);
    expect(names(hear(late.state, over('a'), NOW + 6_000))).toEqual([]);
  });

  test('take no commands once the call is over, and nothing else is told any more', () => {
    const ended = step(recorded('a'), hungUp, NOW);
    expect(order(ended.state, record('b')).refused?.status).toBe(409);
    expect(order(ended.state, { type: 'mask_recording', recordingUuid: 'a' }).refused?.status).toBe(404);
    expect(order(ended.state, { type: 'hangup' }).refused).toBeUndefined();
    const keyed = step(ended.state, { type: 'leg.digit', digit: '1', durationMs: 80 }, NOW);
    expect(names(keyed)).toEqual([]);
    expect(names(step(ended.state, hungUp, NOW))).toEqual([]);
    expect(names(step(ended.state, { type: 'broken' }, NOW))).toEqual(['session.ended']);
  });

  test('tell of speech to whom asked for it, and of none after a hangup was ordered', () => {
    const voiceActivity = { sensitivity: 0.5, speechDurationMs: 100, silenceDurationMs: 500 };
    const heard = order(answered, {
      type: 'record',
      terms: { recordingUuid: 'a', includeGaps: false, voiceActivity, livenessMs: 10_000 },
    }).state;
    const hanging = order(heard, { type: 'hangup' }).state;
    const speech: readonly RecordingNotice[] = [
      { type: 'speech.started', recordingUuid: 'a', precedingSilenceMs: undefined },
      { type: 'speech.ended', recordingUuid: 'a' },
    ];
    const about = { session_uuid: 's', recording_uuid: 'a', operation_uuid: 'op of record' };
    expect(speech.flatMap((notice) => hear(heard, notice).events)).toEqual([
      { event: 'recording.speech.started', ...about },
      { event: 'recording.speech.ended', ...about },
    ]);
    for (const notice of speech) expect(hear(hanging, notice).events).toEqual([]);
    // Its end is told all the same.
    expect(names(hear(hanging, over('a')))).toEqual(['recording.ended']);
  });

  test('are written down when they end, with the length and size of their file', () => {
    expect(hear(recorded('a'), over('a')).recordings).toEqual([
      { record: 'ended', recordingUuid: 'a', durationMs: 2_000, bytes: 1 },
    ]);
    const [begun] = order(answered, record('a')).recordings ?? [];
    expect(begun).toMatchObject({ record: 'begun', recording: { recordingUuid: 'a', phase: 'active' } });
  });

  test('are neither begun nor masked once a hangup was ordered, but may be stopped', () => {
    const hanging = order(recorded('a'), { type: 'hangup' }).state;
    expect(order(hanging, record('b')).refused?.status).toBe(409);
    for (const type of ['mask_recording', 'unmask_recording'] as const)
      expect([type, order(hanging, { type, recordingUuid: 'a' }).refused?.status]).toEqual([type, 404]);
    expect(order(hanging, { type: 'stop_recording', recordingUuid: 'a' }).refused).toBeUndefined();
  });

  test('are as many as may be, and fail each at its own time', () => {
    const most = recorded(...Array.from({ length: RECORDINGS_PER_SESSION_MAX - 1 }, (_, at) => `r${at}`));
    const last = order(most, record('last'), NOW + 4_000);
    expect(last.refused).toBeUndefined();
    const due = step(last.state, { type: 'deadline' }, NOW + 10_000);
    expect(names(due)).toHaveLength(RECORDINGS_PER_SESSION_MAX - 1);
    expect(nextDeadline(due.state)).toBe(NOW + 14_000);
  });

  test('are masked before the prompt of a secure collection, refused during it, and left masked after it', () => {
    const live = order(recorded('a', 'b'), { type: 'stop_recording', recordingUuid: 'b' }).state;
    const collecting = order(live, {
      type: 'collect_payment',
      terms: {
        kind: 'card',
        reference: 'card_r',
        maxAttempts: 1,
        firstDigitTimeoutMs: 10_000,
        interDigitTimeoutMs: 5_000,
        terminators: ['#'],
        acceptedBrands: CARD_BRANDS,
        cardBrand: undefined,
        hasPrompt: true,
        retryUrls: [],
      },
      promptUrls: ['http://files/prompt.wav'],
      cardUuid: undefined,
    });
    expect(collecting.effects.map((effect) => effect.do)).toEqual(['mask_recording', 'secure', 'play']);
    expect(collecting.effects[0]).toEqual({ do: 'mask_recording', recordingUuid: 'a', masked: true });
    expect(order(collecting.state, record('c')).refused).toMatchObject({
      status: 409,
      message: 'Secure collection is in progress',
    });
    expect(order(collecting.state, { type: 'unmask_recording', recordingUuid: 'a' }).refused?.status).toBe(409);
    expect(order(collecting.state, { type: 'mask_recording', recordingUuid: 'a' }).refused).toBeUndefined();
    const done = order(collecting.state, { type: 'cancel_payment', kind: 'card' });
    expect(names(done)).toEqual(['payment.card.collected']);
    expect(done.state.recordings[0]?.masked).toBe(true);
    expect(order(done.state, { type: 'unmask_recording', recordingUuid: 'a' }).effects).toHaveLength(1);
  });
});
