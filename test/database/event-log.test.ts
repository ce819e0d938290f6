/** The event log by pages, where its events are as large as they can be. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import type { EventTail } from '../../src/database/event/event-tail.ts';
import { recordOf } from '../../src/http/operator/calls.ts';
import { EventStreams } from '../../src/http/operator/event-stream.ts';
import { newUuid } from '../../src/id.ts';
import { EVENT_LIST_MAX_BYTES, EVENT_STREAM_PAGE_BYTES, TIMELINE_EVENTS_MAX_CHARS } from '../../src/limits.ts';
import { eventOf } from '../webhook/emit.ts';
import { openTestStore, type TestStore } from './open.ts';

/** The body of an event with a hundred long URLs. */
const LARGE_CHARS = 200_000;

let own: TestStore;
beforeAll(async () => {
  own = await openTestStore();
});
afterAll(() => own.close());

/** Commits large events of one Session, and returns it. */
async function largeEvents(appUuid: string, count: number): Promise<string> {
  const session = newUuid();
  const pad = 'x'.repeat(LARGE_CHARS);
  for (let step = 0; step < count; step += 20)
    await own.store.journal.commit({
      events: Array.from({ length: Math.min(20, count - step) }, (_, more) => {
        const event = eventOf(appUuid, session, step + more);
        return { ...event, body: JSON.stringify({ ...JSON.parse(event.body), pad }) };
      }),
    });
  return session;
}

const stepsOf = (events: readonly { readonly body: string }[]): readonly number[] =>
  events.map(({ body }) => JSON.parse(body).step);
const all = { appUuid: undefined, sessionUuid: undefined, status: undefined, limit: 1000 };

/** Reads a new stream of an application's events until `count` have come. `longest` is the longest piece, in bytes. */
async function streamed(appUuid: string, after: number, count: number) {
  const { tail, events } = own.store;
  const streams = new EventStreams({ events, tail, clock: systemClock(), sign: async () => ({}) });
  const body = await streams.open({ appUuid, after, signed: false, isStillAdmitted: async () => true });
  const reader = body?.getReader();
  let text = '';
  let longest = 0;
  while (reader !== undefined && (text.match(/^event: /gm) ?? []).length < count) {
    const { value } = await reader.read();
    longest = Math.max(longest, value?.length ?? 0);
    text += new TextDecoder().decode(value);
  }
  await reader?.cancel();
  return { steps: [...text.matchAll(/"step":(\d+)/g)].map(([, step]) => Number(step)), longest };
}

test('A page of large events ends early, one event at least is in it, and all are found page by page', async () => {
  const sessionUuid = await largeEvents('app paged', 200);
  const { events } = own.store;
  const first = await events.list({ ...all, sessionUuid, after: 0 });
  expect(first.length).toBe(Math.ceil(EVENT_LIST_MAX_BYTES / (JSON.stringify(first[0]?.body).length - 60)));
  const steps: number[] = [];
  for (let after = 0; ; ) {
    const page = await events.list({ ...all, sessionUuid, after });
    steps.push(...stepsOf(page));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.eventId;
  }
  expect(steps).toEqual(Array.from({ length: 200 }, (_, step) => step));
  const latest = { ...all, sessionUuid, after: 0, before: Number.MAX_SAFE_INTEGER };
  expect(stepsOf(await events.list({ ...latest, maxBytes: 1 }))).toEqual([199]);
  expect(stepsOf(await events.list({ ...latest, limit: 3 }))).toEqual([199, 198, 197]);
}, 30_000);

test('A timeline shows the first events of a call that has too many large ones', async () => {
  const sessionUuid = await largeEvents('app shown', 200);
  const calls = { ...own.store.calls, timeline: async () => [] };
  const options = { calls, events: own.store.events, clock: systemClock(), unsaved: () => [], hidden: [] };
  const { events } = await recordOf(options, sessionUuid);
  const chars = events.reduce((sum, { body }) => sum + body.length, 0);
  expect(chars).toBeGreaterThanOrEqual(TIMELINE_EVENTS_MAX_CHARS);
  expect(chars).toBeLessThan(TIMELINE_EVENTS_MAX_CHARS + 2 * LARGE_CHARS);
  expect(stepsOf(events)).toEqual(Array.from({ length: events.length }, (_, step) => step));
}, 30_000);

test('What is stored while a timeline is read is shown once, also a command that is told after what it caused', async () => {
  const command = { kind: 'command', method: 'POST', path: '/', status: 202, operation_uuid: '', took_ms: 40 } as const;
  const left = [{ at: 100, kind: 'media', what: 'started' } as const, { at: 60, ...command }];
  const calls = { ...own.store.calls, timeline: async () => left };
  const options = { calls, events: own.store.events, clock: systemClock(), unsaved: () => left, hidden: [] };
  expect((await recordOf(options, newUuid())).entries).toEqual(left);
});

test('A stream tells large events in small pieces, and none is left out', async () => {
  const [last] = await own.store.events.list({ ...all, after: 0, before: Number.MAX_SAFE_INTEGER, limit: 1 });
  await largeEvents('app streamed', 30);
  const { steps, longest } = await streamed('app streamed', last?.eventId ?? 0, 30);
  expect(longest).toBeLessThan(EVENT_STREAM_PAGE_BYTES + 2 * LARGE_CHARS);
  expect(steps).toEqual(Array.from({ length: 30 }, (_, at) => at));
}, 30_000);

test('A reader that comes back while an earlier event is not committed yet misses none', async () => {
  const path = `${own.dataDir}/postgres-socket/.s.PGSQL.5432`;
  const sql = postgres({ path, user: 'sidetone', database: 'postgres', max: 1 });
  const [last] = await own.store.events.list({ ...all, after: 0, before: Number.MAX_SAFE_INTEGER, limit: 1 });
  const late = eventOf('app late', newUuid(), 1);
  const { promise: mayCommit, resolve: release } = Promise.withResolvers<void>();
  const { promise: isWritten, resolve: written } = Promise.withResolvers<void>();
  const slow = sql.begin(async (tx) => {
    await tx`INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
      VALUES (${late.webhookId}, 'app late', 'x', ${late.sessionUuid ?? ''}, '{}', ${late.body}, '', ${late.at})`;
    written();
    await mayCommit;
  });
  await isWritten;
  await own.store.journal.commit({ events: [eventOf('app late', newUuid(), 2)] });
  const told = streamed('app late', last?.eventId ?? 0, 2);
  // It is asked for the end of the log before the earlier event is there.
  await own.store.events.list({ ...all, after: 0, limit: 1 });
  release();
  await slow;
  expect((await told).steps).toEqual([1, 2]);
  await sql.end();
}, 30_000);

test('The tail tells where the log begins and ends, also when all of it was forgotten, and how much has come', async () => {
  const empty = await openTestStore();
  const sql = postgres({
    path: `${empty.dataDir}/postgres-socket/.s.PGSQL.5432`,
    user: 'sidetone',
    database: 'postgres',
    max: 1,
  });
  try {
    const { tail, journal } = empty.store;
    expect(await tail.bounds()).toBeUndefined();
    expect(await tail.position()).toBe(0);
    const told = Promise.withResolvers<readonly [number, number]>();
    const stop = tail.follow((position, bytes) => told.resolve([position, bytes]));
    const events = [1, 2, 3].map((step) => ({ ...eventOf('app', newUuid(), step), body: JSON.stringify({ step, pad: 'é' }) }));
    await journal.commit({ events });
    expect(await told.promise).toEqual([3, events.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)]);
    expect(await tail.position()).toBe(3);
    stop();
    expect(await tail.bounds()).toEqual({ first: 1, last: 3 });
    await sql`DELETE FROM events WHERE event_id = 1`;
    expect(await tail.bounds()).toEqual({ first: 2, last: 3 });
    await sql`DELETE FROM events`;
    expect(await tail.bounds()).toEqual({ first: 4, last: 3 });
  } finally {
    await sql.end();
    await empty.close();
  }
}, 30_000);

test('A stream of a log that has become an earlier one breaks off, and its reader is told of a gap when it comes back', async () => {
  const { tail, events } = own.store;
  let lose = () => {};
  const followed: EventTail = {
    position: () => tail.position(),
    bounds: () => tail.bounds(),
    wake: () => tail.wake(),
    follow(follower, lost = () => {}) {
      lose = lost;
      return tail.follow(follower, lost);
    },
  };
  const streams = new EventStreams({ events, tail: followed, clock: systemClock(), sign: async () => ({}) });
  const open = async (after: number) => {
    const body = await streams.open({ appUuid: undefined, after, signed: false, isStillAdmitted: async () => true });
    return body?.getReader();
  };
  const position = await tail.position();
  const reader = await open(position);
  await reader?.read();
  const next = reader?.read();
  lose();
  await expect(next).rejects.toBeUndefined();
  expect(streams.size).toBe(0);
  // Its last id is one that this log never gave.
  const again = await open(position + 1_000);
  expect(new TextDecoder().decode((await again?.read())?.value)).toContain('event: gap');
  await again?.cancel();
});
