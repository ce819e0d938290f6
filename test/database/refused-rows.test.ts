/** Rows that a process left, of which the database refuses one: the others are taken up all the same. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { ChargeDispatcher } from '../../src/call/charge/charge-dispatcher.ts';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { RecordingRegistry } from '../../src/call/recording/recording-registry.ts';
import { groupCommit } from '../../src/database/journal/group-commit.ts';
import { ChangeRefused } from '../../src/database/journal/journal.ts';
import { keptAnswers } from '../../src/database/journal/kept-answers.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { claim } from '../../src/machine/message/message.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openTestStore, type TestStore } from './open.ts';
import { sessionRow } from './rows.ts';

const REFUSED = 'is refused';
let first: TestStore;
const said: string[] = [];
const log = { ...silentLog, error: (_: object, message: string) => void said.push(message) };
beforeAll(async () => {
  first = await openTestStore();
  const sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres' });
  await sql.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'not this one' USING ERRCODE = 'check_violation'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.body LIKE '%${REFUSED}%') EXECUTE FUNCTION refuse()`);
  await sql.end();
});
afterAll(() => first.close());

/** What is told of two left rows, of which the first is refused. */
const eventsOf = async (sessionUuid: string) =>
  (await first.store.events.list({ appUuid: undefined, sessionUuid, status: undefined, after: 0, limit: 10 })).map(
    ({ name }) => name,
  );

test('Of two secure collections that a process left the one is told as failed whose event the database takes', async () => {
  const { payments, journal } = first.store;
  const [bad, good] = [newUuid(), newUuid()];
  const left = { appUuid: 'app', kind: 'card', traceparent: '', nodeId: 'gone', operationUuid: 'op' } as const;
  for (const [sessionUuid, clientState] of [
    [bad, REFUSED],
    [good, ''],
  ] as const)
    await journal.commit({ events: [], payments: [{ begun: { ...left, sessionUuid, clientState } }] });
  const charges = new ChargeDispatcher({
    store: payments,
    gateway: undefined,
    clock: new VirtualClock(),
    log,
    connected: () => undefined,
    isHere: () => false,
    isLive: async () => false,
    mayUseTerminal: async () => false,
  });
  await charges.start();
  expect(await eventsOf(good)).toEqual(['payment.card.collected']);
  expect((await payments.unfinished()).map(({ sessionUuid }) => sessionUuid)).toEqual([bad]);
  expect(said.splice(0)).toEqual(['the end of a collection is refused by the database: it is told later']);
  await charges.close();
});

test('Of two recordings that a process left growing the one is told as ended whose event the database takes', async () => {
  const { recordings, journal } = first.store;
  const [bad, good] = [newUuid(), newUuid()];
  const left = { appUuid: 'app', roomId: undefined, volumeId: 'volume', operationUuid: 'op', traceparent: '', createdAt: 1 };
  const growing = { endedAt: undefined, removedAt: undefined };
  for (const [sessionUuid, clientState] of [
    [bad, REFUSED],
    [good, ''],
  ] as const) {
    const begun = { ...left, ...growing, recordingUuid: `rec_${sessionUuid}`, sessionUuid, clientState };
    await journal.commit({ events: [], recordings: [{ begun }] });
  }
  const desk = new RecordingRegistry({
    storage: undefined,
    rows: recordings,
    sign: () => ({ mediaUrl: '', liveUrl: '', expiresAt: 0 }),
    journal,
    volumeId: 'volume',
    clock: new VirtualClock(),
    log,
    livenessMs: 1,
    retentionMs: 1,
    session: () => undefined,
  });
  await desk.recover();
  expect(await eventsOf(good)).toEqual(['recording.ended']);
  expect((await recordings.unfinished(true)).map(({ sessionUuid }) => sessionUuid)).toEqual([bad]);
  expect(said.splice(0)).toEqual(['the end of a recording is refused by the database: it is told later']);
  desk.close();
});

test('Of two messages that a process left at the carrier the one is told as failed whose event the database takes', async () => {
  const { messages } = first.store;
  const about = { operationUuid: 'op', from: '+15550001', to: '+15550002', text: 'x', traceparent: '' };
  const fresh = { status: 'queued', stage: 'waiting', errorCode: '', errorMessage: '', sentAt: undefined } as const;
  const [bad, good] = [newUuid(), newUuid()];
  for (const [at, messageUuid, appUuid] of [
    [1, bad, REFUSED],
    [2, good, 'app'],
  ] as const) {
    const times = { createdAt: at, updatedAt: at, dueAt: at, deliveredAt: undefined, attempts: 0 };
    const parts = [{ smscId: '', delivered: false }];
    await messages.insert(
      { ...about, ...fresh, ...times, messageUuid, appUuid, encoding: 'gsm7', segments: 1, parts },
      undefined,
    );
  }
  const claimed = await messages.claim(3, 2, '', (state) => ({ ...claim(state, 3), events: [] }));
  expect(claimed.map(({ stage }) => stage)).toEqual(['submitting', 'submitting']);
  const dispatcher = new MessageDispatcher({
    store: messages,
    gateway: undefined,
    clock: new VirtualClock(),
    log,
    incoming: { take: async () => true, giveUp: async () => {} },
    mayCallFrom: async () => true,
    reachOf: async () => () => true,
  });
  await dispatcher.start();
  expect(await messages.held(Number.MAX_SAFE_INTEGER)).toEqual([bad]);
  expect((await messages.get('app', good))?.status).toBe('failed');
  expect(said).toContain('the end of a message is refused by the database: it is told later');
  await dispatcher.close();
});

test('Of two texts whose other segments never came the one is told whose event the database takes', async () => {
  const { received } = first.store;
  const segment = { to: '+15550001', from: '+15550002', total: 2, number: 1, octets: new Uint8Array([1]) };
  for (const [reference, appUuid] of [
    [1, REFUSED],
    [2, 'app of texts'],
  ] as const)
    await received.take({ ...segment, reference, alphabet: 'gsm7' }, { id: 'link', since: 0 }, appUuid, 1);
  await expect(received.giveUp(2, 3)).rejects.toThrow('not this one');
  const told = await first.store.events.list({
    appUuid: 'app of texts',
    sessionUuid: undefined,
    status: undefined,
    after: 0,
    limit: 10,
  });
  expect(told.map(({ name }) => name)).toEqual(['message.received']);
});

test('A change that the database refuses is told in the log with whose it is', async () => {
  const fields: object[] = [];
  const journal = groupCommit({
    database: { query: () => Promise.reject(new Error('no')) },
    log: { ...silentLog, error: (each) => void fields.push(each) },
    nodeId: 'node',
    keptAnswers: keptAnswers(undefined),
    readTo: () => undefined,
    onEvents() {},
    onDead() {},
  });
  const session = sessionRow();
  await expect(journal.commit({ events: [], session })).rejects.toBeInstanceOf(ChangeRefused);
  expect(fields).toEqual([
    { session_uuid: session.sessionUuid, room_id: undefined, recording_uuid: undefined, error: 'Error: no' },
  ]);
});
