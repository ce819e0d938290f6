/**
 * What the console makes of the platform's answers, without a browser: spans of a call, and the merged list of calls.
 */
import { describe, expect, test } from 'bun:test';
import { spansOf, takesOf } from '../../console/call/spans.ts';
import { TYPE_NAMES } from '../../console/call/words.ts';
import { merged } from '../../console/page/call-list.ts';
import type { Call, Entry } from '../../console/platform/types.ts';
import { SCHEMAS } from '../../src/http/openapi/schemas.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();
const ms = (second: number): number => Date.parse(at(second));
const media = (second: number, what: string, more: Record<string, string> = {}): Entry => ({
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

  test('audio is masked by the command of a recording, not by one that was refused, and while a card is keyed in', () => {
    const entries = [
      command(1, '/v1/sessions/s/recordings/rec_1/mask', 409),
      command(2, '/v1/sessions/s/recordings/rec_1/mask'),
      command(3, '/v1/sessions/s/recordings/rec_1/unmask'),
      command(5, '/v1/sessions/s/payment/card/collect'),
      event(8, 'payment.card.collected', { operation_uuid: 'op' }),
    ];
    expect(spansOf(entries, ms(9))).toEqual([
      { what: 'masked', from: ms(2), until: ms(3), recordingUuid: 'rec_1' },
      { what: 'masked', from: ms(5), until: ms(8), recordingUuid: '' },
    ]);
  });

  test('a recording begins with the command that asked for it, and is read from this platform', () => {
    const body = {
      recording_uuid: 'rec_1',
      operation_uuid: 'op',
      duration: 7,
      pull_url: 'https://voice.example.com/recordings/rec_1?sig=x',
    };
    const entries = [
      command(1, '/v1/sessions/s/recordings'),
      media(2, 'recording_started', { recording_uuid: 'rec_1' }),
      event(9, 'recording.ended', body),
    ];
    expect(takesOf(entries)).toEqual([{ recordingUuid: 'rec_1', url: '/recordings/rec_1?sig=x', from: ms(1), durationSec: 7 }]);
  });
});

describe('the list of calls', () => {
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
  const none = { calls: [], cursors: [], pageOf: new Map<string, string>(), next: '' };
  const uuids = (rows: { readonly calls: readonly Call[] }) => rows.calls.map(({ session_uuid: uuid }) => uuid);

  test('a new call comes first, and the one that it pushed off the first page stays', () => {
    const first = merged(none, '', { sessions: [call(4), call(3)], after: 'c3' });
    const second = merged(first, 'c3', { sessions: [call(2), call(1)], after: '' });
    const later = merged(second, '', { sessions: [call(5, 'answered'), call(4)], after: 'c4' });
    expect(uuids(later)).toEqual(['s5', 's4', 's3', 's2', 's1']);
    expect(later.next).toBe('');
  });

  test('a call that does not match any more, or was erased, goes', () => {
    const first = merged(none, '', { sessions: [call(4), call(3), call(2)], after: '' });
    expect(uuids(merged(first, '', { sessions: [call(4), call(2)], after: '' }))).toEqual(['s4', 's2']);
    expect(uuids(merged(first, '', { sessions: [], after: '' }))).toEqual([]);
  });
});

test('every type of a call has a name on its page', () => {
  const { properties }: { readonly properties: { readonly type: { readonly enum: readonly string[] } } } = JSON.parse(
    JSON.stringify(SCHEMAS.Session),
  );
  expect(Object.keys(TYPE_NAMES).sort()).toEqual([...properties.type.enum].sort());
});
