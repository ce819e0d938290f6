/** What a node takes over from another one, by its rows, and what it does not. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import type { RecordingRow } from '../../src/database/journal/recording-rows.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { masterKey, openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, roomRow, sessionRow } from './rows.ts';

let first: TestStore;
/** Another node on the same database. */
let second: Store;
beforeAll(async () => {
  first = await openTestStore();
  second = await openSecondStore(first);
});
afterAll(async () => {
  await second?.close();
  await first?.close();
});

const idsOf = (rows: readonly { readonly sessionUuid: string }[]) => rows.map(({ sessionUuid }) => sessionUuid).sort();

test('A node that was declared dead takes over nothing, marks no key, and makes no Room', async () => {
  const [nodeId, lost] = [newUuid(), newUuid()];
  const dead = await openSecondStore(first, undefined, nodeId);
  const gone = await openSecondStore(first, undefined, lost);
  const call = sessionRow({ nodeId: lost, trunk: 'east', state: 'answered', running: JSON.stringify({ call: '{}' }) });
  const [room, homeless] = [roomRow({ nodeId: lost }), roomRow({ nodeId: lost })];
  await gone.journal.commit({ session: call, events: [] });
  for (const each of [room, homeless]) await gone.journal.commit({ room: each, events: [] });
  expect(await gone.rooms.release(homeless.roomId, 0)).toBe(true);
  for (const each of [lost, nodeId]) expect(await second.nodes.bury(each, undefined)).toBe(true);

  expect(await dead.sessions.adopt()).toEqual([]);
  expect(await dead.sessions.take(call.sessionUuid, lost, 0)).toBe(false);
  expect(await dead.sessions.takeCalls(lost, 10, ['east'])).toEqual([]);
  expect(await dead.rooms.adopt()).toEqual([]);
  expect(await dead.rooms.seize(room.roomId, lost, 0)).toBeUndefined();
  expect(await dead.rooms.settle(homeless.roomId)).toBeUndefined();
  expect(await dead.rooms.make(roomRow(), 10)).toBe(false);
  expect(await dead.leases.take('of the dead', 60_000)).toBeUndefined();
  const key = { appUuid: call.appUuid, key: 'of the dead', fingerprint: 'f' };
  await expect(dead.idempotency.begin(key)).rejects.toThrow('declared dead');

  expect(await second.idempotency.begin(key)).toEqual({ state: 'fresh' });
  expect(await second.rooms.settle(homeless.roomId)).toMatchObject({ nodeId: second.nodes.nodeId, epoch: 2 });
  expect((await second.rooms.adopt()).map(({ roomId, epoch }) => [roomId, epoch])).toEqual([[room.roomId, 1]]);
  expect(idsOf(await second.sessions.adopt())).toEqual([call.sessionUuid]);
  for (const each of [dead, gone]) await each.close();
});

test('Of the calls of a lost node those are taken that are answered, stored to go on, and hear no card', async () => {
  const nodeId = newUuid();
  const lost = await openSecondStore(first, undefined, nodeId);
  const call = (running: object, more: object = {}) =>
    sessionRow({ nodeId, trunk: 'east', state: 'answered', answered: true, running: JSON.stringify(running), ...more });
  const taken = [call({ call: '{}' }, { createdAt: 3 }), call({ call: '{}' }, { createdAt: 2 })];
  const others = [
    call({ call: '{}' }, { state: 'ringing', answered: false }),
    call({ playback: '{}' }),
    call({ call: '{}', secure: '{}' }),
  ];
  for (const session of [...taken, ...others]) await lost.journal.commit({ session, events: [] });
  const over = call({ call: '{}' });
  await lost.journal.commit({ session: ended(over), events: [] });

  const [oldest] = await second.sessions.takeCalls(nodeId, 1, ['east']);
  expect(oldest).toMatchObject({ sessionUuid: taken[1]?.sessionUuid, nodeId: second.nodes.nodeId, epoch: 1 });
  expect(idsOf(await second.sessions.takeCalls(nodeId, 50, ['east']))).toEqual(idsOf(taken.slice(0, 1)));
  // One of them is asked for again where the answer was lost, and at no other epoch.
  const again = oldest?.sessionUuid ?? '';
  expect(await second.sessions.take(again, nodeId, 0)).toBe(true);
  expect(await second.sessions.take(again, nodeId, 1)).toBe(false);
  expect(await second.sessions.take(over.sessionUuid, nodeId, 0)).toBe(false);
  await lost.close();
});

test('A Room is seized at the epoch at which it was seen, also again where the answer was lost', async () => {
  const nodeId = newUuid();
  const lost = await openSecondStore(first, undefined, nodeId);
  const [room, deleted] = [roomRow({ nodeId }), roomRow({ nodeId, deletedAt: 1 })];
  for (const each of [room, deleted]) await lost.journal.commit({ room: each, events: [] });
  const { appUuid, roomId } = room;
  const members = [sessionRow({ nodeId, appUuid, roomId }), ended(sessionRow({ nodeId, appUuid, roomId }))];
  for (const session of members) await lost.journal.commit({ session, events: [] });

  expect(await second.rooms.seize(roomId, nodeId, 1)).toBeUndefined();
  expect(await second.rooms.seize(deleted.roomId, nodeId, 0)).toBeUndefined();
  for (const _ of ['asked', 'asked again']) expect((await second.rooms.seize(roomId, nodeId, 0))?.epoch).toBe(1);
  expect(await lost.rooms.seize(roomId, nodeId, 0)).toBeUndefined();
  expect(await second.rooms.members(roomId)).toEqual([{ sessionUuid: members[0]?.sessionUuid ?? '', nodeId }]);
  // It is given up at its own epoch alone, and only by its home.
  expect(await second.rooms.release(roomId, 0)).toBe(false);
  expect(await lost.rooms.release(roomId, 1)).toBe(false);
  expect(await second.rooms.release(roomId, 1)).toBe(true);
  expect(await lost.rooms.where(roomId)).toEqual({ nodeId: null, epoch: 2 });
  await lost.close();
});

test('A lease that has run out is free for any node, with a fence of its own; one that lasts for its holder alone', async () => {
  const name = newUuid();
  expect(await second.leases.take(name, 60_000)).toBe(1);
  expect(await first.store.leases.take(name, 60_000)).toBeUndefined();
  expect(await second.leases.take(name, -1_000)).toBe(1);
  expect(await first.store.leases.take(name, 60_000)).toBe(2);
  expect(await second.leases.takeAll([name, `${name} other`], 60_000)).toEqual([`${name} other`]);
  await second.leases.give(name);
  expect(await second.leases.take(name, 60_000)).toBeUndefined();
});

test('Recordings without an end are left where no live node has their disk, and those of the own one at a start alone', async () => {
  const [nodeId, volumeId, gone] = [newUuid(), newUuid(), newUuid()];
  const settings = { dataDir: first.dataDir, databaseUrl: first.url, databaseDriver: 'postgres', masterKey } as const;
  const node = await openStore(settings, silentLog, systemClock(), nodeId, 'node');
  const about = { host: '', httpPort: 1, rtpHost: '', sipContact: '', labels: [], version: '', protocol: 1 };
  await node.nodes.join({ ...about, volumeId });
  const session = sessionRow({ nodeId });
  const row = (name: string, of: string): RecordingRow => ({
    ...{ recordingUuid: name, volumeId: of, appUuid: session.appUuid, sessionUuid: session.sessionUuid, roomId: undefined },
    ...{ operationUuid: '', clientState: '', traceparent: '', createdAt: 1, endedAt: undefined, removedAt: undefined },
  });
  const [left, own, ending] = [row('rec_left', gone), row('rec_own', volumeId), row('rec_over', gone)];
  await node.journal.commit({ session, events: [], recordings: [left, own, ending].map((begun) => ({ begun })) });
  const over = { recordingUuid: ending.recordingUuid, endedAt: 2, durationMs: undefined };
  await node.journal.commit({ events: [], recordings: [{ ended: over }] });
  const namesOf = async (rows: Promise<readonly RecordingRow[]>) => (await rows).map(({ recordingUuid }) => recordingUuid).sort();

  expect(await namesOf(node.recordings.unfinished(true))).toEqual(['rec_left', 'rec_own']);
  expect(await namesOf(node.recordings.unfinished(false))).toEqual(['rec_left']);
  expect(await namesOf(second.recordings.unfinished(true))).toEqual(['rec_left']);
  // What others have ended has a file that nobody has mended; what was removed has none.
  expect(await namesOf(node.recordings.unmended(gone))).toEqual(['rec_over']);
  await node.recordings.removed(['rec_over'], 3);
  expect(await namesOf(node.recordings.unmended(gone))).toEqual([]);
  await second.nodes.bury(nodeId, undefined);
  expect(await namesOf(second.recordings.unfinished(false))).toEqual(['rec_left', 'rec_own']);
  await node.close();
});
