/** A failover to a real standby, under calls and commands: what was answered is there, once, and told in order. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { callsTo, type LiveCalls } from '../cluster/calls.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { type Answered, type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { ReplicatedPostgres } from '../support/replicated-postgres.ts';
import { sippInstalled } from '../support/sipp.ts';

const CALLS = 10;
const ROOMS_MAX = 20;

let databases: ReplicatedPostgres;
let proxy: FaultProxy;
let platform: Platform;
let app: Credentials;
let calls: LiveCalls | undefined;
const receiver = new Receiver();

beforeAll(async () => {
  databases = await ReplicatedPostgres.start();
  proxy = await FaultProxy.start(databases.primary);
  platform = await Platform.start({
    DATABASE_URL: `postgres://sidetone@127.0.0.1:${proxy.port}/postgres`,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    OPERATOR_TOKEN: 'operator-token-of-the-failover',
    WEBHOOK_RETRY_SCALE: '0.1',
  });
  app = await platform.application(receiver.url, '+15550002');
  receiver.secrets.set(app.appUuid, app.webhookSecret);
  await platform.trunk('127.0.0.1:9');
}, 60_000);

afterAll(async () => {
  calls?.sipp.stop();
  await platform?.stop();
  proxy?.stop();
  await databases?.stop();
  await receiver.stop();
});

/**
 * How long sixty playbacks may take. A command whose outcome the failover left open is in flight for the minute that a
 * mark lasts, and on a busy machine each call has one.
 */
const TURN_MS = 90_000;

/** Asks until it is answered, under the same key. */
async function insist(path: string, body: unknown, key: string): Promise<Answered> {
  for (;;) {
    const answer = await platform.api(app, 'POST', path, body, { 'idempotency-key': key });
    if (answer.status < 300) return answer;
    expect([409, 429, 503]).toContain(answer.status);
    await Bun.sleep(20);
  }
}

/** Plays silence to a call, over and over. Resolves with the operations, each of which was answered with 202. */
async function play(sessionUuid: string, isOver: () => boolean): Promise<readonly string[]> {
  const operations: string[] = [];
  while (!isOver()) {
    const key = `${sessionUuid} ${operations.length}`;
    const { body } = await insist(`/v1/sessions/${sessionUuid}/playback/play`, { type: 'silence' }, key);
    operations.push(String(body.operation_uuid));
  }
  return operations;
}

/** Makes Rooms, one after the other, as many as a page lists at most. */
async function makeRooms(isOver: () => boolean): Promise<readonly string[]> {
  const rooms: string[] = [];
  while (!isOver() && rooms.length < ROOMS_MAX)
    rooms.push(String((await insist('/api/v1/rooms', {}, `room ${rooms.length}`)).body.room_id));
  return rooms;
}

/** Every Room that the application has. */
async function listedRooms(): Promise<readonly string[]> {
  const { body } = await platform.api(app, 'GET', '/api/v1/rooms');
  const rooms: readonly { readonly room_id: string }[] = JSON.parse(JSON.stringify(body.rooms));
  return rooms.map(({ room_id: roomId }) => roomId);
}

test.skipIf(!sippInstalled)(
  'A failover to a synchronous standby loses nothing that was answered, does nothing twice, and calls go on.',
  async () => {
    calls = await callsTo(platform, app, receiver, CALLS);
    let isOver = false;
    const over = () => isOver;
    const played = Promise.all(calls.sessions.map((sessionUuid) => play(sessionUuid, over)));
    const made = makeRooms(over);
    await receiver.until(() => receiver.count('playback.ended') > 60, 'playbacks before the failover', TURN_MS);
    await databases.failOver();
    const before = receiver.count('playback.ended');
    proxy.lead(databases.standby);
    await receiver.until(() => receiver.count('playback.ended') > before + 60, 'playbacks after the failover', TURN_MS);
    isOver = true;
    const operations = (await played).flat();
    const rooms = await made;

    for (const sessionUuid of calls.sessions)
      expect((await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
    await receiver.until(() => receiver.count('session.ended') === CALLS, 'the ends');
    const told = (name: string) =>
      receiver.events.filter(({ event }) => event === name).map(({ body }) => String(body.operation_uuid));
    expect(told('playback.ended').toSorted()).toEqual(operations.toSorted());
    for (const { body } of receiver.events.filter(({ event }) => event === 'session.ended'))
      expect(body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'callee' });
    expect((await listedRooms()).toSorted()).toEqual(rooms.toSorted());
  },
  240_000,
);
