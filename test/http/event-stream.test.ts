/** The stream of events, whose reader may be slow, or come back when what it wants is gone. */
import { expect, test } from 'bun:test';
import type { LoggedEvent } from '../../src/database/event/events.ts';
import { EventStreams } from '../../src/http/operator/event-stream.ts';
import { EVENT_STREAM_BEHIND_MAX_BYTES } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

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
  const streams = new EventStreams({
    clock: new VirtualClock(),
    sign: async () => ({}),
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
      position: async () => end,
      bounds: async () => ({ first, last: end }),
      wake() {},
    },
  });
  const open = async (after?: number) => {
    const request = { appUuid: undefined, after, signed: false, isStillAdmitted: async () => true };
    const reader = (await streams.open(request))?.getReader();
    return async () => new TextDecoder().decode((await reader?.read())?.value);
  };
  const grow = (bytes: number) => {
    end += 1;
    for (const follower of followers) follower(end, bytes);
  };
  return { streams, open, grow };
}

const ids = (text: string) => [...text.matchAll(/^id: ([0-9]+)$/gm)].map(([, id]) => Number(id));

test('A reader whose last event is older than the log is told of the gap, and goes on with the first that is left.', async () => {
  const { open } = world(10, 12);
  const read = await open(5);
  expect(await read()).toContain('id: 9\nevent: gap\n');
  expect(ids(await read())).toEqual([10, 11, 12]);
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
  grow(1);
  expect(streams.size).toBe(0);
  await expect(slow()).rejects.toBeUndefined();
});
