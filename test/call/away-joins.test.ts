import { expect, test } from 'bun:test';
import { AwayJoins } from '../../src/call/room/away-joins.ts';
import { roomIsMoving } from '../../src/call/room/room-moving.ts';
import { type Journal, StoreUnavailable } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import type { Seat } from '../../src/machine/room/membership.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { type Problem, problems } from '../../src/problem.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietSession } from './quiet-session.ts';

const ROOM = newUuid();

/** An answered Session whose commits end when the test says so, and the seats that were taken and left for it. */
function world(phase: 'answered' | 'ringing' = 'answered', seat?: Seat) {
  const clock = new VirtualClock();
  const commits: { readonly stored: () => void; readonly fails: () => void }[] = [];
  let looks = 0;
  const about = { sessionUuid: 'caller', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
  const answered = { ...inbound(about, clock.now()), phase, hasLeg: true, seat } as const;
  const journal: Journal = {
    commit: () =>
      new Promise((resolve, reject) =>
        commits.push({ stored: () => resolve(true), fails: () => reject(new StoreUnavailable('no answer')) }),
      ),
    async wasStored() {
      if (looks++ === 0) throw new StoreUnavailable('away');
      return true;
    },
  };
  const session = quietSession(answered, journal, clock, 'here');
  const taken: string[] = [];
  const left: string[] = [];
  /** The home of the Room by its row, and what the home that is asked answers instead of a seat. */
  const room = { home: 'home', refused: undefined as Problem | undefined };
  /** The Session as it is at this node now. */
  const live = { session };
  const joins = new AwayJoins({
    session: () => live.session,
    span: {
      take: async (nodeId) => {
        const seat = { room: taken.push(nodeId), voiceActivityEvents: false };
        return nodeId === room.home ? seat : (room.refused ?? seat);
      },
      left: (sessionUuid) => void left.push(sessionUuid),
    },
    homes: { home: async () => room.home },
    nodeId: 'here',
  });
  const join = () =>
    joins.join(
      'home',
      ROOM,
      session,
      { session_uuid: 'caller', muted: false },
      { appUuid: 'app', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' },
    );
  return { clock, commits, session, live, answered, journal, taken, left, room, join };
}

test('A join that comes while another of the same Session is open takes no second seat, and is to come again.', async () => {
  const { commits, session, taken, left, join } = world();
  const first = join();
  await settle();
  expect(await join()).toBe(roomIsMoving);
  commits[0]?.stored();
  expect(await first).toMatchObject({ status: 202 });
  expect(session.state.membership).toMatchObject({ roomId: ROOM, room: 1 });
  await settle();
  expect(await join()).toMatchObject({ status: 202 });
  expect({ taken, left }).toEqual({ taken: ['home'], left: [] });
});

test('The seat of a join whose outcome is unknown is kept until it is known, and no other join takes it away.', async () => {
  const { clock, commits, session, taken, left, join } = world();
  const first = join();
  await settle();
  commits[0]?.fails();
  expect(await first).toMatchObject({ status: 503 });
  await clock.advance(10_000);
  expect(session.state.membership).toMatchObject({ roomId: ROOM, room: 1 });
  expect({ taken, left }).toEqual({ taken: ['home'], left: [] });
});

test('A Room that has just moved is joined at its next home; where that is this node, the join is to come again.', async () => {
  for (const [next, seats] of [
    ['next', ['home', 'next']],
    ['here', ['home']],
  ] as const) {
    const { commits, taken, room, join } = world();
    Object.assign(room, { home: next, refused: next === 'here' ? problems.nodeAway('this Room') : roomIsMoving });
    const joined = join();
    await settle();
    commits[0]?.stored();
    expect(await joined).toMatchObject(next === 'here' ? roomIsMoving : { status: 202 });
    expect(taken).toEqual([...seats]);
  }
});

test('The seat of a Session that came back to the node, and to the Room, is not given back by a join that waited before.', async () => {
  const { clock, commits, session, live, answered, journal, taken, left, join } = world();
  const given = Promise.withResolvers<'given'>();
  void session.handOver(() => given.promise);
  const joined = join();
  await settle();
  session.dropTaken();
  const membership = {
    roomId: ROOM,
    room: 2,
    phase: 'joined',
    muted: false,
    voiceActivityEvents: false,
    talking: false,
  } as const;
  live.session = quietSession({ ...answered, membership }, journal, clock, 'here');
  given.resolve('given');
  expect(await joined).toMatchObject({ status: 404 });
  await settle();
  expect({ commits, taken, left }).toEqual({ commits: [], taken: ['home'], left: [] });
});

test('The seat of a join that is refused is given back.', async () => {
  const { taken, left, join } = world('ringing');
  expect(await join()).toMatchObject({ status: 409 });
  await settle();
  expect({ taken, left }).toEqual({ taken: ['home'], left: ['caller'] });
});

test('A join of a call that was dialled into the Room takes no second seat there: the first one would be lost.', async () => {
  const seat = { roomId: ROOM, room: 7, muted: false, voiceActivityEvents: false };
  const ringing = world('ringing', seat);
  expect(await ringing.join()).toMatchObject({ status: 409 });
  const answering = world('ringing', seat);
  answering.session.signal({ type: 'leg.answered' });
  const joined = answering.join();
  for (let commit = 0; commit < 2; commit++) {
    await settle();
    answering.commits[commit]?.stored();
  }
  expect(await joined).toMatchObject({ status: 202 });
  expect(answering.session.state.membership).toMatchObject({ roomId: ROOM, room: 7 });
  await settle();
  expect([ringing.taken, ringing.left, answering.taken, answering.left]).toEqual([[], [], [], []]);
});
