/** What the database is asked about a change whose commit got no answer. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import type { Change } from '../../src/database/journal/journal.ts';
import type { CollectionRow } from '../../src/database/journal/payment-rows.ts';
import type { RecordingRow } from '../../src/database/journal/recording-rows.ts';
import { newUuid } from '../../src/id.ts';
import { eventOf } from '../webhook/emit.ts';
import { untilWaiting } from './locks.ts';
import { openTestStore, type TestStore } from './open.ts';
import { roomRow, sessionRow } from './rows.ts';

let first: TestStore;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore();
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
});
afterAll(async () => {
  await sql.end();
  await first.close();
});

const session = sessionRow();
const room = roomRow({ appUuid: session.appUuid });
const owner = { appUuid: session.appUuid, sessionUuid: session.sessionUuid };
const recording = (): RecordingRow => ({
  ...{ recordingUuid: newUuid(), ...owner, roomId: undefined, volumeId: '', operationUuid: '', clientState: '' },
  ...{ traceparent: '', createdAt: 1, endedAt: undefined, removedAt: undefined },
});
const collection = (): CollectionRow => ({
  ...{ ...owner, operationUuid: newUuid(), kind: 'card', clientState: '', traceparent: '', nodeId: '' },
});
const keyed = { appUuid: session.appUuid, key: 'key', fingerprint: 'f' };
const answer = { ...keyed, status: 202, body: { a: 1 } };

test('A change is stored where its rows are as it wrote them, and what it began, told or answered is there', async () => {
  const { journal, idempotency } = first.store;
  await idempotency.begin(keyed);
  const [event, begun, running] = [eventOf(owner.appUuid, owner.sessionUuid, 1), recording(), collection()];
  const changes: readonly Change[] = [
    { session, events: [] },
    { room, events: [] },
    { session, events: [event] },
    { session, events: [], recordings: [{ begun }] },
    { session, events: [], payments: [{ begun: running }] },
    { session, events: [], answer },
  ];
  for (const change of changes) expect(await journal.commit(change)).toBe(true);
  for (const change of changes) expect(await journal.wasStored(change)).toBe(true);
  const others: readonly Change[] = [
    ...(['ringing', 'answered'] as const).map((state) => ({ session: { ...session, state }, events: [] })),
    { session: { ...session, answered: true }, events: [] },
    { session: { ...session, roomId: room.roomId }, events: [] },
    { session: { ...session, running: '{}' }, events: [] },
    { session: { ...session, trunk: 'east' }, events: [] },
    { session: { ...session, endedAt: 1 }, events: [] },
    { session: { ...session, sessionUuid: newUuid() }, events: [] },
    { room: { ...room, volume: 7 }, events: [] },
    { room: { ...room, deleting: true }, events: [] },
    { room: { ...room, playback: '{}' }, events: [] },
    { room: { ...room, deletedAt: 1 }, events: [] },
    { room: { ...room, epoch: 1 }, events: [] },
    { room: { ...room, nodeId: 'other' }, events: [] },
    { room: { ...room, roomId: newUuid() }, events: [] },
    { session, events: [eventOf(owner.appUuid, owner.sessionUuid, 1)] },
    { session, events: [], recordings: [{ begun: recording() }] },
    { session, events: [], payments: [{ begun: collection() }] },
    { session, events: [], payments: [{ begun: { ...running, sessionUuid: newUuid() } }] },
    { session, events: [], answer: { ...answer, appUuid: 'other' } },
    { session, events: [], answer: { ...answer, key: 'other' } },
    { session, events: [], answer: { ...answer, status: 200 } },
    { session, events: [], answer: { ...answer, body: { a: 2 } } },
    { events: [] },
  ];
  for (const change of others) expect([change, await journal.wasStored(change)]).toEqual([change, false]);
});

test('A change of a Session or Room that another node has taken since is stored all the same, and comes to no second one', async () => {
  const { journal, idempotency } = first.store;
  const [row, home, later] = [sessionRow(), roomRow(), { ...keyed, key: 'later' }];
  await idempotency.begin(later);
  const changes: readonly Change[] = [
    { session: row, events: [eventOf(row.appUuid, row.sessionUuid, 1)] },
    { session: row, events: [], recordings: [{ begun: recording() }] },
    { session: row, events: [], payments: [{ begun: collection() }] },
    { session: row, events: [], answer: { ...later, status: 202, body: {} } },
    { room: home, events: [], recordings: [{ begun: { ...recording(), sessionUuid: undefined, roomId: home.roomId } }] },
  ];
  for (const change of changes) await journal.commit(change);
  await sql`UPDATE sessions SET node_id = 'node-b', epoch = 1 WHERE session_uuid = ${row.sessionUuid}`;
  await sql`UPDATE rooms SET node_id = 'node-b', epoch = 1 WHERE room_id = ${home.roomId}`;
  for (const change of changes) expect([change, await journal.wasStored(change)]).toEqual([change, true]);
  for (const change of changes) expect([change, await journal.commit(change)]).toEqual([change, true]);
  for (const change of [
    { session: row, events: [] },
    { room: home, events: [] },
    { room: home, events: [], recordings: [{ begun: recording() }] },
  ])
    expect([await journal.wasStored(change), await journal.commit(change)]).toEqual([false, false]);
});

test('A change whose statement is still under way is looked for when that is over', async () => {
  const { journal } = first.store;
  const [row, home] = [sessionRow(), roomRow()];
  await Promise.all([journal.commit({ session: row, events: [] }), journal.commit({ room: home, events: [] })]);
  const isWritten = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const statement = sql.begin(async (tx) => {
    await tx`UPDATE sessions SET state = 'answered' WHERE session_uuid = ${row.sessionUuid}`;
    await tx`UPDATE rooms SET volume = 50 WHERE room_id = ${home.roomId}`;
    isWritten.resolve();
    await release.promise;
  });
  await isWritten.promise;
  const looks = Promise.all([
    journal.wasStored({ session: { ...row, state: 'answered' }, events: [] }),
    journal.wasStored({ room: { ...home, volume: 50 }, events: [] }),
  ]);
  await Promise.race([looks, untilWaiting(sql, 2)]);
  release.resolve();
  await statement;
  expect(await looks).toEqual([true, true]);
});
