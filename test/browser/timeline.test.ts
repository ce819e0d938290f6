/**
 * What the console makes of the platform's answers, without a browser: spans of a call, and the merged list of calls.
 */
import { describe, expect, test } from 'bun:test';
import { endOf, extentOf, gapsOf, spansOf } from '../../console/call/spans.ts';
import { piecesOf, placeOf, takesOf } from '../../console/call/takes.ts';
import { stepOf, ticksOf, tickText } from '../../console/call/ticks.ts';
import { mosOf, noFigures, TYPE_NAMES, titleOf } from '../../console/call/words.ts';
import { hasLive, merged, NONE, type Rows } from '../../console/page/call-rows.ts';
import { ofMembers } from '../../console/page/room-members.ts';
import { visible } from '../../console/part/visible.ts';
import { type Difference, differenceOf, learnt } from '../../console/platform/clock.ts';
import { oneAtATime } from '../../console/platform/in-turn.ts';
import { fieldOf, instantOf } from '../../console/platform/time.ts';
import type { Call, Entry } from '../../console/platform/types.ts';
import { SCHEMAS } from '../../src/http/openapi/schemas.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();
const ms = (second: number): number => Date.parse(at(second));
const media = (second: number, what: string, more: Record<string, string | number> = {}): Entry => ({
  at: at(second),
  kind: 'media',
  what,
  ...more,
});
const command = (second: number, path: string, status = 202): Entry => ({
  at: at(second),
  kind: 'command',
  method: 'POST',
  path,
  status,
  operation_uuid: 'op',
  took_ms: 1,
});
const event = (second: number, name: string, body: Record<string, unknown>): Entry => ({
  at: at(second),
  kind: 'event',
  name,
  webhook_id: `evt_${second}`,
  body,
});

const call = (second: number, state = 'ended'): Call => ({
  session_uuid: `s${second}`,
  app_uuid: 'app',
  type: 'phone_in',
  state,
  caller_id: '',
  did: '',
  trunk: '',
  created_at: at(second),
  answered_at: '',
  ended_at: '',
  duration_seconds: 0,
  hangup_cause: '',
  hangup_by: '',
});

describe('the spans of a call', () => {
  test('a playback lasts from its start to its end, and one that runs lasts until now', () => {
    const entries = [
      media(1, 'playback_started', { operation_uuid: 'a' }),
      media(3, 'playback_completed', { operation_uuid: 'a' }),
      media(4, 'playback_started', { operation_uuid: 'b' }),
    ];
    expect(spansOf(entries, ms(9))).toEqual([
      { what: 'playback', from: ms(1), until: ms(3), recordingUuid: '' },
      { what: 'playback', from: ms(4), until: ms(9), recordingUuid: '' },
    ]);
  });

  test('audio is masked by the command of a recording, not by one that was refused', () => {
    const entries = [
      media(0, 'recording_started', { recording_uuid: 'rec_1' }),
      command(1, '/v1/sessions/s/recordings/rec_1/mask', 409),
      command(2, '/v1/sessions/s/recordings/rec_1/mask'),
      command(3, '/v1/sessions/s/recordings/rec_1/unmask'),
    ];
    expect(spansOf(entries, ms(9)).filter(({ what }) => what === 'masked')).toEqual([
      { what: 'masked', from: ms(2), until: ms(3), recordingUuid: 'rec_1' },
    ]);
  });

  test('a card that is keyed in masks each recording until it is unmasked, or until its end', () => {
    const entries = [
      media(1, 'recording_started', { recording_uuid: 'rec_1' }),
      media(1, 'recording_started', { recording_uuid: 'rec_2' }),
      command(3, '/v1/sessions/s/payment/card/collect'),
      event(5, 'payment.card.collected', { operation_uuid: 'op' }),
      command(6, '/v1/sessions/s/recordings/rec_1/unmask'),
      media(8, 'recording_ended', { recording_uuid: 'rec_2' }),
    ];
    const spans = spansOf(entries, ms(9)).filter(({ what }) => what === 'masked' || what === 'card');
    expect(spans).toEqual([
      { what: 'card', from: ms(3), until: ms(5), recordingUuid: '' },
      { what: 'masked', from: ms(3), until: ms(6), recordingUuid: 'rec_1' },
      { what: 'masked', from: ms(3), until: ms(8), recordingUuid: 'rec_2' },
    ]);
  });

  test('what comes long after a call, as a replayed webhook does, is not on its axis', () => {
    const session = { ...call(0), ended_at: at(12) };
    const attempt = (second: number): Entry => ({
      at: at(second),
      kind: 'webhook',
      webhook_id: 'evt_12',
      attempt: 1,
      status: 204,
      error: '',
      took_ms: 1,
      response: '',
      next_at: '',
    });
    const entries = [media(2, 'room_joined'), attempt(13), attempt(24 * 3600)];
    expect(extentOf({ session, entries }, ms(50))).toEqual([ms(0), ms(13)]);
    expect(extentOf({ session: { ...session, ended_at: '' }, entries: [] }, ms(50))).toEqual([ms(0), ms(50)]);
    expect(spansOf(entries, endOf(session, ms(50)))).toEqual([{ what: 'room', from: ms(2), until: ms(12), recordingUuid: '' }]);
  });
});

describe('a recording on the axis', () => {
  const body = { recording_uuid: 'rec_1', operation_uuid: 'op', duration: 7, pull_url: 'https://voice.example.com/r/1?sig=x' };
  const recorded = [
    command(1, '/v1/sessions/s/recordings'),
    media(2, 'recording_started', { recording_uuid: 'rec_1' }),
    command(4, '/v1/sessions/s/recordings/rec_1/mask'),
    command(8, '/v1/sessions/s/recordings/rec_1/unmask'),
  ];
  const takes = (entries: readonly Entry[]) => takesOf(entries, ms(12), (uuid) => gapsOf(spansOf(entries, ms(12)), uuid));

  test('begins with the command that asked for it, is read from this platform, and lies there without what was masked', () => {
    const entries = [
      ...recorded,
      media(12, 'recording_ended', { recording_uuid: 'rec_1', duration_ms: 7040 }),
      event(12, 'recording.ended', body),
    ];
    expect(takes(entries)).toEqual([
      {
        recordingUuid: 'rec_1',
        url: '/r/1?sig=x',
        from: ms(1),
        until: ms(12),
        durationMs: 7040,
        pieces: [
          { from: ms(1), until: ms(4), offsetMs: 0 },
          { from: ms(8), until: ms(12) + 40, offsetMs: 3000 },
        ],
        missingMs: 0,
      },
    ]);
  });

  test('lies there in one piece where the gaps were asked for', () => {
    const entries = [...recorded, event(12, 'recording.ended', { ...body, duration: 11 })];
    expect(takes(entries)[0]?.pieces).toEqual([{ from: ms(1), until: ms(12), offsetMs: 0 }]);
  });

  test('is as long as its file, to the millisecond, and says what is missing where no sound came', () => {
    const whole = { from: ms(0), until: ms(12) };
    expect(piecesOf(whole, 1340, [])).toEqual({ pieces: [{ from: ms(0), until: ms(1) + 340, offsetMs: 0 }], missingMs: 10_660 });
    // A hold within a mask is one gap. A file takes a moment to be finished.
    const gaps = [
      { from: ms(2), until: ms(9) },
      { from: ms(4), until: ms(5) },
    ];
    const { pieces, missingMs } = piecesOf(whole, 4600, gaps);
    expect(pieces).toEqual([
      { from: ms(0), until: ms(2), offsetMs: 0 },
      { from: ms(9), until: ms(11) + 600, offsetMs: 2000 },
    ]);
    expect(missingMs).toBe(0);
    expect([1500, 2000, 3000].map((position) => placeOf(pieces, position))).toEqual([ms(1) + 500, ms(9), ms(10)]);
  });
});

describe('the ticks of the axis', () => {
  test('count from the first instant of the call, with hours where it has some', () => {
    expect(ticksOf(1500, 9_500, 250, 5000)).toEqual([5250]);
    expect([0, 65_000, 3_600_000].map((since) => tickText(since, 5000))).toEqual(['0:00', '1:05', '1:00:00']);
    expect(tickText(1250, 50)).toBe('0:01.250');
  });

  test('are never more than there is room for', () => {
    for (const lengthMs of [100, 12_000, 67 * 60_000, 5 * 3_600_000, 30 * 24 * 3_600_000])
      expect(ticksOf(0, lengthMs, 0, stepOf(lengthMs, 9)).length).toBeLessThanOrEqual(10);
  });
});

test('a call without a packet has no MOS', () => {
  const heard = { packets_lost: 0, jitter_ms: 0, round_trip_ms: 0 };
  expect(mosOf({ quality: { ...heard, mos: 0 } })).toBe('');
  expect(mosOf({ quality: { ...heard, mos: 4.41 } })).toBe('4.4');
  expect(titleOf({ at: at(0), kind: 'quality', packets_in: 0, mos: 0, ...heard })).toBe('no packets');
});

test('figures of quality are announced for a call that may have some, and not for one that ended, or for a WebSocket', () => {
  const live = { type: 'phone_in', ended_at: '' };
  expect(noFigures(live)).toContain('The first figures come');
  for (const none of [
    { ...live, ended_at: at(3) },
    { ...live, type: 'websocket' },
  ])
    expect(noFigures(none)).toContain('no figures');
});

test('characters that turn a text around are shown, not followed; those that join letters and emoji stay', () => {
  expect(visible('sip:\u202e127\u0007')).toBe('sip:⟨U+202E⟩127⟨U+0007⟩');
  expect(visible('👩‍🚀 مرحبا\nline')).toBe('👩‍🚀 مرحبا\nline');
});

test('a field of a time means UTC where times are shown in UTC', () => {
  expect(instantOf('2026-11-26T06:45', 'utc')).toBe('2026-11-26T06:45:00.000Z');
  expect(fieldOf('2026-11-26T06:45:00.000Z', 'utc')).toBe('2026-11-26T06:45');
  expect(instantOf(fieldOf('2026-11-26T06:45:07.000Z', 'local'), 'local')).toBe('2026-11-26T06:45:07.000Z');
  expect([instantOf('', 'utc'), instantOf('garbage', 'local'), fieldOf('garbage', 'utc')]).toEqual(['', '', '']);
});

describe('the list of calls', () => {
  const uuids = (rows: { readonly calls: readonly Call[] }) => rows.calls.map(({ session_uuid: uuid }) => uuid);

  test('a new call comes first, and the one that it pushed off the first page stays', () => {
    const first = merged(NONE, '', { sessions: [call(4), call(3)], after: 'c3' });
    const second = merged(first, 'c3', { sessions: [call(2), call(1)], after: '' });
    const later = merged(second, '', { sessions: [call(5, 'answered'), call(4)], after: 'c4' });
    expect(uuids(later)).toEqual(['s5', 's4', 's3', 's2', 's1']);
    expect(later.next).toBe('');
  });

  test('a call that new ones have pushed off the first page is on the page after it, whose news show its end', () => {
    const first = merged(NONE, '', { sessions: [call(4), call(3, 'answered')], after: 'c3' });
    const later = merged(first, '', { sessions: [call(5), call(4)], after: 'c4' });
    expect([later.pageOf.get('s3'), hasLive(later, 'c4'), later.cursors]).toEqual(['c4', true, ['', 'c4']]);
    const next = merged(later, '', { sessions: [call(6), call(5)], after: 'c5' });
    expect([next.pageOf.get('s3'), next.pageOf.get('s4'), next.cursors]).toEqual(['c5', 'c5', ['', 'c5']]);
    const seen = merged(next, 'c5', { sessions: [call(4), call(3)], after: 'c3' });
    expect([uuids(seen), hasLive(seen, 'c5'), seen.next]).toEqual([['s6', 's5', 's4', 's3'], false, 'c3']);
  });

  test('the calls of a rare number stay where the first page has none of them, or has none any more', () => {
    const first = merged(NONE, '', { sessions: [], after: 'c3' });
    const second = merged(first, 'c3', { sessions: [call(2)], after: 'c1' });
    const later = merged(second, '', { sessions: [], after: 'c3' });
    expect([uuids(later), later.next]).toEqual([['s2'], 'c1']);
    const one = merged(NONE, '', { sessions: [call(4)], after: 'c3' });
    expect(uuids(merged(one, '', { sessions: [], after: 'c5' }))).toEqual(['s4']);
  });

  test('does not become more than twice as long as it was loaded, however many calls come while it is open', () => {
    const page = (newest: number) => ({ sessions: [call(newest), call(newest - 1), call(newest - 2)], after: `c${newest - 2}` });
    let rows: Rows = merged(merged(NONE, '', page(6)), 'c4', page(3));
    let most = 0;
    let shrunk = 0;
    for (let newest = 7; newest < 60; newest++) {
      const before = rows.calls.length;
      rows = merged(rows, '', page(newest));
      shrunk = Math.max(shrunk, before - rows.calls.length);
      // What is left out at the end is loaded again from where the rows end.
      expect(rows.next).toBe(`c${newest + 1 - rows.calls.length}`);
      most = Math.max(most, rows.calls.length);
      expect(uuids(rows)).toEqual(Array.from(rows.calls, (_, at) => `s${newest - at}`));
      expect(rows.pageOf.size).toBe(rows.calls.length);
      expect(rows.cursors.length).toBeLessThanOrEqual(5);
    }
    expect(most).toBeLessThanOrEqual(12);
    // It is the last page that goes, so that a reader further up keeps the place.
    expect(shrunk).toBeLessThanOrEqual(3);
  });

  test('begins anew after two thousand calls, where the reader stays at its end and loads what went again and again', () => {
    const page = (newest: number) => ({ sessions: [call(newest), call(newest - 1), call(newest - 2)], after: `c${newest - 2}` });
    let rows: Rows = { ...merged(merged(NONE, '', page(6)), 'c4', page(3)), pushedInAll: 1_998 };
    const lengths: number[] = [];
    for (let newest = 7; newest < 11; newest++) {
      rows = merged(rows, '', page(newest));
      lengths.push(rows.calls.length);
    }
    expect([lengths, rows.pushedInAll]).toEqual([[7, 8, 3, 4], 1]);
  });

  test('the answer for a page of a list that has begun anew since leaves no hole in it', () => {
    const first = merged(NONE, '', { sessions: [call(4), call(3)], after: 'c3' });
    const anew = merged(first, '', { sessions: [call(9), call(8)], after: 'c8' });
    expect(merged(anew, 'c3', { sessions: [call(2), call(1)], after: '' })).toBe(anew);
  });

  test('is asked for by one request at a time, and once more for what has happened meanwhile', async () => {
    const sent: { readonly key: string; readonly answer: () => void }[] = [];
    const load = oneAtATime((key) => new Promise((answer) => sent.push({ key, answer })));
    const done = load('a');
    for (const key of ['a', 'b', 'a']) void load(key);
    expect(sent.map(({ key }) => key)).toEqual(['a', 'b']);
    sent[0]?.answer();
    await Promise.resolve();
    while (sent.length < 3) await Promise.resolve();
    expect(sent.map(({ key }) => key)).toEqual(['a', 'b', 'a']);
    sent[2]?.answer();
    await done;
    void load('a');
    expect(sent.length).toBe(4);
  });

  test('begins anew where more calls came than a page holds, so that none is missing between', () => {
    const first = merged(NONE, '', { sessions: [call(4), call(3)], after: 'c3' });
    const later = merged(first, '', { sessions: [call(9), call(8)], after: 'c8' });
    expect([uuids(later), later.next, later.cursors]).toEqual([['s9', 's8'], 'c8', ['']]);
  });

  test('a call that does not match any more, or was erased, goes', () => {
    const first = merged(NONE, '', { sessions: [call(4), call(3), call(2)], after: '' });
    expect(uuids(merged(first, '', { sessions: [call(4), call(2)], after: '' }))).toEqual(['s4', 's2']);
    expect(uuids(merged(first, '', { sessions: [], after: '' }))).toEqual([]);
  });
});

test('of the live calls the page of Rooms keeps those of its members alone', () => {
  const found = new Map([call(1), call(2), call(3)].map((each) => [each.session_uuid, each]));
  const before = new Map([call(4), call(5)].map((each) => [each.session_uuid, each]));
  expect([...ofMembers(['s2', 's4', 's9'], found, before).keys()]).toEqual(['s2', 's4']);
});

test('every type of a call has a name on its page', () => {
  const { properties }: { readonly properties: { readonly type: { readonly enum: readonly string[] } } } = JSON.parse(
    JSON.stringify(SCHEMAS.Session),
  );
  expect(Object.keys(TYPE_NAMES).sort()).toEqual([...properties.type.enum].sort());
});

describe('the clock of the platform', () => {
  /** Answers of a platform whose clock is `aheadMs` ahead of ours, which took `tookMs` each. */
  const answers = (aheadMs: number, tookMs: number, sent: readonly number[]) =>
    sent.reduce<Difference | undefined>((known, sentAt) => {
      const written = sentAt + tookMs / 2 + aheadMs;
      return learnt(known, { sentAt, heardAt: sentAt + tookMs, date: Math.floor(written / 1000) * 1000 });
    }, undefined);

  test('is known to half a second by one answer, and closer by some', () => {
    const sent = Array.from({ length: 20 }, (_, at) => 1_000_000 + at * 1_137);
    for (const aheadMs of [-600_000, -1_500, 2_500, 86_400_000]) {
      expect(Math.abs(differenceOf(answers(aheadMs, 40, [1_000_000])) - aheadMs)).toBeLessThan(530);
      expect(Math.abs(differenceOf(answers(aheadMs, 40, sent)) - aheadMs)).toBeLessThan(80);
    }
  });

  test('is taken for ours where ours may be right, and learnt anew where one of them was set', () => {
    expect(differenceOf(undefined)).toBe(0);
    expect(differenceOf(answers(300, 40, [1_000_000]))).toBe(0);
    const before = answers(600_000, 40, [1_000_000, 1_001_400]);
    const after = learnt(before, { sentAt: 2_000_000, heardAt: 2_000_040, date: 2_000_000 });
    expect(differenceOf(after)).toBe(0);
    expect(learnt(before, { sentAt: 0, heardAt: 1, date: Number.NaN })).toBe(before);
  });
});
