import { describe, expect, test } from 'bun:test';
import type { RecordingEvent } from '../../src/event/recording-event.ts';
import {
  beginRecording,
  hearRecording,
  maskRecording,
  type Recording,
  type RecordingStep,
  type RecordingTerms,
  recordingDeadline,
  stopRecording,
} from '../../src/machine/recording/recording.ts';
import type { RecordingNotice } from '../../src/notice/recording.ts';
import fc from '../support/fast-check.ts';

const SESSION = { session_uuid: 's' };
const ROOM = { room_id: 'r' };
const NOW = 1_000_000;
const terms: RecordingTerms = { recordingUuid: 'rec_1', includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 };
const spoken: RecordingTerms = { ...terms, voiceActivity: { sensitivity: 0.5, speechDurationMs: 100, silenceDurationMs: 500 } };
const began = (owner = SESSION as typeof SESSION | typeof ROOM, of = terms) => beginRecording(owner, of, 'op', NOW).recording;
const about = { recordingUuid: 'rec_1' } as const;
const started: RecordingNotice = { type: 'recording.started', ...about };
const over: RecordingNotice = { type: 'recording.ended', ...about, durationMs: 12_999, bytes: 1 };
const broke: RecordingNotice = { type: 'recording.failed', ...about, reason: 'cannot_write', durationMs: 3_500 };
const names = (step: RecordingStep) => step.events.map(({ event }) => event);
/** The recording that a step leaves. */
function left(step: RecordingStep): Recording {
  if (step.recording === undefined) throw new Error('it is over');
  return step.recording;
}

describe('a recording', () => {
  test('becomes available with its first durable audio, once', () => {
    const step = hearRecording(SESSION, began(), started);
    expect(step.events).toEqual([
      { event: 'recording.became_available', session_uuid: 's', recording_uuid: 'rec_1', operation_uuid: 'op' },
    ]);
    expect(left(step).confirmBy).toBeUndefined();
    expect(names(hearRecording(SESSION, left(step), started))).toEqual([]);
  });

  test('of a Session has failed when none comes in time; late audio makes it no better, and it still ends', () => {
    expect(recordingDeadline(SESSION, began(), NOW + 9_999).events).toEqual([]);
    const step = recordingDeadline(SESSION, began(), NOW + 10_000);
    expect(step.events).toEqual([
      {
        event: 'recording.failed',
        session_uuid: 's',
        recording_uuid: 'rec_1',
        operation_uuid: 'op',
        error: 'recording unavailable',
        pull_url: '',
      },
    ]);
    const failed = left(step);
    expect(names(hearRecording(SESSION, failed, started))).toEqual([]);
    expect(names(hearRecording(SESSION, failed, broke))).toEqual([]);
    expect(names(hearRecording(SESSION, left(stopRecording(SESSION, failed)), over))).toEqual(['recording.ended']);
  });

  test('that is masked is not told as failed for hearing nothing', () => {
    const masked = left(maskRecording(began(), true, NOW));
    const waiting = recordingDeadline(SESSION, masked, NOW + 10_000);
    expect(waiting.events).toEqual([]);
    expect(left(waiting).confirmBy).toBe(NOW + 20_000);
    const open = left(maskRecording(left(waiting), false, NOW + 19_900));
    expect(names(recordingDeadline(SESSION, open, NOW + 20_000))).toEqual([]);
    expect(names(recordingDeadline(SESSION, open, NOW + 29_900))).toEqual(['recording.failed']);
    const available = left(hearRecording(SESSION, masked, started));
    expect(left(maskRecording(available, false, NOW + 19_900)).confirmBy).toBeUndefined();
  });

  test('of a Room is never told as failed', () => {
    expect(began(ROOM).confirmBy).toBeUndefined();
    const step = hearRecording(ROOM, began(ROOM), broke);
    expect(step.events).toEqual([]);
    const ended = stopRecording(ROOM, left(step));
    expect(ended.events).toEqual([
      { event: 'recording.ended', room_id: 'r', recording_uuid: 'rec_1', operation_uuid: 'op', duration: 3 },
    ]);
  });

  test('ends with the seconds of its file, rounded down, under the operation that created it', () => {
    const stopping = stopRecording(SESSION, began());
    expect(stopping.effects).toEqual([{ do: 'stop_recording', recordingUuid: 'rec_1' }]);
    expect(stopRecording(SESSION, left(stopping))).toMatchObject({ events: [], effects: [] });
    const step = hearRecording(SESSION, left(stopping), over);
    expect(step.recording).toBeUndefined();
    expect(step.events).toEqual([
      { event: 'recording.ended', session_uuid: 's', recording_uuid: 'rec_1', operation_uuid: 'op', duration: 12 },
    ]);
    expect(step.records).toEqual([{ record: 'ended', recordingUuid: 'rec_1', durationMs: 12_999, bytes: 1 }]);
  });

  test('whose disk fails after it became available ends at once', () => {
    const available = left(hearRecording(SESSION, began(), started));
    expect(names(hearRecording(SESSION, available, broke))).toEqual(['recording.ended']);
  });

  test('whose file nobody could look into ends with a length that is said to be unknown, and is not told as empty', () => {
    const unread: RecordingNotice = { ...broke, reason: 'media_unavailable', durationMs: undefined };
    const available = hearRecording(SESSION, left(hearRecording(SESSION, began(), started)), unread);
    const stopped = stopRecording(SESSION, left(hearRecording(SESSION, began(), unread)));
    for (const step of [available, stopped]) {
      expect(step.events).toMatchObject([{ event: 'recording.ended', duration: 0, duration_unknown: true }]);
      expect(step.records).toEqual([{ record: 'ended', recordingUuid: 'rec_1', durationMs: undefined }]);
    }
  });

  test('tells of speech where it was asked to, and not after its stop', () => {
    const speech: RecordingNotice = { type: 'speech.started', ...about, precedingSilenceMs: undefined };
    const silence: RecordingNotice = { type: 'speech.ended', ...about };
    expect(names(hearRecording(SESSION, began(), speech))).toEqual([]);
    const live = began(SESSION, spoken);
    const [first] = hearRecording(SESSION, live, speech).events;
    expect(first).toEqual({
      event: 'recording.speech.started',
      session_uuid: 's',
      recording_uuid: 'rec_1',
      operation_uuid: 'op',
    });
    expect(hearRecording(SESSION, live, { ...speech, precedingSilenceMs: 700 }).events[0]).toMatchObject({
      preceding_silence_duration_ms: 700,
    });
    expect(names(hearRecording(SESSION, live, silence))).toEqual(['recording.speech.ended']);
    const stopping = left(stopRecording(SESSION, live));
    for (const notice of [speech, silence]) expect(names(hearRecording(SESSION, stopping, notice))).toEqual([]);
  });

  test('of a Room tells of no speech', () => {
    const live = began(ROOM, spoken);
    for (const notice of [
      { type: 'speech.started', ...about, precedingSilenceMs: 1 },
      { type: 'speech.ended', ...about },
    ] as const)
      expect(hearRecording(ROOM, live, notice)).toEqual({ recording: live, events: [], effects: [], records: [] });
  });

  test('goes on after speech and silence as it was', () => {
    const live = began(SESSION, spoken);
    for (const notice of [
      { type: 'speech.started', ...about, precedingSilenceMs: 1 },
      { type: 'speech.ended', ...about },
    ] as const)
      expect(left(hearRecording(SESSION, live, notice))).toBe(live);
  });

  test('whose file breaks off while it is being stopped ends at once, with what is in it', () => {
    const stopping = left(stopRecording(SESSION, began()));
    expect(hearRecording(SESSION, stopping, broke)).toMatchObject({
      recording: undefined,
      events: [{ event: 'recording.ended', duration: 3 }],
      records: [{ record: 'ended', durationMs: 3_500 }],
    });
  });

  test('masks and unmasks once each', () => {
    const masked = maskRecording(began(), true, NOW);
    expect(masked.effects).toEqual([{ do: 'mask_recording', recordingUuid: 'rec_1', masked: true }]);
    expect(maskRecording(left(masked), true, NOW).effects).toEqual([]);
    expect(maskRecording(left(masked), false, NOW).effects).toEqual([
      { do: 'mask_recording', recordingUuid: 'rec_1', masked: false },
    ]);
    expect(maskRecording(began(), false, NOW).effects).toEqual([]);
  });

  const input = fc.constantFrom<'stop' | 'mask' | 'unmask' | 'deadline' | 'started' | 'broke' | 'over' | 'speech'>(
    'stop',
    'mask',
    'unmask',
    'deadline',
    'started',
    'broke',
    'over',
    'speech',
  );
  test('whatever happens in whatever order: available or failed but never both, and ended last and once', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(input, { maxLength: 30 }), (isRoom, inputs) => {
        const owner = isRoom ? ROOM : SESSION;
        const events: RecordingEvent[] = [];
        let recording: Recording | undefined = began(owner, spoken);
        let now = NOW;
        const apply = (step: RecordingStep) => {
          events.push(...step.events);
          recording = step.recording;
        };
        for (const each of [...inputs, 'stop', 'over'] as const) {
          if (recording === undefined) break;
          now += 3_000;
          if (each === 'stop') apply(stopRecording(owner, recording));
          else if (each === 'mask' || each === 'unmask') apply(maskRecording(recording, each === 'mask', now));
          else if (each === 'deadline') apply(recordingDeadline(owner, recording, now));
          else if (each === 'started') apply(hearRecording(owner, recording, started));
          else if (each === 'broke') apply(hearRecording(owner, recording, broke));
          else if (each === 'over') apply(hearRecording(owner, recording, over));
          else apply(hearRecording(owner, recording, { type: 'speech.started', ...about, precedingSilenceMs: 1 }));
        }
        const told = events.map(({ event }) => event);
        const count = (name: string) => told.filter((each) => each === name).length;
        expect(recording).toBeUndefined();
        expect(told.at(-1)).toBe('recording.ended');
        expect(count('recording.ended')).toBe(1);
        expect(count('recording.became_available') + count('recording.failed')).toBeLessThanOrEqual(1);
        if (isRoom) expect(count('recording.failed') + count('recording.speech.started')).toBe(0);
      }),
    );
  });
});
