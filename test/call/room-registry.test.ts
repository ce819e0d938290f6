import { expect, spyOn, test } from 'bun:test';
import { RoomRegistry } from '../../src/call/room/room-registry.ts';
import type { SessionActor } from '../../src/call/session/session-actor.ts';
import type { Journal, RoomRow } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { LIST_MATCHED_MAX_ITEMS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { isProblem } from '../../src/problem.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietRoom } from './quiet-room.ts';
import { quietSession } from './quiet-session.ts';

/** Rooms whose journal takes everything, or throws as a bug would. */
function world(rows: number, deleting = false) {
  const events: string[] = [];
  const opened: string[] = [];
  const source = { answers: Promise.resolve() };
  const bug = { next: false };
  /** What happens while the next change is stored. */
  const storing = { meanwhile: () => {} };
  /** Another process has the Rooms by now. */
  const taken = { now: false };
  /** Playlists that were opened and not released. */
  const open = { count: 0 };
  const stored: RoomRow[] = [];
  const clock = new VirtualClock();
  const limits = { maxRooms: 100, maxMembersPerRoom: 250 };
  /** Whether there is no media worker. */
  const media = { isGone: false };
  const sessions = new Map<string, SessionActor>();
  const journal: Journal = {
    commit: async (change) => {
      storing.meanwhile();
      if (bug.next) {
        bug.next = false;
        throw new Error('a bug');
      }
      if (taken.now) return false;
      events.push(...change.events.map(({ name }) => name));
      if (change.room !== undefined) stored.push(change.room);
      return true;
    },
    wasStored: async () => false,
  };
  const registry = new RoomRegistry({
    journal,
    records: {
      mine: async () => [],
      adopt: async () =>
        Array.from({ length: rows }, (_, n) => ({
          roomId: newUuid(),
          appUuid: 'app_1',
          nodeId: 'before',
          epoch: 1,
          voiceActivityEvents: true,
          holdMusicUrl: 'https://music.example/a.mp3',
          volume: undefined,
          deleting,
          playback: '',
          createdAt: n,
          deletedAt: undefined,
        })),
    },
    clock,
    log: silentLog,
    nodeId: 'node',
    media: {
      openPipe: async () => undefined,
      openRoom: async () => (media.isGone ? undefined : quietRoom),
      openPlaylist: async (urls) => {
        opened.push(...urls);
        await source.answers;
        open.count += 1;
        return { urls, release: () => (open.count -= 1) };
      },
    },
    recordings: noRecordings,
    limits: async () => limits,
    session: (sessionUuid) => sessions.get(sessionUuid),
    isLive: async () => false,
  });
  return { registry, events, opened, bug, taken, clock, stored, source, open, storing, limits, media, sessions, journal };
}

test('While a play of a Room opens its sources another one, and what else would change its media, is 409.', async () => {
  const { registry, source } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await registry.create({ voice_activity_events: false }, context);
  const room = isProblem(made) ? '' : String(made.body.room_id);
  const play = { type: 'play', urls: ['http://slow/'], loop: 1, volume: undefined } as const;
  const answered = Promise.withResolvers<void>();
  source.answers = answered.promise;
  const first = registry.order(room, play, context);
  const refused = { status: 409, message: 'Another room media transition is in progress' };
  expect(await registry.order(room, play, context)).toMatchObject(refused);
  expect(await registry.order(room, { type: 'stop' }, context)).toMatchObject(refused);
  expect(await registry.order(room, { type: 'volume', volume: 50 }, context)).toMatchObject({ status: 202 });
  answered.resolve();
  expect(await first).toMatchObject({ status: 202 });
});

test('A play whose sources are open is admitted, or lets go of them, whenever another one begins.', async () => {
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const play = { type: 'play', urls: ['http://slow/'], loop: 1, volume: undefined } as const;
  for (let turns = 0; turns < 8; turns += 1) {
    const { registry, source, open } = world(0);
    const made = await registry.create({ voice_activity_events: false }, context);
    const room = isProblem(made) ? '' : String(made.body.room_id);
    const answered = Promise.withResolvers<void>();
    source.answers = answered.promise;
    const first = registry.order(room, play, context);
    answered.resolve();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const second = registry.order(room, play, context);
    expect(await first).toMatchObject({ status: 202 });
    expect(await second).toMatchObject({ status: 409 });
    expect(open.count).toBe(1);
  }
});

test('A play is not ended by the end of the one before under the same Operation-Id, which comes while it is stored.', async () => {
  const { registry, events, storing } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await registry.create({ voice_activity_events: false }, context);
  const room = registry.find(isProblem(made) ? '' : String(made.body.room_id));
  if (room === undefined) throw new Error('no Room');
  const hear = (type: 'playback.started' | 'playback.completed') => room.hear({ type, operationUuid: context.operationUuid });
  const play = { type: 'play', urls: ['http://a/'], loop: 1, volume: undefined } as const;
  await registry.order(room.state.roomId, play, context);
  hear('playback.started');
  await settle();
  storing.meanwhile = () => {
    storing.meanwhile = () => {};
    hear('playback.completed');
  };
  await registry.order(room.state.roomId, play, context);
  await settle();
  hear('playback.started');
  await settle();
  expect(events).toEqual(['room.created', 'room.playback.ended']);
  expect(room.state.playback?.phase).toBe('playing');
});

test('A coach is heard by nobody once its member has left, whatever changes of the coach, and if the member is back.', async () => {
  const { registry } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await registry.create({ voice_activity_events: false }, context);
  const room = registry.find(isProblem(made) ? '' : String(made.body.room_id));
  if (room === undefined) throw new Error('no Room');
  const { roomId } = room.state;
  const joined = { roomId, room: 1, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
  const coach = { ...joined, coach: 'agent' };
  registry.onMembership('agent', undefined, joined);
  registry.onMembership('coach', undefined, coach);
  expect(room.coaches.of('agent')).toEqual(['coach']);
  registry.onMembership('agent', joined, undefined);
  registry.onMembership('coach', coach, { ...coach, talking: true });
  registry.onMembership('agent', undefined, joined);
  expect(room.coaches.of('agent')).toEqual([]);
  // Another mix of the Room seats the coach as it was.
  registry.onMembership('coach', coach, { ...coach, room: 2 });
  expect(room.coaches.of('agent')).toEqual(['coach']);
});

test('More than 50,000 Rooms are not listed: 413, without filters that could narrow them.', async () => {
  const { registry } = world(LIST_MATCHED_MAX_ITEMS + 1);
  await registry.recover(async () => 0);
  expect(registry.list('app_1')).toMatchObject({
    problem: 'result_set_too_large',
    status: 413,
    message: 'Too many results to return.',
  });
  expect(registry.list('app_2')).toEqual([]);
});

test('A bug in a Room ends that Room, and no other.', async () => {
  const { registry, events, bug } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await Promise.all([1, 2].map(() => registry.create({ voice_activity_events: false }, context)));
  const [first = '', second = ''] = made.map((each) => (isProblem(each) ? '' : String(each.body.room_id)));
  bug.next = true;
  expect(await registry.order(first, { type: 'volume', volume: 50 }, context)).toMatchObject({ status: 503 });
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect(events).toEqual(['room.created', 'room.created', 'room.deleted']);
  expect([registry.get('app_1', first), registry.get('app_1', second)?.room_id]).toEqual([undefined, second]);
});

/** A new Room, and what begins the recording `rec_1` of it. */
async function roomToRecord(registry: ReturnType<typeof world>['registry']) {
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await registry.create({ voice_activity_events: false }, context);
  const room = registry.find(isProblem(made) ? '' : String(made.body.room_id));
  const terms = { recordingUuid: 'rec_1', includeGaps: true, voiceActivity: undefined, livenessMs: 10_000 };
  return { room, record: () => room?.order({ type: 'record', terms }, context, { status: 202, body: {} }) };
}

test('A Room that is found to be at another node leaves the end of its recording to be told of without it.', async () => {
  const late = spyOn(noRecordings, 'late').mockImplementation(() => {});
  try {
    const { registry, taken } = world(0);
    const { room, record: begin } = await roomToRecord(registry);
    await begin();
    taken.now = true;
    const notice = { type: 'recording.ended', recordingUuid: 'rec_1', durationMs: 10, bytes: 20 } as const;
    room?.hear(notice);
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect([registry.size, late.mock.calls]).toEqual([0, [[notice]]]);
  } finally {
    late.mockRestore();
  }
});

test('A recording that a Room began while another node took it is told of as ended, and is not begun here.', async () => {
  const leftBehind = spyOn(noRecordings, 'leftBehind').mockImplementation(() => {});
  const record = spyOn(quietRoom, 'record');
  try {
    const { registry } = world(0);
    const { room, record: begin } = await roomToRecord(registry);
    const answer = begin();
    room?.abandon();
    expect(await answer).toMatchObject({ status: 202 });
    expect([record.mock.calls, leftBehind.mock.calls]).toMatchObject([[], [['app_1', [{ record: 'begun' }]]]]);
  } finally {
    leftBehind.mockRestore();
    record.mockRestore();
  }
});

test('A recording that was cut off ends with its Room here, when another node has the Room.', async () => {
  const abandoned = spyOn(noRecordings, 'abandoned');
  try {
    const { registry } = world(0);
    const { room, record: begin } = await roomToRecord(registry);
    await begin();
    room?.hear({ type: 'recording.failed', recordingUuid: 'rec_1', reason: 'cannot_write', durationMs: 5 });
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    room?.abandon();
    expect(abandoned.mock.calls).toMatchObject([[[{ recordingUuid: 'rec_1', cutOffMs: 5 }]]]);
  } finally {
    abandoned.mockRestore();
  }
});

test('The row of a Room that was being deleted says so still, whatever is stored of it before it is gone.', async () => {
  const { registry, stored } = world(1, true);
  await registry.recover(async () => {
    // A process that dies here leaves the Room to another, which has to go on deleting it.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect(stored.map(({ deleting, deletedAt }) => [deleting, deletedAt])).toEqual([[true, undefined]]);
    return 0;
  });
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect(stored.every(({ deleting }) => deleting)).toBe(true);
  expect(stored.at(-1)?.deletedAt).toBeNumber();
});

test('A Room that was being deleted when its process died is gone only when each of its members has left.', async () => {
  const { registry, events } = world(1, true);
  const joined = { room: 1, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
  let roomId = '';
  await registry.recover(async () => {
    const rooms = await registry.list('app_1');
    roomId = isProblem(rooms) ? '' : String(rooms[0]?.room_id);
    registry.find(roomId)?.take('s');
    return 1;
  });
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect(events).toEqual([]);
  registry.onMembership('s', { ...joined, roomId }, undefined);
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect(events).toEqual(['room.deleted']);
});

test('A Room that outlived its process plays its hold music to a member that is alone.', async () => {
  const { registry, opened } = world(1);
  await registry.recover(async () => 0);
  const rooms = await registry.list('app_1');
  const roomId = isProblem(rooms) ? '' : String(rooms[0]?.room_id);
  expect(registry.get('app_1', roomId)?.voice_activity_events).toBe(true);
  const joining = { roomId, room: 1, phase: 'joining', muted: false, voiceActivityEvents: false, talking: false } as const;
  registry.onMembership('s', undefined, joining);
  expect(opened).toEqual([]);
  registry.onMembership('s', joining, { ...joining, phase: 'joined' });
  expect(opened).toEqual(['https://music.example/a.mp3']);
});

test('An application has so many Rooms at most, also of those that are made at once; one that failed takes no place.', async () => {
  const { registry, limits, media } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const create = () => registry.create({ voice_activity_events: false }, context);
  limits.maxRooms = 1;
  media.isGone = true;
  expect(await create()).toMatchObject({ status: 503, retryAfterSec: 5 });
  media.isGone = false;
  const [made, refused] = await Promise.all([create(), create()]);
  expect([made, refused]).toMatchObject([{ status: 201 }, { status: 403 }]);
  expect(await registry.create({ voice_activity_events: false }, { ...context, appUuid: 'app_2' })).toMatchObject({
    status: 201,
  });
  await registry.order(isProblem(made) ? '' : String(made.body.room_id), { type: 'delete' }, context);
  await settle();
  expect(await create()).toMatchObject({ status: 201 });
});

test('A Session of another application joins no Room, and is not told from one that is not there.', async () => {
  const { registry, sessions, journal, clock, stored } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const made = await registry.create({ voice_activity_events: false }, context);
  const roomId = isProblem(made) ? '' : String(made.body.room_id);
  for (const appUuid of ['app_1', 'app_2']) {
    const about = { sessionUuid: appUuid, appUuid, callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
    const answered = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true } as const;
    sessions.set(appUuid, quietSession(answered, journal, clock, 'node'));
  }
  const join = (sessionUuid: string) => registry.join(roomId, { session_uuid: sessionUuid, muted: false }, context);
  expect(await join('app_2')).toEqual(await join('nobody'));
  expect(await join('app_2')).toMatchObject({ status: 404, message: 'Session not found' });
  expect(registry.find(roomId)?.places).toEqual([]);
  expect(await join('app_1')).toMatchObject({ status: 202 });
  expect(registry.find(roomId)?.places).toEqual(['app_1']);
  expect(stored.map((row) => row.appUuid)).toEqual(['app_1']);
});

test('A stop waits for recordings of Rooms, and not where there are none.', async () => {
  const { registry, clock } = world(0);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  await registry.create({ voice_activity_events: false }, context);
  const began = clock.now();
  let isOver = false;
  const stopped = registry.stopRecordings(10_000).then(() => {
    isOver = true;
  });
  await settle();
  await clock.advance(100);
  expect(isOver).toBe(true);
  await stopped;
  expect(clock.now() - began).toBe(100);
});
