/** The emission contract as a checker: what it lets pass, and what it finds. */
import { describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import { newUuid } from '../../src/id.ts';

interface Told {
  readonly event: string;
  readonly [field: string]: unknown;
}

const session = { session_uuid: 's1' };
const room = { room_id: 'r1' };
const member = { ...session, ...room };
const recording = { ...session, recording_uuid: 'rec_1', operation_uuid: 'o-rec' };

/** A call with everything in it, in an order that the interface permits. */
const CALL: readonly Told[] = [
  { event: 'room.created', app_uuid: 'app_1', ...room },
  { event: 'session.created', ...session, caller_id: '', did: '+15550001', type: 'phone_in' },
  { event: 'session.answered', ...session },
  { event: 'recording.became_available', ...recording },
  { event: 'playback.started', ...session, operation_uuid: 'o-play', urls: [] },
  { event: 'dtmf.received', ...session, digit: '1' },
  { event: 'digits.collected', ...session, operation_uuid: 'o-digits', status: 'success' },
  { event: 'playback.ended', ...session, operation_uuid: 'o-play', reason: 'stopped' },
  { event: 'session.held', ...session, by: 'far_end' },
  { event: 'session.held', ...session, by: 'application' },
  { event: 'session.resumed', ...session, by: 'far_end' },
  { event: 'room.member.joined', ...member },
  { event: 'recording.speech.started', ...recording },
  { event: 'room.member.voice_activity_changed', ...member, talking: true },
  { event: 'room.member.volume_changed', ...member, operation_uuid: 'o-volume' },
  { event: 'room.playback.ended', ...room, operation_uuid: 'o-room-play' },
  { event: 'recording.speech.ended', ...recording },
  { event: 'room.member.voice_activity_changed', ...member, talking: false },
  { event: 'room.member.left', ...member, reason: 'hangup' },
  { event: 'recording.ended', ...recording, duration: 3 },
  { event: 'session.ended', ...session, answered: true, duration_seconds: 3 },
  { event: 'payment.charge.completed', ...session, operation_uuid: 'o-charge' },
  { event: 'room.deleted', app_uuid: 'app_1', ...room, reason: 'closed' },
];

const lineOf = (told: Told) => ({
  webhook_id: `evt_${newUuid()}`,
  received_at: '2026-01-01T00:00:00.000Z',
  body: JSON.stringify({ aud: 'app_1', timestamp: '2026-01-01T00:00:00.000Z', ...told }),
});

function breaches(stream: readonly Told[], isOpen = false): string[] {
  const checker = new EmissionChecker();
  const found = stream.map(lineOf).flatMap(({ webhook_id, body }) => checker.take(webhook_id, body));
  return isOpen ? found : [...found, ...checker.end()];
}

const without = (event: string) => CALL.filter((told) => told.event !== event);
const first = (event: string): Told => CALL.find((told) => told.event === event) ?? { event };
const after = (event: string, ...more: readonly Told[]) =>
  CALL.flatMap((told) => (told.event === event ? [told, ...more] : [told]));

describe('the emission contract', () => {
  test('lets a whole call pass, and a dial that goes straight to its end', () => {
    expect(breaches(CALL)).toEqual([]);
    expect(breaches([{ event: 'session.ended', ...session, answered: false, duration_seconds: 0 }])).toEqual([]);
  });

  const found: readonly (readonly [string, readonly Told[], RegExp])[] = [
    ['a second end', after('session.ended', first('session.ended')), /session\.ended twice/],
    ['no end', without('session.ended'), /no session\.ended/],
    [
      'an event after the end',
      after('session.ended', { event: 'dtmf.received', ...session }),
      /dtmf\.received after session\.ended/,
    ],
    [
      'a beginning that is not the first event',
      after('session.answered', first('session.created')),
      /session\.created is not the first/,
    ],
    [
      'ringing after the answer',
      after('session.answered', { event: 'session.ringing_started', ...session }),
      /ringing_started after session\.answered/,
    ],
    ['a second answer', after('session.answered', first('session.answered')), /session\.answered after session\.answered/],
    ['an answered end without an answer', without('session.answered'), /says answered, and no session\.answered/],
    [
      'an end that was not answered and lasted',
      [{ event: 'session.ended', ...session, answered: false, duration_seconds: 2 }],
      /has a duration/,
    ],
    ['a playback without an end', without('playback.ended'), /before the end of the playback o-play/],
    ['a playback that ends twice', after('playback.ended', first('playback.ended')), /was over/],
    ['digits that are collected twice', after('digits.collected', first('digits.collected')), /digits\.collected twice/],
    ['a hold that is told twice', after('session.answered', first('session.held')), /session\.held by far_end twice/],
    ['a member that never left', without('room.member.left'), /before room\.member\.left/],
    ['a member that joined twice', after('room.member.joined', first('room.member.joined')), /joined/],
    ['a voice without a member', without('room.member.joined'), /who is no member/],
    [
      'a voice that is told twice',
      after('room.member.joined', { event: 'room.member.voice_activity_changed', ...member, talking: true }),
      /tells true twice/,
    ],
    ['a member that leaves talking', CALL.filter((told) => told.talking !== false), /told to be talking/],
    [
      'a volume with two outcomes',
      after('room.member.volume_changed', { ...first('room.member.volume_changed'), event: 'room.member.volume_change_failed' }),
      /twice for the operation o-volume/,
    ],
    [
      'a Room playback that ends twice',
      after('room.playback.ended', first('room.playback.ended')),
      /twice for the operation o-room-play/,
    ],
    ['a Room that speaks after its end', after('room.deleted', first('room.playback.ended')), /after room\.deleted/],
    [
      'a recording that is available twice',
      after('recording.became_available', first('recording.became_available')),
      /had become available before/,
    ],
    [
      'a recording that failed and is available',
      after('recording.became_available', { event: 'recording.failed', ...recording }),
      /had become available/,
    ],
    ['a recording without an end', without('recording.ended'), /no recording\.ended/],
    [
      'a recording that failed and has no end',
      without('recording.ended').flatMap((told) =>
        told.event === 'recording.became_available'
          ? [{ event: 'recording.failed', ...recording }]
          : told.event.startsWith('recording.')
            ? []
            : [told],
      ),
      /no recording\.ended/,
    ],
    ['a recording that ends twice', after('recording.ended', first('recording.ended')), /recording\.ended twice/],
    ['speech that ends before it begins', without('recording.speech.started'), /before recording\.speech\.started/],
    [
      'a charge with two outcomes',
      after('payment.charge.completed', first('payment.charge.completed')),
      /payment\.charge\.completed twice/,
    ],
    [
      'a greeting without a machine',
      after('session.answered', { event: 'session.machine_greeting.ended', ...session }),
      /without a machine/,
    ],
    [
      'a machine without the end of its greeting',
      after('session.answered', { event: 'session.machine_detection.completed', ...session, result: 'machine' }),
      /before session\.machine_greeting\.ended/,
    ],
    [
      'a message that goes back',
      ['queued', 'sent', 'sending'].map((status) => ({ event: 'message.status_changed', message_uuid: 'm', status })),
      /sending after sent/,
    ],
    [
      'a message after its end',
      ['delivered', 'failed'].map((status) => ({ event: 'message.status_changed', message_uuid: 'm', status })),
      /failed after delivered/,
    ],
    [
      'a WebSocket that is lost before it is there',
      [{ event: 'websocket.disconnected', ...session }],
      /before websocket\.connected/,
    ],
    [
      'a time without milliseconds',
      after('session.answered', { ...first('dtmf.received'), timestamp: '2026-01-01T00:00:00Z' }),
      /three digits/,
    ],
  ];
  test.each(found)('finds %s', (_, stream, expected) => {
    const all = breaches(stream);
    expect(all.join('\n')).toMatch(expected);
    expect(all.length).toBeLessThanOrEqual(3);
  });

  test('lets a member leave after its Room was deleted only where its leave was not waited for to the end', () => {
    const late = (reason: string) =>
      without('room.deleted').flatMap((told) =>
        told.event === 'room.member.left' ? [{ ...first('room.deleted'), reason }, told] : [told],
      );
    expect(breaches(late('timeout'))).toEqual([]);
    expect(breaches(late('closed')).join('\n')).toMatch(/before room\.member\.left/);
  });

  test('does not miss an end where calls may still run', () => {
    expect(breaches(without('session.ended').slice(0, 5), true)).toEqual([]);
  });

  test('lets a repeated delivery pass if its bytes are the same, and samples altogether', () => {
    const checker = new EmissionChecker();
    const { webhook_id, body } = lineOf(first('session.created'));
    expect(checker.take(webhook_id, body)).toEqual([]);
    expect(checker.take(webhook_id, body)).toEqual([]);
    expect(checker.take(webhook_id, body.replace('+15550001', '+15550002'))).toEqual([
      `${webhook_id} came again with other bytes`,
    ]);
    const sample = lineOf({ ...first('session.ended'), test: true });
    expect([checker.take(sample.webhook_id, sample.body), checker.events]).toEqual([[], 1]);
  });
});

test('sidetone conform exits with 0, or with 1 and a line for each breach', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sidetone-conform-'));
  const file = join(directory, 'log');
  const run = (...args: string[]) => {
    const { status, stdout } = spawnSync('node', [join(import.meta.dir, '../../bin/sidetone'), 'conform', file, ...args], {
      encoding: 'utf8',
    });
    return { status, lines: stdout.split('\n').filter((line) => line !== '') };
  };
  try {
    const log = (stream: readonly Told[]) => writeFileSync(file, stream.map((told) => JSON.stringify(lineOf(told))).join('\n'));
    log(CALL);
    expect(run()).toEqual({ status: 0, lines: [] });
    log(after('session.ended', first('session.ended')));
    expect(run()).toEqual({
      status: 1,
      lines: ['line 22: session s1: session.ended after session.ended', 'line 22: session s1: session.ended twice'],
    });
    log(without('session.ended').slice(0, 3));
    expect(run()).toEqual({ status: 1, lines: ['at the end: session s1: no session.ended'] });
    expect(run('--open')).toEqual({ status: 0, lines: [] });
    expect(JSON.parse(run('--json').lines.join(''))).toEqual({
      events: 3,
      deliveries: 3,
      breaches: [{ where: 'at the end', what: 'session s1: no session.ended' }],
      more: 0,
    });
    writeFileSync(file, 'no json\n');
    expect(run()).toEqual({ status: 1, lines: ['line 1: is not {webhook_id, received_at, body}'] });
    rmSync(file);
    expect(run().status).toBe(2);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
