/** The stream of events, whose reader may be slow, or come back when what it wants is gone. */
import { expect, test } from 'bun:test';
import type { LoggedEvent } from '../../src/database/event/events.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { EventStreams } from '../../src/http/operator/event-stream.ts';
import { EVENT_STREAM_BEHIND_MAX_BYTES, EVENT_STREAM_COMMENT_MS, EVENT_STREAMS_MAX } from '../../src/limits.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const event = (eventId: number): LoggedEvent => ({
  eventId,
  webhookId: `evt_${eventId}`,
  appUuid: 'app',
  name: 'session.ended',
  status: 'delivered',
  body: `{"event":"session.ended","n":${eventId}}`,
  at: 0,
  attempts: [],
  sessionUuid: undefined,
});

/** A log with the events of these positions, and streams of it. */
function world(first: number, last: number) {
  const followers = new Set<(position: number, bytes: number) => void>();
  let end = last;
  const log = {
    /** The answer about the bounds of the log waits for it. */
    bounds: Promise.resolve(),
    isAway: false,
    /** Whether the reader of a stream may go on; undefined where nobody can tell. */
    isAdmitted: true as boolean | undefined,
  };
  const clock = new VirtualClock();
  const streams = new EventStreams({
    clock,
    sign: async (_appUuid, webhookId) => {
      if (log.isAway) throw new StoreUnavailable('away');
      if (webhookId === 'evt_1') throw new Error('MASTER_KEY opens no webhook secret of this application');
      return { 'webhook-id': webhookId };
    },
    events: {
      list: async ({ after, limit }) =>
        Array.from({ length: end - first + 1 }, (_, i) => event(first + i))
          .filter(({ eventId }) => eventId > after)
          .slice(0, limit),
    },
    tail: {
      follow(follower) {
        followers.add(follower);
        return () => followers.delete(follower);
      },
      async position() {
        if (log.isAway) throw new StoreUnavailable('away');
        return end;
      },
      async bounds() {
        await log.bounds;
        return end === 0 ? undefined : { first, last: end };
      },
      wake() {},
    },
  });
  const open = async (after?: number, signed = false) => {
    const isStillAdmitted = async () => {
      if (log.isAdmitted === undefined) throw new StoreUnavailable('away');
      return log.isAdmitted;
    };
    const request = { appUuid: undefined, after, signed, isStillAdmitted };
    const reader = (await streams.open(request))?.getReader();
    return async () => new TextDecoder().decode((await reader?.read())?.value);
  };
  const grow = (bytes: number) => {
    end += 1;
    for (const follower of followers) follower(end, bytes);
  };
  return { log, clock, streams, open, grow };
}

const ids = (text: string) => [...text.matchAll(/^id: ([0-9]+)$/gm)].map(([, id]) => Number(id));

test('A reader whose last event is older than the log is told of the gap, and goes on with the first that is left.', async () => {
  const { open } = world(10, 12);
  const read = await open(5);
  expect(await read()).toContain('id: 9\nevent: gap\n');
  expect(ids(await read())).toEqual([10, 11, 12]);
});

test('A reader that lacks one event alone is told of the gap.', async () => {
  const { open } = world(10, 12);
  expect(await (await open(8))()).toContain('id: 9\nevent: gap\n');
});

test('A reader with an id that the log never gave is told of a gap, and goes on with what is new.', async () => {
  for (const [first, last] of [
    [1, 0],
    [10, 12],
  ] as const) {
    const { open, grow } = world(first, last);
    const read = await open(1_000);
    expect(await read()).toContain(`id: ${last}\nevent: gap\n`);
    grow(1);
    expect(ids(await read())).toEqual([last + 1]);
  }
});

test('A reader that comes back as an event is added is told of that event, with nothing added after it.', async () => {
  const { log, open, grow } = world(1, 1);
  const { promise, resolve } = Promise.withResolvers<void>();
  log.bounds = promise;
  const opening = open(1);
  grow(1);
  resolve();
  const read = await opening;
  await read();
  const next = read();
  await settle();
  expect(await Promise.race([next, Promise.resolve('nothing')])).toContain('id: 2\n');
});

test('So many streams are open at most; one that ends, or for which the log cannot be read, gives its place back.', async () => {
  const { log, streams } = world(1, 1);
  const request = { appUuid: undefined, after: undefined, signed: false, isStillAdmitted: async () => true };
  const first = await streams.open(request);
  log.isAway = true;
  await expect(streams.open(request)).rejects.toBeInstanceOf(StoreUnavailable);
  log.isAway = false;
  for (let others = 1; others < EVENT_STREAMS_MAX; others++) expect(await streams.open(request)).toBeDefined();
  expect(await streams.open(request)).toBeUndefined();
  await first?.cancel();
  expect(await streams.open(request)).toBeDefined();
});

test('A reader whose log runs ahead before it reads at all is cut off.', async () => {
  const { streams, open, grow } = world(1, 1);
  const slow = await open();
  grow(EVENT_STREAM_BEHIND_MAX_BYTES + 1);
  expect(streams.size).toBe(0);
  const outcome = slow().then(
    () => 'read',
    () => 'broken off',
  );
  await settle();
  expect(await Promise.race([outcome, Promise.resolve('nothing')])).toBe('broken off');
});

test('A reader whose last event was the one before the first that is left has missed nothing.', async () => {
  const { open } = world(10, 12);
  const read = await open(9);
  expect(await read()).not.toContain('gap');
  expect(ids(await read())).toEqual([10, 11, 12]);
});

test('A reader that is more than 1 MiB behind is cut off, and gives its place back.', async () => {
  expect(EVENT_STREAM_BEHIND_MAX_BYTES).toBe(1024 * 1024);
  const { streams, open, grow } = world(1, 1);
  const slow = await open();
  await slow();
  grow(EVENT_STREAM_BEHIND_MAX_BYTES);
  expect(streams.size).toBe(1);
  expect(ids(await slow())).toEqual([2]);
  grow(EVENT_STREAM_BEHIND_MAX_BYTES);
  expect(streams.size).toBe(1);
  grow(1);
  expect(streams.size).toBe(0);
  await expect(slow()).rejects.toBeUndefined();
});

test('A reader that waits for what is new is never behind, and is told every five seconds that there is nothing.', async () => {
  const { clock, streams, open, grow } = world(1, 1);
  const read = await open();
  await read();
  for (let times = 0; times < 3; times++) {
    const next = read();
    await settle();
    grow(EVENT_STREAM_BEHIND_MAX_BYTES + 1);
    expect(ids(await next)).toEqual([times + 2]);
  }
  const quiet = read();
  await clock.advance(EVENT_STREAM_COMMENT_MS - 1);
  expect(await Promise.race([quiet, Promise.resolve('waits')])).toBe('waits');
  await clock.advance(1);
  expect(await quiet).toBe(': nothing new\n\n');
  expect(streams.size).toBe(1);
});

test('A reader whose credentials are no longer good, or cannot be looked at, is cut off within five seconds.', async () => {
  for (const isAdmitted of [false, undefined]) {
    const { log, clock, streams, open, grow } = world(1, 1);
    const read = await open();
    await read();
    log.isAdmitted = isAdmitted;
    await clock.advance(EVENT_STREAM_COMMENT_MS - 1);
    grow(1);
    expect(ids(await read())).toEqual([2]);
    await clock.advance(1);
    grow(1);
    await expect(read()).rejects.toBeUndefined();
    expect([streams.size, clock.armed]).toEqual([0, 0]);
  }
});

test('A reader whose credentials are no longer good is cut off within five seconds where nothing is added either.', async () => {
  const { log, clock, streams, open, grow } = world(1, 1);
  const read = await open();
  await read();
  log.isAdmitted = false;
  await clock.advance(EVENT_STREAM_COMMENT_MS - 1);
  grow(1);
  expect(ids(await read())).toEqual([2]);
  const quiet = read().catch(() => 'cut off');
  await clock.advance(1);
  expect(await Promise.race([quiet, settle().then(() => 'waits')])).toBe('cut off');
  expect([streams.size, clock.armed]).toEqual([0, 0]);
});

test('A signed stream goes on past an event whose application has no secret that opens, and ends where the database is away', async () => {
  const { log, open } = world(1, 2);
  const read = await open(0, true);
  await read();
  const headers = [...(await read()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data).headers);
  expect(headers).toEqual([{}, { 'webhook-id': 'evt_2' }]);
  const other = await open(0, true);
  await other();
  log.isAway = true;
  await expect(other()).rejects.toBeUndefined();
});
