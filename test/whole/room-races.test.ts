/**
 * Joins, leaves, hangups and deletions at the same instant: no ghost member, no leaked place, events in production
 * order in both lanes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';

const CALLS = 12;
const CAP = 3;

describe.skipIf(!sippInstalled)('Rooms under races', () => {
  let platform: Platform;
  let app: Credentials;
  let callers: Sipp;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2' });
    app = await platform.application(receiver.url, '+15550002');
    await platform.operator('PATCH', `/apps/${app.appUuid}`, { room_limits: { max_rooms: CAP, max_members_per_room: 8 } });
    await platform.trunk('127.0.0.1:9');
    callers = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: CALLS, rate: 50 });
    await receiver.until(() => receiver.count('session.created') === CALLS, 'the calls');
    for (const { body } of receiver.events.slice()) {
      if (body.event === 'session.created') await platform.api(app, 'POST', `/v1/sessions/${body.session_uuid}/answer`);
    }
    await receiver.until(() => receiver.count('session.answered') === CALLS, 'the answers');
  }, 60_000);

  afterAll(async () => {
    callers?.stop();
    await platform?.stop();
    await receiver.stop();
  });

  test('a supervisor who leaves to come back as a coach is a member again, however soon that is', async () => {
    const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
    const [agent = '', ...supervisors] = receiver.events
      .filter(({ event }) => event === 'session.answered')
      .map(({ body }) => String(body.session_uuid));
    const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
    const members = `/api/v1/rooms/${room}/members`;
    const told = (session: string) => receiver.of(session).filter(({ event }) => event.startsWith('room.member.'));
    const join = async (session_uuid: string, more: object, times: number) => {
      expect((await api('POST', members, { session_uuid, ...more })).status).toBe(202);
      const joins = () => told(session_uuid).filter(({ event }) => event === 'room.member.joined').length;
      const isLost = () => told(session_uuid).some(({ body }) => body.reason === 'orphan');
      await receiver.until(() => joins() === times || isLost(), 'the join');
    };
    await join(agent, {}, 1);
    // 6 seats beside the agent's. Each leaves and is back 15 times, as the guide to contact centres says.
    const back = supervisors.slice(0, 6).map(async (session) => {
      await join(session, { muted: true }, 1);
      for (let times = 2; times <= 16; times++) {
        expect((await api('DELETE', `${members}/${session}`)).status).toBe(202);
        await join(session, { coach: agent }, times);
      }
      return told(session).map(({ event, body }) => [event, body.reason].filter(Boolean).join(' '));
    });
    const pairs = Array.from({ length: 15 }, () => ['room.member.left removed', 'room.member.joined']).flat();
    for (const names of await Promise.all(back)) expect(names).toEqual(['room.member.joined', ...pairs]);
    await api('DELETE', `/api/v1/rooms/${room}`);
    await receiver.until(() => receiver.count('room.deleted') === 1, 'the end of the Room');
  }, 60_000);

  test('joins and leaves come in pairs, Rooms end last, and every place is given back', async () => {
    const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
    const sessions = receiver.events
      .filter(({ event }) => event === 'session.answered')
      .map(({ body }) => String(body.session_uuid));
    const rooms: string[] = [];
    for (let made = 0; made < CAP; made++) rooms.push(String((await api('POST', '/api/v1/rooms', {})).body.room_id));
    const [one = '', two = '', three = ''] = rooms;
    const member = (roomId: string, session_uuid: string) => api('POST', `/api/v1/rooms/${roomId}/members`, { session_uuid });

    // The same Session to two Rooms at once: in one of them, or the second is told to wait.
    const twice = await Promise.all(sessions.map((session) => Promise.all([member(one, session), member(two, session)])));
    for (const answers of twice) for (const { status } of answers) expect([202, 409]).toContain(status);
    // Moves, removals and hangups while joins are under way.
    const hung = sessions.slice(0, 4);
    const moves = await Promise.all([
      ...sessions.slice(2, 8).map((session) => member(three, session)),
      ...hung.map((session) => api('DELETE', `/v1/sessions/${session}`)),
      ...sessions.slice(6, 10).map((session) => api('DELETE', `/api/v1/rooms/${one}/members/${session}`)),
      ...sessions.slice(6, 12).map((session) => member(two, session)),
    ]);
    for (const { status } of moves) expect([202, 404, 409]).toContain(status);
    // Joins into a Room that is being deleted, and deletion of all.
    const last = await Promise.all([
      ...rooms.map((roomId) => api('DELETE', `/api/v1/rooms/${roomId}`)),
      ...sessions.slice(4).flatMap((session) => rooms.map((roomId) => member(roomId, session))),
    ]);
    for (const { status } of last) expect([202, 404, 409]).toContain(status);
    await receiver.until(() => receiver.count('room.deleted') === 1 + CAP, 'the deletions');
    await Promise.all(sessions.slice(4).map((session) => api('DELETE', `/v1/sessions/${session}`)));
    await receiver.until(() => receiver.count('session.ended') === CALLS, 'the ends');

    for (const roomId of rooms) {
      const events = receiver.events.filter(({ body }) => body.room_id === roomId);
      expect(events[0]?.event).toBe('room.created');
      expect(events.at(-1)?.body).toMatchObject({ event: 'room.deleted', reason: 'closed' });
    }
    for (const session of sessions) {
      let inside: unknown;
      for (const { event, body } of receiver.of(session)) {
        if (event === 'room.member.joined') {
          expect(inside).toBeUndefined();
          inside = body.room_id;
        }
        if (event === 'room.member.left') {
          if (body.reason !== 'removed') expect(inside).toBe(body.room_id); // It may be removed while it is joining.
          inside = undefined;
        }
      }
      expect(inside).toBeUndefined();
      expect(receiver.names(session).at(-1)).toBe('session.ended');
    }
    // Every place of the application is free again.
    const again = await Promise.all(Array.from({ length: CAP + 1 }, () => api('POST', '/api/v1/rooms', {})));
    expect(again.map(({ status }) => status).sort()).toEqual([...Array.from({ length: CAP }, () => 201), 403]);
    expect((await api('GET', '/v1/sessions')).body.sessions).toEqual([]);
  }, 60_000);
});
