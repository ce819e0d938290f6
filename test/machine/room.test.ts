import { describe, expect, test } from 'bun:test';
import type { Event } from '../../src/event/event.ts';
import {
  commandMember,
  leave,
  type MemberCommand,
  type Membership,
  type MembershipStep,
  memberJoined,
  memberLost,
  roomRefusal as memberRefusal,
  memberTalking,
  volumeSet,
} from '../../src/machine/room/membership.ts';
import {
  newRoom,
  playbackStatus,
  type RoomCommand,
  type RoomInput,
  type RoomState,
  roomDeadline,
  stepRoom,
} from '../../src/machine/room/room.ts';
import type { SessionInput } from '../../src/machine/session/input.ts';
import { inbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';
import fc from '../support/fast-check.ts';

class Run {
  state: RoomState = newRoom({ roomId: 'r', appUuid: 'a', voiceActivityEvents: false, holdMusicUrl: '' }, 0);
  now = 0;
  events: Event[] = [];
  effects: string[] = [];
  refused: string | undefined;
  status = 202;

  give(input: RoomInput, afterMs = 0): this {
    this.now += afterMs;
    const next = stepRoom(this.state, input, this.now);
    this.state = next.state;
    this.events.push(...next.events);
    this.effects.push(...next.effects.map((effect) => effect.do));
    this.refused = next.refused?.message;
    this.status = next.refused?.status ?? 202;
    return this;
  }

  order(order: RoomCommand, operationUuid = 'op', afterMs = 0): this {
    return this.give({ type: 'command', command: order, operationUuid }, afterMs);
  }

  hear(type: 'playback.started' | 'playback.completed' | 'playback.stopped', operationUuid = 'op'): this {
    return this.give({ type: 'media', notice: { type, operationUuid } });
  }

  get names(): string[] {
    return this.events.map(({ event }) => event);
  }
}

const play: RoomCommand = { type: 'play', urls: ['http://a/1', 'http://a/2'], loop: 1, volume: undefined };

describe('a Room', () => {
  test('plays from the confirmation on and ends once with the full playlist', () => {
    const run = new Run().order(play);
    expect(playbackStatus(run.state)).toBe('stopped');
    expect(playbackStatus(run.hear('playback.started').state)).toBe('playing');
    run.hear('playback.completed').hear('playback.completed');
    expect(run.events).toEqual([
      {
        event: 'room.playback.ended',
        room_id: 'r',
        operation_uuid: 'op',
        urls: ['http://a/1', 'http://a/2'],
        reason: 'completed',
      },
    ]);
    expect(playbackStatus(run.state)).toBe('stopped');
  });

  test('a start that is not confirmed within 10 s has failed, and the Room takes a new play', () => {
    const run = new Run().order(play);
    expect(roomDeadline(run.state)).toBe(10_000);
    run.give({ type: 'deadline' }, 10_000);
    expect(run.events).toMatchObject([{ event: 'room.playback.failed', error: 'playback_timeout', operation_uuid: 'op' }]);
    expect(run.order(play, 'op2').status).toBe(202);
  });

  test('a play or stop while one is being carried out, and control of nothing, are conflicts', () => {
    const run = new Run();
    for (const type of ['pause', 'resume', 'stop'] as const) expect(run.order({ type }).status).toBe(409);
    run.order(play);
    expect(run.order(play, 'op2').refused).toBe('Another room media transition is in progress');
    expect(run.order({ type: 'stop' }).refused).toBe('Another room media transition is in progress');
    run.hear('playback.started').order({ type: 'stop' });
    expect(run.order({ type: 'stop' }).refused).toBe('Another room media transition is in progress');
  });

  test('a new play ends the old one as stopped; pause and resume show in the status', () => {
    const run = new Run().order(play, 'one').hear('playback.started', 'one');
    expect(playbackStatus(run.order({ type: 'pause' }).state)).toBe('paused');
    expect(playbackStatus(run.order({ type: 'resume' }).state)).toBe('playing');
    run.order(play, 'two').hear('playback.stopped', 'one').hear('playback.started', 'two');
    expect(run.events).toMatchObject([{ event: 'room.playback.ended', operation_uuid: 'one', reason: 'stopped' }]);
  });

  test('a playback that is paused before its first sound does not fail, and has 10 s to start from its resume on', () => {
    const run = new Run().order(play).order({ type: 'pause' }, 'op', 3000);
    expect(roomDeadline(run.state)).toBeUndefined();
    expect(playbackStatus(run.state)).toBe('paused');
    run.order({ type: 'resume' }, 'op', 60_000);
    expect(roomDeadline(run.state)).toBe(73_000);
    expect(playbackStatus(run.state)).toBe('stopped');
    const failed = new Run().order(play).order({ type: 'pause' }).order({ type: 'resume' }).give({ type: 'deadline' }, 10_000);
    expect(failed.events).toMatchObject([{ event: 'room.playback.failed', error: 'playback_timeout' }]);
    expect(playbackStatus(run.hear('playback.started').state)).toBe('playing');
    expect(roomDeadline(run.state)).toBeUndefined();
    expect(run.events).toEqual([]);
  });

  test('a first sound that crosses the pause leaves the playback paused, and its resume needs no confirmation', () => {
    const run = new Run().order(play).order({ type: 'pause' }).hear('playback.started');
    expect(playbackStatus(run.state)).toBe('paused');
    expect(playbackStatus(run.order({ type: 'resume' }).state)).toBe('playing');
    expect(roomDeadline(run.state)).toBeUndefined();
  });

  test('the volume is kept for the next play, and 0 means 0 once it was set', () => {
    expect(new Run().state.volume).toBeUndefined();
    const run = new Run().order({ type: 'volume', volume: 0 });
    const next = stepRoom(run.state, { type: 'command', command: play, operationUuid: 'op' }, 1);
    expect(next.effects).toEqual([{ do: 'play', operationUuid: 'op', loop: 1, volume: 0 }]);
  });

  test('a play may bring a volume, which is kept; without any it is 100', () => {
    const effectOf = (state: RoomState, volume: number | undefined) =>
      stepRoom(state, { type: 'command', command: { ...play, volume }, operationUuid: 'op' }, 1);
    expect(effectOf(new Run().state, undefined).effects).toMatchObject([{ do: 'play', volume: 100 }]);
    const louder = effectOf(new Run().order({ type: 'volume', volume: 40 }).state, 150);
    expect(louder.effects).toMatchObject([{ do: 'play', volume: 150 }]);
    expect(louder.state.volume).toBe(150);
  });

  test('what plays stays so at a seek or a resume, and an order to stop is carried out once', () => {
    const run = new Run().order(play).hear('playback.started');
    for (const order of [{ type: 'resume' }, { type: 'seek', place: { positionMs: 0 } }] as const)
      expect(playbackStatus(run.order(order).state)).toBe('playing');
    run.order({ type: 'stop' }).order({ type: 'resume' });
    expect(run.state.playback?.phase).toBe('stopping');
    expect(run.effects).toEqual(['play', 'control_playback', 'control_playback', 'stop', 'control_playback']);
  });

  test('that breaks tells that its playback has failed and dismisses its members; while it is being deleted it is gone', () => {
    const run = new Run().order(play).hear('playback.started').give({ type: 'broken' });
    expect([run.names, run.effects.at(-1), roomDeadline(run.state)]).toEqual([['room.playback.failed'], 'dismiss', 10_000]);
    expect(run.give({ type: 'deadline' }, 9_999).names).toEqual(['room.playback.failed']);
    expect(run.give({ type: 'broken' }).events.at(-1)).toMatchObject({ event: 'room.deleted', reason: 'timeout' });
    expect(new Run().give({ type: 'broken' }).names).toEqual([]);
  });

  test('is deleted once, however often that is asked for', () => {
    const run = new Run().order({ type: 'delete' }).order({ type: 'delete' }, 'op', 5_000);
    expect([run.status, run.effects, roomDeadline(run.state)]).toEqual([202, ['dismiss'], 10_000]);
  });

  test('is deleted when the last member has left, or after 10 s without', () => {
    const empty = new Run().order({ type: 'delete' }).give({ type: 'empty' });
    expect(empty.events).toEqual([{ event: 'room.deleted', app_uuid: 'a', room_id: 'r', reason: 'closed' }]);
    expect(empty.effects).toEqual(['dismiss', 'close']);
    const stuck = new Run().order(play).hear('playback.started').order({ type: 'delete' }).give({ type: 'deadline' }, 10_000);
    expect(stuck.events).toMatchObject([
      { event: 'room.playback.ended', reason: 'stopped' },
      { event: 'room.deleted', reason: 'timeout' },
    ]);
    expect(new Run().order({ type: 'delete' }).order(play).status).toBe(409);
    // Orders that waited behind the end of it.
    for (const order of [play, { type: 'volume', volume: 50 }, { type: 'delete' }] as const)
      expect(new Run().order({ type: 'delete' }).give({ type: 'empty' }).order(order)).toMatchObject({
        status: 404,
        refused: 'Room not found',
      });
  });

  test('whatever comes in whatever order: each play and recording ends once, and nothing comes after room.deleted', () => {
    const orders = fc.constantFrom<RoomCommand | 'record'>(
      play,
      { ...play, volume: 70 },
      { type: 'pause' },
      { type: 'resume' },
      { type: 'stop' },
      { type: 'volume', volume: 50 },
      { type: 'seek', place: { positionMs: 0 } },
      'record',
      { type: 'stop_recording' },
    );
    const sounds = fc.constantFrom('playback.started', 'playback.completed', 'playback.stopped', 'playback.failed');
    const recordings = fc.constantFrom('recording.started', 'recording.ended', 'recording.failed');
    const ends = fc.constantFrom<RoomInput>(
      { type: 'command', command: { type: 'delete' }, operationUuid: 'delete' },
      { type: 'shutdown' },
      { type: 'broken' },
    );
    const steps = fc.array(
      fc.oneof(
        { weight: 6, arbitrary: orders.map((order) => ({ order })) },
        { weight: 4, arbitrary: sounds.map((sound) => ({ sound })) },
        { weight: 2, arbitrary: fc.tuple(recordings, fc.boolean()).map(([recording, isLate]) => ({ recording, isLate })) },
        { weight: 2, arbitrary: fc.constantFrom<RoomInput>({ type: 'deadline' }, { type: 'empty' }).map((input) => ({ input })) },
        { weight: 1, arbitrary: ends.map((input) => ({ input })) },
      ),
      { maxLength: 40 },
    );
    const media = (type: string, of: object) => ({
      type: 'media' as const,
      notice: { type, reason: 'decode_error', durationMs: 10, bytes: 1, ...of } as MediaNotice,
    });
    fc.assert(
      fc.property(steps, (given) => {
        const run = new Run();
        const begun: string[] = [];
        for (const [at, one] of given.entries()) {
          const operation = `op${at}`;
          if ('order' in one) {
            const terms = { recordingUuid: operation, includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 };
            const order: RoomCommand = one.order === 'record' ? { type: 'record', terms } : one.order;
            run.order(order, operation, 3000);
            if ((order.type === 'play' || order.type === 'record') && run.refused === undefined) begun.push(operation);
          } else if ('sound' in one) {
            run.give(media(one.sound, { operationUuid: run.state.playback?.operationUuid ?? 'old' }), 10);
          } else if ('recording' in one) {
            const recordingUuid = one.isLate ? 'old' : (run.state.recording?.recordingUuid ?? 'old');
            run.give(media(one.recording, { recordingUuid }), 10);
          } else run.give(one.input, 3000);
          if (run.state.phase === 'deleting') expect(run.state.recording?.phase ?? 'stopping').toBe('stopping');
          const isClosed = run.events.some((event) => event.event === 'room.deleted' && event.reason === 'closed');
          if (isClosed) expect(run.state.recording).toBeUndefined();
        }
        run.order({ type: 'delete' });
        // What a Room that is deleted at last leaves behind is told by the recording's own row.
        const { recording, phase } = run.state;
        if (phase !== 'deleted' && recording !== undefined)
          run.give(media('recording.ended', { recordingUuid: recording.recordingUuid }));
        run.give({ type: 'empty' });
        const left = phase === 'deleted' ? recording?.operationUuid : undefined;
        const told = /^room\.playback\.(ended|failed)$|^recording\.ended$/;
        for (const operation of begun) {
          const terminal = run.events.filter(
            (event) => told.test(event.event) && 'operation_uuid' in event && event.operation_uuid === operation,
          );
          expect([operation, terminal.length]).toEqual([operation, operation === left ? 0 : 1]);
        }
        expect(run.names.filter((name) => name === 'room.deleted')).toHaveLength(1);
        expect(run.names.at(-1)).toBe('room.deleted');
        expect(roomDeadline(run.state)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });
});

describe('a volume', () => {
  const order = { roomId: 'r', operationUuid: 'op', volume: 50, direction: 'both' } as const;

  test('is told once, as changed or, with what was applied and what was not, as failed', () => {
    expect(volumeSet('s', order, [])).toMatchObject({
      event: 'room.member.volume_changed',
      operation_uuid: 'op',
      direction: 'both',
      volume: 50,
    });
    expect(volumeSet('s', order, ['to_member'])).toEqual({
      event: 'room.member.volume_change_failed',
      session_uuid: 's',
      room_id: 'r',
      operation_uuid: 'op',
      volume: 50,
      direction: 'both',
      applied_directions: ['from_member'],
      failed_directions: ['to_member'],
    });
  });

  test('is told once for each, also where several have one Operation-Id and are under way together', () => {
    const about = { sessionUuid: 's', appUuid: 'a', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const other = { ...order, volume: 80 };
    let state: SessionState = { ...inbound(about, 0), phase: 'answered', setting: [order, order, other] };
    const told: unknown[] = [];
    for (const set of [order, other, order, order]) {
      const next = step(state, { type: 'volume_set', order: set, failed: [] }, 1);
      state = next.state;
      told.push(...next.events.map((event) => 'volume' in event && event.volume));
    }
    expect(told).toEqual([50, 80, 50]);
    expect(state.setting).toEqual([]);
  });

  test('that is under way when the member leaves its Room is told as failed before that, and not again', () => {
    const about = { sessionUuid: 's', appUuid: 'a', callerId: '', did: '', orphanTimeoutMs: 120_000 };
    const membership = {
      roomId: 'r',
      room: 1,
      phase: 'joined',
      muted: false,
      voiceActivityEvents: false,
      talking: false,
    } as const;
    const next = { roomId: 'next', room: 2, muted: false, voiceActivityEvents: false } as const;
    const other = { ...order, roomId: 'next' };
    const state: SessionState = { ...inbound(about, 0), phase: 'answered', membership, setting: [order, other] };
    const leaves: readonly SessionInput[] = [
      { type: 'room_closed', roomId: 'r' },
      { type: 'leg.media', notice: { type: 'room.left', room: 1 } },
      { type: 'command', command: { type: 'member_leave', roomId: 'r' }, operationUuid: '' },
      { type: 'command', command: { type: 'member_join', ...next }, operationUuid: '' },
    ];
    for (const input of leaves) {
      const left = step(state, input, 1);
      const told = left.events.map(({ event }) => event);
      expect([told, left.state.setting]).toEqual([['room.member.volume_change_failed', 'room.member.left'], [other]]);
      expect(step(left.state, { type: 'volume_set', order, failed: [] }, 2).events).toEqual([]);
    }
    // It goes on beside another change of the member, which stays where it is.
    const muted = step(state, { type: 'command', command: { type: 'member_mute' }, operationUuid: '' }, 1);
    expect(muted.events.map(({ event }) => event)).toEqual(['room.member.muted']);
    const [changed] = step(muted.state, { type: 'volume_set', order, failed: [] }, 2).events;
    expect(changed?.event).toBe('room.member.volume_changed');
  });
});

describe('a membership', () => {
  const commands = fc.constantFrom<MemberCommand>(
    { type: 'member_join', roomId: 'one', room: 1, muted: false, voiceActivityEvents: true },
    { type: 'member_join', roomId: 'two', room: 2, muted: true, voiceActivityEvents: false },
    { type: 'member_leave', roomId: 'one' },
    { type: 'member_mute' },
    { type: 'member_unmute' },
    { type: 'member_volume', volume: 50, direction: 'both' },
  );
  const notices = fc.constantFrom<(uuid: string, membership: Membership | undefined) => MembershipStep>(
    (uuid, membership) => memberJoined(uuid, membership, 1),
    (uuid, membership) => memberJoined(uuid, membership, 2),
    (uuid, membership) => memberLost(uuid, membership, 1),
    (uuid, membership) => memberTalking(uuid, membership, true),
    (uuid, membership) => memberTalking(uuid, membership, false),
    (uuid, membership) => leave(uuid, membership, 'room_closed'),
  );

  test('joins and leaves come in pairs, one Room at a time; talking is told by turns, never of a muted member, and is over before it leaves', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(commands, notices), { maxLength: 60 }), (given) => {
        let membership: Membership | undefined;
        const inside = new Set<string>();
        let talks = false;
        for (const one of [...given, (uuid: string, last: Membership | undefined) => leave(uuid, last, 'hangup')]) {
          let next: MembershipStep;
          if (typeof one === 'function') next = one('s', membership);
          else if (memberRefusal(membership, one) !== undefined) continue;
          else next = commandMember('s', membership, one, 'op');
          for (const event of next.events) {
            if (!('room_id' in event)) continue;
            if (event.event === 'room.member.joined') {
              expect(inside.size).toBe(0);
              inside.add(event.room_id);
            }
            if (event.event === 'room.member.left') {
              expect(inside.delete(event.room_id) || event.reason === 'removed' || event.reason === 'orphan').toBe(true);
              expect(talks).toBe(false);
            }
            if (event.event === 'room.member.voice_activity_changed') {
              expect(event.talking).toBe(!talks);
              talks = event.talking;
              if (talks) expect(membership?.muted).toBe(false);
              expect(event.room_id).toBe('one');
            }
          }
          membership = next.membership;
        }
        expect(inside.size).toBe(0);
      }),
    );
  });

  test('that is removed while it is joining is told as left, so that nobody waits for its join', () => {
    const order: MemberCommand = { type: 'member_join', roomId: 'one', room: 1, muted: false, voiceActivityEvents: false };
    const joining = commandMember('s', undefined, order, 'op').membership;
    const removed = commandMember('s', joining, { type: 'member_leave', roomId: 'one' }, 'op');
    expect(removed.events).toEqual([{ event: 'room.member.left', session_uuid: 's', room_id: 'one', reason: 'removed' }]);
    expect(memberJoined('s', removed.membership, 1).events).toEqual([]);
    expect(leave('s', joining, 'hangup').events).toEqual([]);
  });

  test('whose audio cannot be brought into the Room is told as left, and may join again', () => {
    const order: MemberCommand = { type: 'member_join', roomId: 'one', room: 1, muted: false, voiceActivityEvents: false };
    const joining = commandMember('s', undefined, order, 'op').membership;
    const lost = memberLost('s', joining, 1);
    expect(lost.events).toEqual([{ event: 'room.member.left', session_uuid: 's', room_id: 'one', reason: 'orphan' }]);
    expect(memberRefusal(lost.membership, { ...order, roomId: 'two', room: 2 })).toBeUndefined();
  });

  test('in a Room without voice_activity_events who talks is known, and no event tells it', () => {
    const order: MemberCommand = { type: 'member_join', roomId: 'two', room: 2, muted: false, voiceActivityEvents: false };
    const joined = memberJoined('s', commandMember('s', undefined, order, 'op').membership, 2).membership;
    const begun = memberTalking('s', joined, true);
    expect([begun.membership?.talking, begun.events]).toEqual([true, []]);
    const muted = commandMember('s', begun.membership, { type: 'member_mute' }, 'op');
    expect(muted.membership?.talking).toBe(false);
    expect(muted.events.map(({ event }) => event)).toEqual(['room.member.muted']);
    expect(leave('s', begun.membership, 'removed').events.map(({ event }) => event)).toEqual(['room.member.left']);
  });

  test('a Session that is still joining one Room cannot join another, be muted or turned down', () => {
    const { membership } = commandMember(
      's',
      undefined,
      { type: 'member_join', roomId: 'one', room: 1, muted: false, voiceActivityEvents: false },
      'op',
    );
    const wait = 'Session is still joining a conference room';
    const other: MemberCommand = { type: 'member_join', roomId: 'two', room: 2, muted: false, voiceActivityEvents: false };
    for (const command of [other, { type: 'member_mute' }, { type: 'member_volume', volume: 1, direction: 'both' }] as const) {
      expect(memberRefusal(membership, command)?.message).toBe(wait);
    }
    expect(memberRefusal(undefined, { type: 'member_mute' })?.message).toBe('Session is not in a room');
  });
});

describe('a Room that a crash left', () => {
  test('tells once that what it played has failed, and is open for the next play', () => {
    const run = new Run().give({ type: 'recovered', playback: { operationUuid: 'before', urls: ['http://a/1'] } });
    expect(run.events).toEqual([
      { event: 'room.playback.failed', room_id: 'r', operation_uuid: 'before', urls: ['http://a/1'], error: 'playback_error' },
    ]);
    expect(run.order(play).status).toBe(202);
    expect(new Run().give({ type: 'recovered', playback: undefined }).events).toEqual([]);
  });
});

describe('the recording of a Room', () => {
  const terms = { recordingUuid: 'rec_1', includeGaps: false, voiceActivity: undefined, livenessMs: 10_000 };
  const record: RoomCommand = { type: 'record', terms };
  const over: RoomInput = {
    type: 'media',
    notice: { type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 1_500, bytes: 1 },
  };
  const names = (run: Run) => run.events.map(({ event }) => event);

  test('is one at a time; its stop is in progress until its file is finished', () => {
    const run = new Run().order({ type: 'stop_recording' });
    expect(run).toMatchObject({ status: 409, refused: 'No recording of the room is active' });
    expect(run.order(record).order(record)).toMatchObject({ status: 409, refused: 'Room is already being recorded' });
    run.order({ type: 'stop_recording' }).order({ type: 'stop_recording' });
    expect(run).toMatchObject({ status: 409, refused: 'Room recording stop is already in progress' });
    for (const order of [record, { type: 'play', urls: [], loop: 1, volume: undefined }] as const)
      expect(run.order(order)).toMatchObject({ status: 409, refused: 'Another room media transition is in progress' });
    expect(names(run.give(over))).toEqual(['recording.ended']);
    expect(run.events[0]).toMatchObject({ room_id: 'r', operation_uuid: 'op', duration: 1 });
    expect(run.order(record).status).toBe(202);
  });

  test('is stopped when the platform goes down, and heard by its own name only', () => {
    expect(new Run().give({ type: 'shutdown' }).effects).toEqual([]);
    const run = new Run().order(record).give({ type: 'shutdown' });
    expect(run.effects).toEqual(['record', 'stop_recording']);
    const other = { type: 'recording.ended', recordingUuid: 'rec_0', durationMs: 1, bytes: 1 } as const;
    expect(names(run.give({ type: 'media', notice: other }))).toEqual([]);
    expect(names(run.give(over))).toEqual(['recording.ended']);
  });

  test('is awaited by the deletion, for ten seconds', () => {
    const run = new Run().order(record).order({ type: 'delete' });
    expect(run.effects).toEqual(['record', 'stop_recording', 'dismiss']);
    expect(names(run.give({ type: 'empty' }))).toEqual([]);
    expect(names(run.give(over).give({ type: 'empty' }))).toEqual(['recording.ended', 'room.deleted']);
    const late = new Run().order(record).order({ type: 'delete' }).give({ type: 'deadline' }, 10_000);
    expect(names(late)).toEqual(['room.deleted']);
  });
});
