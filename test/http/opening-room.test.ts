/** What is read of a Room while it moves to this node, whose members are known a moment later. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import { type Problem, problems } from '../../src/problem.ts';
import { noRooms } from '../support/no-rooms.ts';
import { openPlatform, type Platform } from './platform.ts';

const roomId = newUuid();
const member = { uuid: newUuid(), muted: true };
let opening: Promise<Problem | undefined> | undefined;
let isOpen = true;
let members: readonly (typeof member)[] = [];
let platform: Platform;
let app: AppSecrets;
let other: AppSecrets;

beforeAll(async () => {
  platform = await openPlatform({
    rooms: {
      ...noRooms,
      opening: (asked) => (asked === roomId ? opening : undefined),
      knows: async (appUuid, asked) => appUuid === app.appUuid && asked === roomId,
      get: (appUuid, room_id) =>
        appUuid !== app.appUuid || room_id !== roomId || !isOpen
          ? undefined
          : {
              ...{ room_id, created_at: '2026-01-01T00:00:00Z', hold_music_url: '', voice_activity_events: false },
              ...{ member_count: members.length, playback_status: 'stopped', playback_volume: 100 },
              ...{ playback_operation_uuid: '', playback_urls: [] },
            },
      members: () => members,
    },
  });
  app = await platform.testStore.store.apps.create({ name: 'one' });
  other = await platform.testStore.store.apps.create({ name: 'other' });
});
afterAll(() => platform.close());

const get = (as: AppSecrets, tail: string) => platform.call(as, 'GET', `/api/v1/rooms/${roomId}${tail}`);

test('A Room that has just come to this node tells its members once they are known, not that it is empty.', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  opening = promise;
  const asked = ['', '/members', `/members/${member.uuid}`].map((tail) => get(app, tail));
  // Another application is not kept waiting.
  expect((await get(other, '/members')).status).toBe(404);
  members = [member];
  resolve(undefined);
  const [room, list, one] = await Promise.all(asked);
  expect(room?.body).toMatchObject({ member_count: 1 });
  expect(list?.body).toEqual({ members: [member] });
  expect(one).toMatchObject({ status: 200, body: member });
});

test('A Room whose members are not known for long is 503, and the request comes again.', async () => {
  opening = Promise.resolve(problems.unavailable('The Room is moving to another node.', 1));
  const answer = await get(app, '/members');
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  opening = undefined;
  expect((await get(app, '/members')).status).toBe(200);
});

test('A Room that is here by its row, and is not opened yet, is 503 and not unknown; to another application it is 404.', async () => {
  isOpen = false;
  for (const tail of ['', '/members', `/members/${member.uuid}`]) {
    const answer = await get(app, tail);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await get(other, tail)).status).toBe(404);
  }
  isOpen = true;
  expect((await get(app, '')).status).toBe(200);
});
