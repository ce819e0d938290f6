/** What one statement of the journal writes, and what it leaves out together with the row that it depends on. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { type RoomRow, StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { CollectionRow } from '../../src/database/journal/payment-rows.ts';
import type { Store } from '../../src/database/store.ts';
import { newAppUuid, newUuid } from '../../src/id.ts';
import { eventOf } from '../webhook/emit.ts';
import { untilWaiting } from './locks.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, roomRow, sessionRow } from './rows.ts';

let first: TestStore;
/** A process that shares the database: it marks Idempotency-Keys in rows. */
let sharing: Store;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore();
  sharing = await openSecondStore(first, undefined, 'node-sharing');
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
});
afterAll(async () => {
  await sql.end();
  await sharing.close();
  await first.close();
});

const namesOf = async (appUuid: string) =>
  (await first.store.events.list({ appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 100 })).map(
    ({ name }) => name,
  );

/** Locks the row of a Session or a Room until `release` is called. */
async function locked(id: string, table = 'sessions', key = 'session_uuid') {
  const release = Promise.withResolvers<void>();
  const isLocked = Promise.withResolvers<void>();
  const over = sql.begin(async (tx) => {
    await tx`SELECT 1 FROM ${tx(table)} WHERE ${tx(key)} = ${id} FOR UPDATE`;
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  return async () => {
    release.resolve();
    await over;
  };
}

test('A Session and a Room are as their last change says, in all that may change', async () => {
  const { journal, sessions, rooms, nodes } = first.store;
  const session = sessionRow({ nodeId: nodes.nodeId });
  const room = roomRow({ nodeId: nodes.nodeId });
  await journal.commit({ session, events: [] });
  await journal.commit({ room, events: [] });
  const later = {
    state: 'answered',
    answered: true,
    roomId: room.roomId,
    running: '{"a":1}',
    trunk: 'east',
    answeredAt: 7,
  } as const;
  const changed = { ...session, ...later, summary: '{}' };
  const loud = { ...room, volume: 150, deleting: true, playback: '{"b":1}' };
  await Promise.all([journal.commit({ session: changed, events: [] }), journal.commit({ room: loud, events: [] })]);
  expect(await sessions.mine()).toContainEqual(changed);
  expect(await rooms.mine()).toContainEqual(loud);
  await journal.commit({ room: { ...loud, deletedAt: 9 }, events: [] });
  expect(await rooms.mine()).toEqual([]);
});

test('Nothing is stored of a change of a Room that is deleted, of another node, or of an earlier epoch', async () => {
  const { journal, rooms, nodes, idempotency } = first.store;
  const { nodeId } = nodes;
  const room = roomRow({ nodeId, epoch: 1 });
  const name = async (step: string, row = room) => {
    const keyed = { appUuid: room.appUuid, key: step, fingerprint: 'f' };
    await idempotency.begin(keyed);
    const events = [eventOf(room.appUuid, newUuid(), 1, step)];
    const isStored = await journal.commit({ room: row, events, answer: { ...keyed, status: 202, body: {} } });
    idempotency.stored(keyed);
    return [isStored, (await idempotency.begin(keyed)).state];
  };
  expect(await name('made')).toEqual([true, 'replay']);
  expect(await name('earlier', { ...room, epoch: 0, volume: 1 })).toEqual([false, 'fresh']);
  expect(await name('later', { ...room, epoch: 2, volume: 2 })).toEqual([false, 'fresh']);
  expect(await name('elsewhere', { ...room, nodeId: 'other', volume: 3 })).toEqual([false, 'fresh']);
  expect(await rooms.mine()).toEqual([room]);
  expect(await name('deleted', { ...room, deletedAt: 5 })).toEqual([true, 'replay']);
  expect(await name('after', { ...room, volume: 4 })).toEqual([false, 'fresh']);
  expect(await namesOf(room.appUuid)).toEqual(['made', 'deleted']);
  expect(await rooms.mine()).toEqual([]);
});

test('A Session enters a Room only at the epoch at which it was let in, however the takeover and the flush meet', async () => {
  const { journal, sessions, nodes } = first.store;
  const { nodeId } = nodes;
  const room = roomRow({ nodeId });
  const { roomId, appUuid } = room;
  await journal.commit({ room, events: [] });
  const member = sessionRow({ nodeId, appUuid });
  await journal.commit({ session: member, events: [] });
  const events = [eventOf(appUuid, member.sessionUuid, 1, 'room.member.joined')];
  const enter = (epoch: number) => journal.commit({ session: { ...member, roomId }, enters: { roomId, epoch }, events });
  const seize = (tx: postgres.Sql | postgres.TransactionSql) => tx`UPDATE rooms SET epoch = epoch + 1 WHERE room_id = ${roomId}`;
  const readRoom = async () => (await sessions.mine()).find(({ sessionUuid }) => sessionUuid === member.sessionUuid)?.roomId;
  // The takeover has begun: the flush waits for it, and finds its epoch.
  const over = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const taken = sql.begin(async (tx) => {
    await seize(tx);
    begun.resolve();
    await over.promise;
  });
  await begun.promise;
  const entering = enter(0);
  // The changes beside it in the flush are stored.
  const beside = journal.commit({ session: { ...member, sessionUuid: newUuid() }, events: [] });
  await untilWaiting(sql, 1);
  over.resolve();
  await taken;
  expect([await entering, await beside, await readRoom(), await namesOf(appUuid)]).toEqual(['room_moved', true, '', []]);
  expect([await enter(0), await enter(1)]).toEqual(['room_moved', true]);
  expect([await readRoom(), await namesOf(appUuid)]).toEqual([roomId, ['room.member.joined']]);
  await seize(sql);
  // It was stored, and its caller was not told.
  expect(await enter(1)).toBe(true);
  await sql`UPDATE rooms SET deleted_at = 1 WHERE room_id = ${roomId}`;
  const late = sessionRow({ nodeId, appUuid });
  expect(await journal.commit({ session: { ...late, roomId }, enters: { roomId, epoch: 2 }, events: [] })).toBe('room_moved');
});

test('Rooms of a dead node are taken over in the order in which flushes enter them, so that neither waits for the other', async () => {
  const { journal, rooms, nodes } = first.store;
  const dead = await openSecondStore(first, undefined, newUuid());
  const { nodeId } = dead.nodes;
  const [earlier, later] = [roomRow({ nodeId }), roomRow({ nodeId })].sort((a, b) => (a.roomId < b.roomId ? -1 : 1));
  if (earlier === undefined || later === undefined) throw new Error('two Rooms');
  for (const room of [later, earlier]) await dead.journal.commit({ room, events: [] });
  await dead.close();
  await nodes.bury(nodeId, undefined);
  const release = await locked(earlier.roomId, 'rooms', 'room_id');
  const taken = rooms.adopt();
  await untilWaiting(sql, 1);
  const free = await sql`SELECT 1 FROM rooms WHERE room_id = ${later.roomId} FOR UPDATE SKIP LOCKED`;
  const enter = ({ roomId }: RoomRow) =>
    journal.commit({ session: sessionRow({ nodeId: nodes.nodeId, roomId }), enters: { roomId, epoch: 0 }, events: [] });
  const entered = Promise.all([enter(earlier), enter(later)]);
  await untilWaiting(sql, 2);
  await release();
  const adopted = (await taken).map(({ roomId, epoch }) => [roomId, epoch]);
  expect(adopted).toContainEqual([earlier.roomId, 1]);
  expect(adopted).toContainEqual([later.roomId, 1]);
  expect(await entered).toEqual(['room_moved', 'room_moved']);
  expect(free).toHaveLength(1);
});

test('What another node took over while a takeover waited for it stays with that node', async () => {
  const { nodes, rooms, sessions } = first.store;
  const dead = await openSecondStore(first, undefined, newUuid());
  const { nodeId } = dead.nodes;
  const [room, taken] = [roomRow({ nodeId }), roomRow({ nodeId })];
  const [session, call] = [sessionRow({ nodeId }), sessionRow({ nodeId })];
  for (const change of [{ room }, { room: taken }, { session }, { session: call }])
    await dead.journal.commit({ ...change, events: [] });
  await dead.close();
  await nodes.bury(nodeId, undefined);
  const isLocked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const taking = sql.begin(async (tx) => {
    await tx`UPDATE rooms SET node_id = 'node-sharing', epoch = 1 WHERE room_id = ${taken.roomId}`;
    await tx`UPDATE sessions SET node_id = 'node-sharing', epoch = 1 WHERE session_uuid = ${call.sessionUuid}`;
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  const adopted = Promise.all([rooms.adopt(), sessions.adopt()]);
  await untilWaiting(sql, 2);
  release.resolve();
  await taking;
  const [adoptedRooms, adoptedSessions] = await adopted;
  expect(adoptedRooms.map(({ roomId }) => roomId)).toEqual([room.roomId]);
  expect(adoptedSessions.map(({ sessionUuid }) => sessionUuid)).toEqual([session.sessionUuid]);
});

test('A node that was declared dead makes no Room, and begins and ends nothing', async () => {
  const nodeId = newUuid();
  const dead = await openSecondStore(first, undefined, nodeId);
  const session = sessionRow({ nodeId });
  const recording = {
    ...{ recordingUuid: newUuid(), appUuid: session.appUuid, sessionUuid: session.sessionUuid, roomId: undefined },
    ...{
      volumeId: '',
      operationUuid: '',
      clientState: '',
      traceparent: '',
      createdAt: 1,
      endedAt: undefined,
      removedAt: undefined,
    },
  };
  const collection: CollectionRow = {
    ...{ operationUuid: newUuid(), sessionUuid: session.sessionUuid, appUuid: session.appUuid, kind: 'card', clientState: '' },
    ...{ traceparent: '', nodeId },
  };
  const owner = { appUuid: session.appUuid, sessionUuid: session.sessionUuid, reference: `card_${newUuid()}` };
  const staged = { ...owner, sealed: new Uint8Array(1), brand: '', last4: '', expiresAt: Date.now() + 60_000 };
  await dead.journal.commit({
    session,
    events: [],
    recordings: [{ begun: recording }],
    payments: [{ begun: collection }, { staged }],
  });
  expect(await first.store.nodes.bury(nodeId, undefined)).toBe(true);
  const row = roomRow({ nodeId });
  const other = newUuid();
  const late = [
    { room: row, events: [] },
    { events: [], recordings: [{ begun: { ...recording, recordingUuid: other } }] },
    { events: [], recordings: [{ ended: { recordingUuid: recording.recordingUuid, endedAt: 2, durationMs: 1 } }] },
    { events: [], payments: [{ begun: { ...collection, operationUuid: other, sessionUuid: other } }] },
    { events: [], payments: [{ ended: collection }] },
    { events: [], payments: [{ staged: { ...staged, reference: other } }] },
    { events: [], payments: [{ forgotten: session.sessionUuid }] },
  ];
  for (const change of late) await expect(dead.journal.commit(change)).rejects.toBeInstanceOf(StoreUnavailable);
  const counts = await sql`SELECT (SELECT count(*) FROM rooms WHERE room_id = ${row.roomId})::int AS rooms,
    (SELECT array_agg(ended_at IS NULL)::text FROM recordings WHERE app_uuid = ${session.appUuid}) AS run,
    (SELECT count(*) FROM payment_collections WHERE app_uuid = ${session.appUuid})::int AS collections,
    (SELECT count(*) FROM payment_references WHERE app_uuid = ${session.appUuid})::int AS references`;
  expect([...counts]).toEqual([{ rooms: 0, run: '{t}', collections: 1, references: 1 }]);
  await dead.close();
});

test('Nothing that a change begins or ends is stored where its Session or Room is of another node by now', async () => {
  const { journal, nodes } = first.store;
  const session = sessionRow({ nodeId: nodes.nodeId, epoch: 1 });
  const { appUuid, sessionUuid } = session;
  const room = roomRow({ appUuid, nodeId: nodes.nodeId, epoch: 1 });
  const recording = (recordingUuid: string) => ({
    ...{ recordingUuid, appUuid, sessionUuid, roomId: undefined, volumeId: '', operationUuid: '', clientState: '' },
    ...{ traceparent: '', createdAt: 1, endedAt: undefined, removedAt: undefined },
  });
  const collection = (operationUuid: string): CollectionRow => ({
    ...{ operationUuid, sessionUuid, appUuid, kind: 'card', clientState: '', traceparent: '', nodeId: nodes.nodeId },
  });
  const staged = (reference: string) => ({
    ...{ appUuid, sessionUuid, reference, sealed: new Uint8Array(1), brand: '', last4: '', expiresAt: Date.now() + 60_000 },
  });
  const known = {
    recordings: [{ begun: recording('known') }],
    payments: [{ begun: collection('known') }, { staged: staged('known') }],
  };
  expect(await journal.commit({ session, room, events: [], ...known })).toBe(true);
  const late = {
    recordings: [{ begun: recording('late') }, { ended: { recordingUuid: 'known', endedAt: 2, durationMs: 1 } }],
    payments: [
      ...[{ begun: collection('late') }, { ended: collection('known') }],
      ...[{ staged: staged('late') }, { forgotten: sessionUuid }],
    ],
  };
  expect(await journal.commit({ session: { ...session, epoch: 0 }, events: [], ...late })).toBe(false);
  expect(await journal.commit({ room: { ...room, epoch: 0 }, events: [], ...late })).toBe(false);
  const [left] = await sql`SELECT
    (SELECT array_agg(recording_uuid || ' ' || (ended_at IS NULL)) FROM recordings WHERE app_uuid = ${appUuid}) AS recordings,
    (SELECT array_agg(operation_uuid) FROM payment_collections WHERE app_uuid = ${appUuid}) AS collections,
    (SELECT array_agg(reference) FROM payment_references WHERE app_uuid = ${appUuid}) AS references`;
  expect(left).toEqual({ recordings: ['known true'], collections: ['known'], references: ['known'] });
});

test('A collection ends, and references are destroyed, of their own Session alone; what is written again changes nothing', async () => {
  const { journal } = first.store;
  const appUuid = newUuid();
  const [own, other] = [sessionRow({ appUuid }), sessionRow({ appUuid })].map(({ sessionUuid }) => {
    const begun = {
      operationUuid: newUuid(),
      sessionUuid,
      appUuid,
      kind: 'card',
      clientState: '',
      traceparent: '',
      nodeId: '',
    } as const;
    const staged = {
      appUuid,
      sessionUuid,
      reference: newUuid(),
      sealed: new Uint8Array([7]),
      brand: 'visa',
      last4: '',
      expiresAt: 9,
    };
    return { begun, staged };
  });
  if (own === undefined || other === undefined) throw new Error('no Sessions');
  const payments = [own, other].flatMap(({ begun, staged }) => [{ begun }, { staged }]);
  for (let time = 0; time < 2; time++) expect(await journal.commit({ events: [], payments })).toBe(true);
  const left = async () => [
    (await sql`SELECT session_uuid FROM payment_collections WHERE app_uuid = ${appUuid}`).map((row) => row.session_uuid),
    (await sql`SELECT session_uuid FROM payment_references WHERE app_uuid = ${appUuid}`).map((row) => row.session_uuid),
  ];
  const both = [own, other].map(({ begun }) => begun.sessionUuid).sort();
  expect((await left()).map((each) => each.sort())).toEqual([both, both]);
  // An operation of that Session that is over already ends no other one.
  const earlier = { sessionUuid: own.begun.sessionUuid, operationUuid: newUuid() };
  await journal.commit({ events: [], payments: [{ ended: earlier }] });
  expect((await left())[0]).toHaveLength(2);
  await journal.commit({ events: [], payments: [{ ended: own.begun }] });
  await journal.commit({ events: [], payments: [{ forgotten: own.begun.sessionUuid }] });
  expect(await left()).toEqual([[other.begun.sessionUuid], [other.begun.sessionUuid]]);
});

test('Whoever declares a node dead waits for its flush, and finds all that it wrote', async () => {
  const nodeId = newUuid();
  const slow = await openSecondStore(first, undefined, nodeId);
  const [known, made] = [sessionRow({ nodeId }), sessionRow({ nodeId })];
  await slow.journal.commit({ session: known, events: [] });
  const release = await locked(known.sessionUuid);
  const flushed = Promise.all([known, made].map((session) => slow.journal.commit({ session, events: [] })));
  await untilWaiting(sql, 1);
  const buried = first.store.nodes.bury(nodeId, undefined).then(() => first.store.sessions.adopt());
  // The burial, or what comes after it, waits as well.
  await untilWaiting(sql, 2);
  await release();
  expect(await flushed).toEqual([true, true]);
  const found = (await buried).map(({ sessionUuid }) => sessionUuid);
  expect(found).toContain(known.sessionUuid);
  expect(found).toContain(made.sessionUuid);
  await slow.close();
});

test('An event that stands by itself is stored once, however often its commit is tried', async () => {
  const { journal } = first.store;
  const session = sessionRow();
  const change = { events: [eventOf(session.appUuid, session.sessionUuid, 1, 'message.status_changed')] };
  expect([await journal.commit(change), await journal.commit(change)]).toEqual([true, true]);
  expect(await namesOf(session.appUuid)).toEqual(['message.status_changed']);
  const [waiting] = await sql`SELECT count(*)::int AS rows FROM outbox WHERE app_uuid = ${session.appUuid}`;
  expect(waiting?.rows).toBe(1);
});

test('The end of a recording is told once, whoever ends it first', async () => {
  const { journal } = first.store;
  const session = sessionRow();
  const begun = {
    ...{ recordingUuid: newUuid(), appUuid: session.appUuid, sessionUuid: session.sessionUuid, roomId: undefined, volumeId: '' },
    ...{ operationUuid: '', clientState: '', traceparent: '', createdAt: 1, endedAt: undefined, removedAt: undefined },
  };
  for (let time = 0; time < 2; time++) expect(await journal.commit({ session, events: [], recordings: [{ begun }] })).toBe(true);
  const { recordingUuid } = begun;
  const end = (durationMs: number, name: string) =>
    journal.commit({
      events: [eventOf(session.appUuid, session.sessionUuid, 1, name)],
      recordings: [{ ended: { recordingUuid, endedAt: 2, durationMs } }],
      onlyIfEnded: recordingUuid,
    });
  // Changes that come in one turn go into one flush. A Session that another node has by its row ends nothing.
  const ofAnother = {
    session: { ...session, epoch: 1 },
    events: [],
    recordings: [{ ended: { recordingUuid, endedAt: 2, durationMs: 5 } }],
  };
  const ends = [journal.commit(ofAnother), end(10, 'first'), end(20, 'second')];
  expect(await Promise.all(ends)).toEqual([false, true, true]);
  await end(30, 'third');
  expect(await namesOf(session.appUuid)).toEqual(['first']);
  const [row] = await sql`SELECT duration_ms::int AS ms FROM recordings WHERE recording_uuid = ${recordingUuid}`;
  expect(row?.ms).toBe(10);
});

test('A process that shares its database keeps an answer with its effect, and not without', async () => {
  const { journal, idempotency } = sharing;
  const row = sessionRow({ nodeId: 'node-sharing' });
  const [kept, late, other] = ['kept', 'late', 'other'].map((key) => ({ appUuid: row.appUuid, key, fingerprint: 'f' }));
  if (kept === undefined || late === undefined || other === undefined) throw new Error('no keys');
  for (const keyed of [kept, late, other]) expect((await idempotency.begin(keyed)).state).toBe('fresh');
  const answer = (key: string) => ({ appUuid: row.appUuid, key, status: 202, body: { key } });
  expect(await journal.commit({ session: row, events: [], answer: answer('kept') })).toBe(true);
  expect(await journal.commit({ session: ended(row), events: [] })).toBe(true);
  expect(await journal.commit({ session: { ...row, state: 'answered' }, events: [], answer: answer('late') })).toBe(false);
  expect(await idempotency.begin(kept)).toEqual({ state: 'replay', status: 202, body: '{"key":"kept"}' });
  for (const keyed of [late, other]) expect((await idempotency.begin(keyed)).state).toBe('in_flight');
});

test('An answer is kept with its effect although the mark of its key is given back meanwhile, as that of a dead node', async () => {
  const { journal, idempotency } = sharing;
  const row = sessionRow({ nodeId: 'node-sharing' });
  const { appUuid } = row;
  const keyed = { appUuid, key: 'passed on', fingerprint: 'f' };
  await idempotency.begin(keyed);
  const [isGiven, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const over = sql.begin(async (tx) => {
    await tx`UPDATE idempotency SET lease_until = lease_until - 1, node_id = '' WHERE app_uuid = ${appUuid}`;
    isGiven.resolve();
    await release.promise;
  });
  await isGiven.promise;
  const stored = journal.commit({ session: row, events: [], answer: { appUuid, key: keyed.key, status: 202, body: {} } });
  await untilWaiting(sql, 1);
  release.resolve();
  await over;
  expect(await stored).toBe(true);
  expect(await idempotency.begin(keyed)).toEqual({ state: 'replay', status: 202, body: '{}' });
});

test('An answer is kept neither over one that came meanwhile, nor under the key of another request that it has become', async () => {
  const { journal, idempotency } = sharing;
  for (const change of [{ status: 200, body: '"first"' }, { fingerprint: 'of another' }]) {
    const row = sessionRow({ nodeId: 'node-sharing' });
    const { appUuid } = row;
    const keyed = { appUuid, key: 'meanwhile', fingerprint: 'f' };
    await idempotency.begin(keyed);
    const [isChanged, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const over = sql.begin(async (tx) => {
      await tx`UPDATE idempotency SET ${tx(change)} WHERE app_uuid = ${appUuid}`;
      isChanged.resolve();
      await release.promise;
    });
    await isChanged.promise;
    const stored = journal.commit({ session: row, events: [], answer: { appUuid, key: keyed.key, status: 202, body: {} } });
    await untilWaiting(sql, 1);
    release.resolve();
    await Promise.all([over, stored]);
    const [kept] = await sql`SELECT status, body FROM idempotency WHERE app_uuid = ${appUuid}`;
    expect(kept).toMatchObject({ status: change.status ?? null, body: change.body ?? null });
  }
});

test('Answers of two applications under the same key are both kept where one flush has them', async () => {
  const rows = [sessionRow({ nodeId: 'node-sharing' }), sessionRow({ nodeId: 'node-sharing' })];
  const keyed = rows.map(({ appUuid }) => ({ appUuid, key: 'same', fingerprint: 'f' }));
  for (const each of keyed) await sharing.idempotency.begin(each);
  const answerOf = ({ appUuid }: { readonly appUuid: string }) => ({ appUuid, key: 'same', status: 202, body: { appUuid } });
  await Promise.all(rows.map((session) => sharing.journal.commit({ session, events: [], answer: answerOf(session) })));
  for (const each of keyed) {
    const body = JSON.stringify({ appUuid: each.appUuid });
    expect(await sharing.idempotency.begin(each)).toEqual({ state: 'replay', status: 202, body });
  }
});

test('Rows are locked in one order, so that two flushes never wait for each other', async () => {
  const { journal, nodes } = first.store;
  const [low = '', high = ''] = [newUuid(), newUuid()].sort();
  const ids = [high, low];
  const guest = (roomId: string) => sessionRow({ sessionUuid: roomId, nodeId: nodes.nodeId, roomId });
  for (const [table, key, changes] of [
    ['sessions', 'session_uuid', ids.map((sessionUuid) => ({ session: sessionRow({ sessionUuid, nodeId: nodes.nodeId }) }))],
    ['rooms', 'room_id', ids.map((roomId) => ({ room: roomRow({ roomId, nodeId: nodes.nodeId }) }))],
    ['rooms', 'room_id', ids.map((roomId) => ({ session: guest(roomId), enters: { roomId, epoch: 0 } }))],
  ] as const) {
    const written = () => Promise.all(changes.map((change) => journal.commit({ ...change, events: [] })));
    await written();
    const release = await locked(low, table, key);
    const again = written();
    await untilWaiting(sql, 1);
    const free = await sql`SELECT FROM ${sql(table)} WHERE ${sql(key)} = ${high} FOR UPDATE SKIP LOCKED`;
    await release();
    expect([table, free.length, await again]).toEqual([table, 1, [true, true]]);
  }
});

test('Answers are kept in the order in which keys are marked, so that a flush and those who ask again never wait for each other', async () => {
  const { journal, idempotency } = sharing;
  const other = await openSecondStore(first, undefined, 'node-asked-again');
  const appUuid = newAppUuid();
  const keys = ['high', 'low'].map((key) => ({ appUuid, key, fingerprint: 'f' }));
  for (const keyed of keys) await idempotency.begin(keyed);
  const [one = ''] = keys.map(({ key }) => key);
  const release = await locked(one, 'idempotency', 'key');
  const again = Promise.all(keys.map((keyed) => other.idempotency.begin(keyed)));
  await untilWaiting(sql, 1);
  const stored = keys.toReversed().map(({ key }) => {
    const session = sessionRow({ appUuid, nodeId: 'node-sharing' });
    return journal.commit({ session, events: [], answer: { appUuid, key, status: 202, body: {} } });
  });
  await untilWaiting(sql, 2);
  await release();
  expect(await Promise.all(stored)).toEqual([true, true]);
  expect((await again).map(({ state }) => state)).toEqual(['in_flight', 'in_flight']);
  await other.close();
});

test('The sizes of recordings are noted without waiting for a flush that ends some of them', async () => {
  const { journal, recordings } = sharing;
  const row = sessionRow({ nodeId: 'node-sharing' });
  await journal.commit({ session: row, events: [] });
  const ids = [newUuid(), newUuid()];
  const about = { appUuid: row.appUuid, sessionUuid: row.sessionUuid, roomId: undefined, volumeId: '', operationUuid: '' };
  const times = { createdAt: 1, endedAt: undefined, removedAt: undefined };
  for (const recordingUuid of ids) {
    const begun = { recordingUuid, ...about, clientState: '', traceparent: '', ...times };
    await journal.commit({ events: [], recordings: [{ begun }] });
  }
  // Each flush ends both, the one of them first or the other.
  for (const [one = '', other = ''] of [ids, ids.toReversed()]) {
    const noted = Promise.withResolvers<void>();
    const flush = sql.begin(async (tx) => {
      await tx`UPDATE recordings SET ended_at = 2 WHERE recording_uuid = ${one}`;
      noted.resolve(recordings.sized(new Map(ids.map((id) => [id, 7]))));
      await Promise.race([noted.promise, untilWaiting(sql, 1)]);
      await tx`UPDATE recordings SET ended_at = 2 WHERE recording_uuid = ${other}`;
    });
    await Promise.all([flush, noted.promise]);
  }
  const sizes = await sql`SELECT bytes::int FROM recordings WHERE recording_uuid IN ${sql(ids)}`;
  expect(sizes.map(({ bytes }) => bytes)).toEqual([7, 7]);
});

test('Keys that are given back and keys that are asked for again at another node never wait for each other', async () => {
  const before = await openSecondStore(first, undefined, 'node-before');
  const appUuid = newAppUuid();
  const keys = ['key a', 'key b'].map((key) => ({ appUuid, key, fingerprint: 'f' }));
  // The last by name is the oldest.
  for (const keyed of keys.toReversed()) await before.idempotency.begin(keyed);
  const release = await locked('key b', 'idempotency', 'key');
  const givenBack = sharing.idempotency.releaseLeft('node-before');
  await untilWaiting(sql, 1);
  const again = Promise.all(keys.map((keyed) => sharing.idempotency.begin(keyed)));
  await untilWaiting(sql, 2);
  await release();
  expect(await givenBack).toBe(2);
  expect((await again).map(({ state }) => state)).toEqual(['in_flight', 'in_flight']);
  await before.close();
});
