import { expect, test } from 'bun:test';
import {
  L16_PROTOCOL,
  type NewHome,
  type RoomPeers,
  type SeatNote,
  type SeatReply,
  type SeatRequest,
} from '../../src/call/ports/room-peers.ts';
import { RoomRegistry } from '../../src/call/room/room-registry.ts';
import type { RoomRegistryOptions } from '../../src/call/room/room-registry-options.ts';
import type { SessionActor } from '../../src/call/session/session-actor.ts';
import { type Journal, type RoomRow, StoreUnavailable } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { ROOM_BEQUEST_MS, SEAT_CHECK_MS, SEAT_NOTES_MAX, STATEMENT_MAX_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { Membership } from '../../src/machine/room/membership.ts';
import { inbound } from '../../src/machine/session/session.ts';
import {
  type JoinOptions,
  type LegAudio,
  type MediaNotice,
  type MediaPipe,
  NO_COUNTERS,
  type PipeOptions,
  type RoomNotice,
} from '../../src/media/engine.ts';
import { isProblem, problems } from '../../src/problem.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietRoom } from './quiet-room.ts';
import { quietSession } from './quiet-session.ts';

/**
 * What becomes of the next statement of a kind: it is carried out and not answered, or carried out so much later. While
 * the database is away, none is carried out.
 */
type Fate = 'unanswered' | 'away' | { readonly lateMs: number };
type Statement = 'settle' | 'release' | 'members' | 'where' | 'limits';

/** Two nodes on the same rows of Rooms, with nothing but Rooms. */
class Pair {
  readonly clock = new VirtualClock();
  readonly rows = new Map<string, RoomRow>();
  readonly fates = new Map<Statement, Fate>();
  /** The Rooms of a dead node, for the next that asks for them. */
  readonly left: RoomRow[] = [];
  /** The Sessions of both nodes. */
  readonly actors = new Map<string, SessionActor>();
  /** The members of every Room by their rows. */
  readonly members: { readonly sessionUuid: string; readonly nodeId: string }[] = [];
  /** The homes that were told to the other nodes. */
  readonly told: string[] = [];
  /** What a node answers to the question of another one. */
  replies: (request: SeatRequest, nodeId: string) => SeatReply | Promise<SeatReply | undefined> | undefined = () => undefined;
  /** Calls that are not here are live by their rows. */
  isLive = false;
  /** Makes an end of a pipe. */
  openPipe: (options: PipeOptions) => MediaPipe | undefined = () => undefined;
  /** What hears the notices of each room that was opened. */
  readonly roomNotices: ((notice: RoomNotice) => void)[] = [];
  /** Media workers that can open a Room. */
  hasWorker = true;
  /** The members that a Room may have. */
  mostMembers = 250;
  readonly #nodes = new Map<string, Parameters<RoomPeers['serve']>[0]>();
  readonly first = this.#node('first');
  readonly second = this.#node('second');

  async advance(ms: number): Promise<void> {
    await settle();
    await this.clock.advance(ms);
  }

  context(operationUuid = newUuid()) {
    return { appUuid: 'app', operationUuid, idempotencyKey: undefined, traceparent: '' };
  }

  async made(): Promise<string> {
    const made = await this.first.create({ voice_activity_events: false }, this.context());
    return isProblem(made) ? '' : String(made.body.room_id);
  }

  /** A Room of the first node, which is in use there. */
  async madeByMember(): Promise<string> {
    const roomId = await this.made();
    this.first.find(roomId)?.take('another');
    return roomId;
  }

  /** Writes into the row of the Room that the second node has taken it over; no node is told. */
  takenBySecond(roomId: string): RoomRow {
    const row = this.rows.get(roomId);
    if (row === undefined) throw new Error('not made');
    const taken = { ...row, nodeId: 'second', epoch: row.epoch + 1 };
    this.rows.set(roomId, taken);
    return taken;
  }

  /** The second node takes a Room over with a member of a third one, and the database does not tell its members yet. */
  async comingToSecond() {
    const roomId = await this.made();
    this.left.push(this.takenBySecond(roomId));
    this.members.push({ sessionUuid: 'far', nodeId: 'third' });
    this.fates.set('members', 'away');
    const recovered = this.second.recover(async () => 0);
    await this.advance(10);
    return { roomId, recovered };
  }

  /** Asks a node, as a third one does. */
  async ask(nodeId: 'first' | 'second', request: SeatRequest): Promise<SeatReply | undefined> {
    return await this.#nodes.get(nodeId)?.answer(request, 'third');
  }

  /** Tells a node that another one is the home of a Room. */
  tell(nodeId: 'first' | 'second', home: NewHome): void {
    this.#nodes.get(nodeId)?.homeChanged(home);
  }

  /** A Session of a node that has joined a Room. */
  memberOf(roomId: string, nodeId: string, commits = true): SessionActor {
    const about = { sessionUuid: 'member', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
    const joined = { roomId, room: 1, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
    const journal = { commit: async () => commits, wasStored: async () => false };
    const state = { ...inbound(about, this.clock.now()), phase: 'answered' as const, membership: joined };
    const actor = quietSession(state, journal, this.clock, nodeId, { onEnded: () => this.actors.delete('member') });
    this.actors.set('member', actor);
    return actor;
  }

  /** A call of the second node asks for the Room, which nobody is in. */
  async broughtToSecond(roomId: string): Promise<unknown> {
    const join = this.second.join(roomId, { session_uuid: 'nobody', muted: false }, this.context());
    const result = join.catch((error: unknown) => error);
    await this.advance(1_000);
    return result;
  }

  async #carriedOut<T>(kind: Statement, work: () => T): Promise<T> {
    const fate = this.fates.get(kind);
    if (fate !== 'away') this.fates.delete(kind);
    if (fate === undefined) return work();
    if (fate === 'unanswered') work();
    else if (fate !== 'away') this.clock.at(this.clock.now() + fate.lateMs, () => void work());
    throw new StoreUnavailable('no answer');
  }

  #change(roomId: string, from: string | undefined, to: string | undefined): RoomRow | undefined {
    const row = this.rows.get(roomId);
    if (row === undefined || row.nodeId !== (from ?? '')) return undefined;
    const next = { ...row, nodeId: to ?? '', epoch: row.epoch + 1 };
    this.rows.set(roomId, next);
    return next;
  }

  #homes(nodeId: string): NonNullable<RoomRegistryOptions['homes']> {
    const { rows } = this;
    return {
      home: async (_app, roomId) => {
        const row = rows.get(roomId);
        return row === undefined ? undefined : row.nodeId === '' ? null : row.nodeId;
      },
      settle: (roomId) => this.#carriedOut('settle', () => this.#change(roomId, undefined, nodeId)),
      release: (roomId, epoch) =>
        this.#carriedOut(
          'release',
          () => rows.get(roomId)?.epoch === epoch && this.#change(roomId, nodeId, undefined) !== undefined,
        ),
      make: async (row) => {
        rows.set(row.roomId, { ...row, nodeId, epoch: 0, volume: undefined, deleting: true, playback: '', deletedAt: undefined });
        return true;
      },
      unmake: async (roomId) => void rows.delete(roomId),
      list: async () => [],
      seize: async () => undefined,
      where: async (roomId) =>
        this.#carriedOut('where', () => {
          const row = rows.get(roomId);
          return row && { nodeId: row.nodeId === '' ? null : row.nodeId, epoch: row.epoch };
        }),
      members: () => this.#carriedOut('members', () => this.members),
    };
  }

  #node(nodeId: string): RoomRegistry {
    const { clock, rows } = this;
    return new RoomRegistry({
      clock,
      nodeId,
      log: silentLog,
      journal: {
        commit: async ({ room }) => {
          if (room !== undefined && rows.get(room.roomId)?.epoch !== room.epoch) return false;
          if (room?.deletedAt !== undefined) rows.delete(room.roomId);
          else if (room !== undefined) rows.set(room.roomId, room);
          return true;
        },
        wasStored: async () => false,
      },
      records: {
        adopt: async () => this.left.splice(0),
        mine: async () => [...rows.values()].filter((row) => row.nodeId === nodeId),
      },
      homes: this.#homes(nodeId),
      peers: {
        pipeHost: '',
        ask: async (home, request) => this.replies(request, home),
        reach: async () => 'answers',
        isDead: () => false,
        protocol: () => L16_PROTOCOL,
        tellHome: (home) => void this.told.push(home.nodeId),
        askRelease: async (home, roomId) => (await this.#nodes.get(home)?.giveUp(roomId)) === true,
        serve: (work) => void this.#nodes.set(nodeId, work),
      },
      media: {
        openPipe: async (options) => this.openPipe(options),
        openRoom: async (notify) => {
          this.roomNotices.push(notify);
          return this.hasWorker ? { ...quietRoom } : undefined;
        },
        openPlaylist: async (urls) => ({ urls, release() {} }),
      },
      recordings: noRecordings,
      limits: () => this.#carriedOut('limits', () => ({ maxRooms: 100, maxMembersPerRoom: this.mostMembers })),
      session: (sessionUuid) => this.actors.get(sessionUuid),
      isLive: async () => this.isLive,
    });
  }
}

test('A Room that was asked for too late is not made: it would count, and nobody would know of it.', async () => {
  const pair = new Pair();
  const context = { ...pair.context(), until: pair.clock.now() };
  expect(await pair.first.create({ voice_activity_events: false }, context)).toMatchObject({ status: 503 });
  await pair.advance(10);
  expect([pair.rows.size, pair.first.size]).toEqual([0, 0]);
});

test('A Room that another node has by its row is let go by the one that was not told.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  await pair.first.letGoTaken();
  expect(pair.first.size).toBe(1);
  pair.takenBySecond(roomId);
  await pair.first.letGoTaken();
  await pair.advance(10);
  expect(pair.first.size).toBe(0);
});

test('A Room that another node has taken is left for it, also when the database did not tell at first where it is.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'first');
  pair.first.find(roomId)?.take('member');
  pair.first.find(roomId)?.confirm('member', false);
  pair.takenBySecond(roomId);
  pair.fates.set('where', 'away');
  await pair.first.letGoTaken();
  await pair.advance(1_000);
  expect(await pair.first.order(roomId, { type: 'volume', volume: 50 }, pair.context())).toMatchObject({ status: 503 });
  pair.fates.clear();
  await pair.advance(2_000);
  expect([pair.first.size, pair.first.span?.has('member', roomId), actor.state.membership?.roomId]).toEqual([0, true, roomId]);
});

test('A Room that another node has taken and deleted, or given up, is over for the members that were not told.', async () => {
  for (const nodeId of [undefined, '']) {
    const pair = new Pair();
    const roomId = await pair.made();
    const actor = pair.memberOf(roomId, 'first');
    pair.first.find(roomId)?.take('member');
    pair.first.find(roomId)?.confirm('member', false);
    const row = pair.takenBySecond(roomId);
    if (nodeId === undefined) pair.rows.delete(roomId);
    else pair.rows.set(roomId, { ...row, nodeId });
    await pair.first.letGoTaken();
    await pair.advance(10);
    expect([pair.first.size, actor.state.membership]).toEqual([0, undefined]);
  }
});

test('A call that goes on at another node stays in its Room, also when the database does not tell at first where it is.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'second');
  pair.fates.set('where', 'away');
  const followed = pair.second.span?.follow(actor);
  await pair.advance(1_000);
  expect(actor.state.membership?.roomId).toBe(roomId);
  pair.fates.clear();
  await pair.advance(2_000);
  await followed;
  expect([pair.second.span?.has('member', roomId), actor.state.membership?.roomId]).toEqual([true, roomId]);
});

test('A dial whose seat was never answered keeps no place in a Room that comes to this node meanwhile.', async () => {
  const pair = new Pair();
  const roomId = await pair.madeByMember();
  const silence = Promise.withResolvers<undefined>();
  pair.replies = () => silence.promise;
  const seat = pair.second.reserve({ roomId, sessionUuid: 'dialled', appUuid: 'app', muted: false, isBot: false });
  await settle();
  await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
  silence.resolve(undefined);
  expect(await seat).toMatchObject({ status: 503 });
  expect(pair.second.find(roomId)?.places).toEqual([]);
});

test('A seat stays the one that was asked for where its home tells again where the Room is before it answers.', async () => {
  const pair = new Pair();
  const roomId = await pair.madeByMember();
  const answer = Promise.withResolvers<SeatReply>();
  let asked: SeatRequest | undefined;
  pair.replies = (request) => {
    asked = request;
    return answer.promise;
  };
  const seat = pair.second.reserve({ roomId, sessionUuid: 'dialled', appUuid: 'app', muted: false, isBot: false });
  await settle();
  pair.tell('second', { roomId, nodeId: 'first', epoch: 1 });
  answer.resolve({ type: 'taken', voiceActivityEvents: false, epoch: 1 });
  expect(await seat).toMatchObject({ roomId });
  if (asked?.type !== 'take') throw new Error('no seat was asked for');
  // A seat that its node does not know is given away.
  const { sessionUuid, link } = asked;
  const seats = [{ roomId, sessionUuid, link }];
  expect(await pair.ask('second', { type: 'check', seats })).toEqual({ type: 'absent', links: [] });
});

test('A member that comes to the node of its Room keeps its place there, and is asked for at its old node no more.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const about = { roomId, sessionUuid: 'member', link: 'l', appUuid: 'app', isBot: false, reserved: false };
  await pair.ask('first', { type: 'take', ...about });
  const actor = pair.memberOf(roomId, 'first');
  await pair.first.span?.follow(actor);
  await settle();
  actor.abandon();
  await pair.advance(2 * SEAT_CHECK_MS);
  expect([pair.first.joined(roomId), pair.clock.armed]).toEqual([['member'], 0]);
});

test('A call that was taken over is in its Room again, also while the database does not tell how many may be there.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'first');
  pair.fates.set('limits', 'away');
  await pair.first.span?.follow(actor);
  expect([pair.first.joined(roomId), actor.state.membership?.room]).toEqual([['member'], pair.first.find(roomId)?.media.number]);
});

test('A member that is muted or removed while its seat is looked for at its new node is still a member.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'second');
  pair.fates.set('where', 'away');
  const followed = pair.second.span?.follow(actor);
  const { membership } = actor.state;
  pair.second.onMembership('member', membership, membership && { ...membership, muted: true });
  await pair.advance(10);
  expect(actor.state.membership?.roomId).toBe(roomId);
  expect(await pair.second.leave(roomId, 'member', pair.context())).toMatchObject({ status: 202 });
  pair.fates.delete('where');
  await pair.advance(10_000);
  await followed;
  // It has left before it had a seat.
  expect(pair.second.span?.has('member', roomId)).toBe(false);
});

test('A member whose node has lost its seat keeps its place until the database tells whether it has left.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const about = { roomId, sessionUuid: 'far', link: 'l', appUuid: 'app', isBot: false, reserved: false };
  expect(await pair.ask('first', { type: 'take', ...about })).toMatchObject({ type: 'taken' });
  pair.replies = (request) => (request.type === 'check' ? { type: 'absent', links: ['l'] } : undefined);
  pair.fates.set('members', 'away');
  await pair.advance(2 * SEAT_CHECK_MS);
  expect(pair.first.find(roomId)?.places).toEqual(['far']);
  pair.fates.clear();
  await pair.advance(2 * SEAT_CHECK_MS);
  expect(pair.first.find(roomId)?.places).toEqual([]);
});

test('A Room that another node has by its row is let go once a member is not known at its node, though nobody told.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const about = { roomId, sessionUuid: 'far', link: 'l', appUuid: 'app', isBot: false, reserved: false };
  await pair.ask('first', { type: 'take', ...about });
  pair.members.push({ sessionUuid: 'far', nodeId: 'second' });
  pair.replies = (request) => (request.type === 'check' ? { type: 'absent', links: ['l'] } : undefined);
  pair.takenBySecond(roomId);
  await pair.advance(2 * SEAT_CHECK_MS);
  expect(pair.first.size).toBe(0);
});

test('Nobody gets into a Room at a node that has it no more by the row: its next home has counted the members.', async () => {
  const about = { sessionUuid: 'far', appUuid: 'app', isBot: false } as const;
  const ways = {
    join: (pair: Pair, roomId: string) => pair.first.join(roomId, { session_uuid: 'member', muted: false }, pair.context()),
    dial: (pair: Pair, roomId: string) => pair.first.reserve({ roomId, ...about, muted: false }),
    seat: (pair: Pair, roomId: string) => pair.ask('first', { type: 'take', roomId, ...about, link: 'l', reserved: false }),
  };
  for (const [name, way] of Object.entries(ways)) {
    const pair = new Pair();
    const roomId = await pair.made();
    pair.memberOf('another', 'first');
    pair.takenBySecond(roomId);
    expect(await way(pair, roomId)).toMatchObject(name === 'seat' ? { type: 'moved' } : { status: 503 });
    expect(pair.first.size).toBe(0);
    const deleted = await pair.made();
    pair.rows.delete(deleted);
    expect(await way(pair, deleted)).toMatchObject(name === 'seat' ? { type: 'moved' } : { status: 404 });
    expect(pair.first.size).toBe(0);
  }
});

/** A member of a Room that came from another home asks for its end of a pipe. */
const openOf = (roomId: string, sessionUuid: string): Extract<SeatRequest, { readonly type: 'open' }> => ({
  type: 'open',
  ...{ roomId, sessionUuid, link: sessionUuid, appUuid: 'app', isBot: false, muted: false, isJoined: true },
  codec: 'PCMU',
  end: { host: '127.0.0.1', port: 1, ssrc: 1 },
});
const quietPipe: MediaPipe = {
  ...{ end: { host: '127.0.0.1', port: 2, ssrc: 2 }, counters: async () => NO_COUNTERS, close: async () => NO_COUNTERS },
  ...{ join() {}, leave() {}, setMuted() {}, setVolume: () => true, coach() {}, connect() {} },
};

const quietAudio: LegAudio = {
  ...quietPipe,
  ...{ play() {}, stopPlayback() {}, controlPlayback() {}, pipeCodec: 'PCMU' },
  record: () => ({ mask() {}, unmask() {}, stop() {} }),
};

/** A Session of a node in the given Room, if any, whose commits the rows of the Rooms judge as the database does. */
function joiner(pair: Pair, at: 'first' | 'second', membership?: Membership) {
  const about = { sessionUuid: 'member', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
  const told: string[] = [];
  const { span } = pair[at];
  const journal: Journal = {
    async commit({ enters, events }) {
      if (enters !== undefined && pair.rows.get(enters.roomId)?.epoch !== enters.epoch) return 'room_moved';
      told.push(...events.map(({ name }) => name));
      return true;
    },
    wasStored: async () => false,
  };
  const state = { ...inbound(about, pair.clock.now()), phase: 'answered', hasLeg: true, membership } as const;
  const actor = quietSession(state, journal, pair.clock, at, {
    enteredAt: (...which) => span?.enteredAt(...which),
    onRoomMoved: (...which) => void span?.moved(...which),
    onMembership: (...changed) => pair[at].onMembership(...changed),
  });
  pair.actors.set('member', actor);
  return { actor, told };
}

test('A member that is heard in the mix of a node which has its Room no more goes on joining at the next home.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const room = pair.first.find(roomId);
  const { number = 0 } = room?.media ?? {};
  const joining = { roomId, room: number, phase: 'joining', muted: false, voiceActivityEvents: false, talking: false } as const;
  const { actor, told } = joiner(pair, 'first', joining);
  room?.take('member');
  pair.takenBySecond(roomId);
  actor.signal({ type: 'leg.media', notice: { type: 'room.joined', room: number } });
  await pair.advance(10);
  expect([told, actor.state.membership?.phase, pair.first.size]).toEqual([[], 'joining', 0]);
  expect(pair.first.span?.has('member', roomId)).toBe(true);
  // What the mix told that is gone by now says nothing of the next one.
  actor.signal({ type: 'leg.media', notice: { type: 'room.joined', room: number } });
  await pair.advance(10);
  expect([told, actor.state.membership?.phase]).toEqual([[], 'joining']);
});

test('A member that is heard through a pipe to a node which has its Room no more goes on joining at the next home.', async () => {
  const pair = new Pair();
  const roomId = await pair.madeByMember();
  const { actor, told } = joiner(pair, 'second');
  const notify: ((notice: MediaNotice) => void)[] = [];
  const asked: SeatRequest[] = [];
  pair.openPipe = (options) => {
    notify.push(options.notify);
    return quietPipe;
  };
  pair.replies = (request) => {
    asked.push(request);
    if (request.type === 'take') return { type: 'taken', voiceActivityEvents: false, epoch: pair.rows.get(roomId)?.epoch ?? 0 };
    return request.type === 'open'
      ? { type: 'open', end: quietPipe.end, epoch: pair.rows.get(roomId)?.epoch ?? 0 }
      : { type: 'ok' };
  };
  const hear = async (before = () => {}) => {
    pair.second.span?.join('member', roomId, quietAudio, { muted: false, volumes: {}, coach: undefined });
    await settle();
    before();
    notify.at(-1)?.({ type: 'room.joined', room: 1 });
    const link = asked.findLast(({ type }) => type === 'open');
    if (link?.type !== 'open') throw new Error('no pipe was opened');
    await pair.ask('second', { ...link, type: 'note', number: 1, note: { note: 'joined' } });
    await pair.advance(10);
  };
  await pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await hear(() => pair.rows.set(roomId, { ...pair.takenBySecond(roomId), nodeId: 'third' }));
  expect([told, actor.state.membership?.phase]).toEqual([[], 'joining']);
  await hear();
  expect([told, actor.state.membership?.phase]).toEqual([['room.member.joined'], 'joined']);
});

for (const lost of ['pipe', 'room'] as const)
  test(`A member comes into its Room through another pipe where the media worker of its ${lost} is lost while it joins.`, async () => {
    const pair = new Pair();
    const roomId = await pair.madeByMember();
    const { told } = joiner(pair, 'second');
    const notify: ((notice: MediaNotice) => void)[] = [];
    const ends: PromiseWithResolvers<SeatReply>[] = [];
    let link: SeatRequest | undefined;
    pair.openPipe = (options) => {
      notify.push(options.notify);
      return quietPipe;
    };
    pair.replies = (request) => {
      if (request.type === 'take') return { type: 'taken', voiceActivityEvents: false, epoch: 0 };
      if (request.type !== 'open') return { type: 'ok' };
      link = request;
      const end = Promise.withResolvers<SeatReply>();
      ends.push(end);
      return end.promise;
    };
    await pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
    pair.second.span?.join('member', roomId, quietAudio, { muted: false, volumes: {}, coach: undefined });
    await settle();
    if (lost === 'pipe') notify.at(-1)?.({ type: 'media.lost' });
    else pair.roomNotices.at(-1)?.({ type: 'room.lost' });
    await settle();
    expect(ends).toHaveLength(2);
    for (const end of ends) end.resolve({ type: 'open', end: quietPipe.end, epoch: 0 });
    await settle();
    // The pipe of the worker that is lost tells nothing more.
    notify.at(0)?.({ type: 'room.joined', room: 1 });
    if (link?.type !== 'open') throw new Error('no pipe was opened');
    await pair.ask('second', { ...link, type: 'note', number: 1, note: { note: 'joined' } });
    await pair.advance(10);
    expect(told).toEqual([]);
    notify.at(-1)?.({ type: 'room.joined', room: 1 });
    await pair.advance(10);
    expect(told).toEqual(['room.member.joined']);
  });

test('Whoever has a seat in a Room that comes to its node before the join is stored has its place there.', async () => {
  const elsewhere = {
    roomId: 'elsewhere',
    room: 0,
    phase: 'joined',
    muted: false,
    voiceActivityEvents: false,
    talking: false,
  } as const;
  for (const before of [undefined, elsewhere]) {
    const pair = new Pair();
    const roomId = await pair.madeByMember();
    pair.mostMembers = 1;
    const { actor } = joiner(pair, 'second', before);
    const stored = Promise.withResolvers<void>();
    void actor.handOver(() => stored.promise.then(() => 0));
    pair.replies = () => ({ type: 'taken', voiceActivityEvents: false, epoch: 0 });
    const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
    await pair.advance(10);
    await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
    const other = { roomId, sessionUuid: 'other', appUuid: 'app', isBot: false, muted: false } as const;
    expect(await pair.second.reserve(other)).toMatchObject({ status: 409 });
    stored.resolve();
    expect(await join).toMatchObject({ status: 202 });
    expect([pair.second.find(roomId)?.places, pair.second.find(roomId)?.reserved]).toEqual([['member'], []]);
  }
});

test('The place of a join that had its seat when its Room came to its node is given back where the join is refused.', async () => {
  const pair = new Pair();
  const roomId = await pair.madeByMember();
  const { actor } = joiner(pair, 'second');
  const refused = Promise.withResolvers<void>();
  void actor.handOver(() => refused.promise.then(() => 'given'));
  pair.replies = () => ({ type: 'taken', voiceActivityEvents: false, epoch: 0 });
  const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await pair.advance(10);
  await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
  expect(pair.second.find(roomId)?.places).toEqual(['member']);
  pair.actors.delete('member');
  refused.resolve();
  expect(await join).toMatchObject({ status: 503 });
  expect(pair.second.find(roomId)?.places).toEqual([]);
});

for (const most of [1, 2])
  test(`One whose Room moved twice while it joined, and comes here with a member and room for ${most}, is over no cap.`, async () => {
    const pair = new Pair();
    const roomId = await pair.madeByMember();
    pair.mostMembers = most;
    pair.replies = (request, nodeId) => {
      if (request.type !== 'take') return { type: 'ok' };
      return nodeId === 'first'
        ? { type: 'taken', voiceActivityEvents: false, epoch: 0 }
        : { type: 'refused', problem: problems.roomFull() };
    };
    const { actor, told } = joiner(pair, 'second');
    const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
    await pair.advance(10);
    expect(await join).toMatchObject({ status: 202 });
    // The node that had the Room in between gave the place away to another, and is gone.
    pair.tell('second', { roomId, nodeId: 'third', epoch: 1 });
    await pair.advance(10);
    pair.members.push({ sessionUuid: 'far', nodeId: 'third' });
    const row = { ...pair.takenBySecond(roomId), epoch: 2 };
    pair.rows.set(roomId, row);
    await pair.second.span?.becomeHome(row);
    await pair.advance(10);
    const isIn = most === 2;
    expect(pair.second.find(roomId)?.places).toEqual(isIn ? ['far', 'member'] : ['far']);
    expect([told, actor.state.membership?.phase]).toEqual(isIn ? [[], 'joining'] : [['room.member.left'], undefined]);
    expect(pair.second.span?.has('member', roomId)).toBe(false);
  });

test('One that is promised a place does not come over the cap that was heard last while the database does not tell it.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => quietPipe;
  pair.mostMembers = 2;
  await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
  pair.fates.set('limits', 'away');
  const asked = ['one', 'two', 'three'].map((sessionUuid) => pair.ask('second', openOf(roomId, sessionUuid)));
  expect(await Promise.all(asked)).toMatchObject([{ type: 'open' }, { type: 'open' }, { type: 'gone' }]);
});

test('A seat that its home tells of after the Room has come here is none: the join comes again, and finds its place here.', async () => {
  const pair = new Pair();
  const roomId = await pair.madeByMember();
  pair.mostMembers = 1;
  const { actor } = joiner(pair, 'second');
  const answer = Promise.withResolvers<SeatReply>();
  pair.replies = () => answer.promise;
  const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await settle();
  await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
  const other = { roomId, sessionUuid: 'other', appUuid: 'app', isBot: false, muted: false } as const;
  expect(await pair.second.reserve(other)).toMatchObject({ roomId });
  answer.resolve({ type: 'taken', voiceActivityEvents: false, epoch: 0 });
  await pair.advance(1_000);
  expect(await join).toMatchObject({ status: 409 });
  expect([pair.second.find(roomId)?.places, actor.state.membership]).toEqual([['other'], undefined]);
});

test('A member whose node loses its Room to another one before it has opened it is asked for at that one.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => quietPipe;
  const asked: string[] = [];
  pair.replies = ({ type }, nodeId) => {
    if (type === 'open') asked.push(nodeId);
    return { type: 'opening' };
  };
  await pair.second.span?.follow(pair.memberOf(roomId, 'second'));
  const row = pair.takenBySecond(roomId);
  pair.fates.set('members', 'away');
  const opened = pair.second.span?.becomeHome(row);
  await pair.advance(10);
  pair.rows.set(roomId, { ...row, nodeId: 'third', epoch: row.epoch + 1 });
  await pair.second.span?.verify(roomId);
  pair.second.span?.join('member', roomId, quietAudio, { muted: false, volumes: {}, coach: undefined });
  await settle();
  expect(asked).toEqual(['third']);
  pair.fates.clear();
  await pair.advance(2_000);
  await opened;
});

test('A member that leaves and joins again in one go keeps its place: nobody comes between.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const room = pair.first.find(roomId);
  const joined = { roomId, room: 1, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
  const { actor } = joiner(pair, 'first', joined);
  room?.take('member');
  const gate = Promise.withResolvers<void>();
  void actor.handOver(() => gate.promise.then(() => 0));
  const seen: unknown[] = [];
  const changed = pair.first.onMembership.bind(pair.first);
  pair.first.onMembership = (...change) => {
    changed(...change);
    seen.push([change[2]?.phase, room?.places]);
  };
  const leave = pair.first.leave(roomId, 'member', pair.context());
  const join = pair.first.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await pair.advance(10);
  gate.resolve();
  expect([await leave, await join]).toMatchObject([{ status: 202 }, { status: 202 }]);
  expect(seen).toEqual([
    [undefined, ['member']],
    ['joining', ['member']],
  ]);
  // One that is refused after the leave has no place any more.
  const again = Promise.withResolvers<void>();
  actor.signal({ type: 'leg.media', notice: { type: 'room.joined', room: 1 } });
  await settle();
  void actor.handOver(() => again.promise.then(() => 0));
  const left = pair.first.leave(roomId, 'member', pair.context());
  const late = pair.first.join(
    roomId,
    { session_uuid: 'member', muted: false },
    { ...pair.context(), until: pair.clock.now() + 5 },
  );
  await pair.advance(10);
  again.resolve();
  expect([await left, await late]).toMatchObject([{ status: 202 }, { status: 503 }]);
  await settle();
  expect(room?.places).toEqual([]);
});

test('A call that was dialled into a Room keeps its place there when its join is refused while it rings.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const { actor } = joiner(pair, 'first');
  const seat = { roomId, room: 1, muted: false, voiceActivityEvents: false };
  pair.actors.set(
    'member',
    quietSession(
      { ...actor.state, phase: 'ringing', seat },
      { commit: async () => true, wasStored: async () => false },
      pair.clock,
      'first',
    ),
  );
  pair.first.find(roomId)?.reserve('member');
  const refused = await pair.first.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await settle();
  expect([refused, pair.first.find(roomId)?.places]).toMatchObject([{ status: 409 }, ['member']]);
});

test('The end of a pipe that is out of its mix is closed: it holds ports.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  let left = () => {};
  let closed = 0;
  pair.openPipe = ({ notify }) => {
    left = () => notify({ type: 'room.left', room: 1 });
    return { ...quietPipe, close: async () => ({ ...NO_COUNTERS, closed: ++closed }) };
  };
  expect(await pair.ask('first', openOf(roomId, 'far'))).toMatchObject({ type: 'open' });
  left();
  expect(closed).toBe(1);
});

test('A node that ends leaves its Room to the next member where the first has left by then, or is only coming.', async () => {
  const pair = new Pair();
  const [roomId, other] = [await pair.made(), await pair.made()];
  pair.openPipe = () => ({ ...quietPipe });
  for (const sessionUuid of ['left', 'stays']) await pair.ask('first', openOf(roomId, sessionUuid));
  const coming = { roomId: other, sessionUuid: 'coming', link: 'coming', appUuid: 'app', isBot: false };
  await pair.ask('first', { type: 'take', ...coming, reserved: true });
  const told: string[] = [];
  pair.replies = (request) => {
    if (request.type !== 'note' || request.note.note !== 'inherit') return { type: 'ok' };
    told.push(request.sessionUuid);
    return request.sessionUuid === 'left' ? { type: 'gone' } : { type: 'ok' };
  };
  const bequeathed = pair.first.bequeath(ROOM_BEQUEST_MS);
  await settle();
  expect(told).toEqual(['left']);
  await pair.ask('first', { ...openOf(other, 'coming'), isJoined: false });
  await pair.advance(ROOM_BEQUEST_MS / 2);
  expect(told).toEqual(['left', 'stays', 'coming']);
  await pair.advance(ROOM_BEQUEST_MS);
  await bequeathed;
  // Nobody is told twice.
  expect([told, pair.first.size]).toEqual([['left', 'stays', 'coming'], 0]);
});

/** The note of the member `far` that it is muted. */
const muteOf = (roomId: string) =>
  ({ type: 'note', roomId, sessionUuid: 'far', link: 'far', number: 1, note: { note: 'muted', muted: true } }) as const;

test('A note that comes to a node after it has given its Room up is told that the Room has moved, as another question is.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => quietPipe;
  const { end } = openOf(roomId, 'far');
  expect(await pair.ask('first', openOf(roomId, 'far'))).toMatchObject({ type: 'open' });
  const mute = muteOf(roomId);
  expect(await pair.ask('first', mute)).toEqual({ type: 'ok' });
  const making = Promise.withResolvers<void>();
  pair.openPipe = () => {
    making.resolve();
    return quietPipe;
  };
  // Its end of a pipe is being made as the Room is taken.
  const opening = pair.ask('first', { ...openOf(roomId, 'far'), end: { ...end, ssrc: end.ssrc + 1 } });
  await making.promise;
  pair.tell('first', { roomId, nodeId: 'second', epoch: 1 });
  expect(await opening).toEqual({ type: 'moved' });
  expect(await pair.ask('first', { ...mute, number: 2 })).toEqual({ type: 'moved' });
});

test('A note that comes as a node is taking its Room back, and has not read the members yet, waits for them.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => ({ ...quietPipe });
  await pair.ask('first', openOf(roomId, 'far'));
  const mute = muteOf(roomId);
  expect(await pair.ask('first', mute)).toEqual({ type: 'ok' });
  pair.members.push({ sessionUuid: 'far', nodeId: 'third' });
  // The second node took it, and was lost before anybody heard of that.
  const row = { ...pair.takenBySecond(roomId), nodeId: 'first', epoch: 2 };
  pair.rows.set(roomId, row);
  pair.fates.set('members', 'away');
  const taken = pair.first.span?.becomeHome(row);
  await pair.advance(10);
  expect(await pair.ask('first', { ...mute, number: 2 })).toEqual({ type: 'opening' });
  // A member that has asked for its seat again meanwhile is heard.
  await pair.ask('first', { ...openOf(roomId, 'far'), link: 'again' });
  expect(await pair.ask('first', { ...mute, link: 'again' })).toEqual({ type: 'ok' });
  pair.fates.delete('members');
  await pair.advance(5_000);
  await taken;
  expect(pair.told.at(-1)).toContain('first');
});

test('A member that talks as its pipe is made anew is told as silent: its next word is heard by the new end.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const notices: ((notice: MediaNotice) => void)[] = [];
  pair.openPipe = ({ notify }) => {
    notices.push(notify);
    return { ...quietPipe };
  };
  const told: boolean[] = [];
  pair.replies = (request) => {
    if (request.type === 'note' && request.note.note === 'talking') told.push(request.note.talking);
    return { type: 'ok' };
  };
  const open = openOf(roomId, 'far');
  await pair.ask('first', open);
  notices[0]?.({ type: 'voice', talking: true });
  for (const ssrc of [2, 3]) await pair.ask('first', { ...open, end: { ...open.end, ssrc } });
  // The end of before falls silent as it leaves, and nobody listens to it any more.
  notices[0]?.({ type: 'voice', talking: false });
  await settle();
  expect(told).toEqual([true, false]);
  notices[2]?.({ type: 'voice', talking: true });
  await settle();
  expect(told).toEqual([true, false, true]);
});

test.each(['talks', 'hears what bots hear'])(
  'A member of another node that %s while NATS is away keeps its seat',
  async (what) => {
    const pair = new Pair();
    const roomId = await pair.made();
    let hear = (_notice: MediaNotice) => {};
    let closed = 0;
    pair.openPipe = ({ notify }) => {
      hear = notify;
      return { ...quietPipe, close: async () => ({ ...NO_COUNTERS, closed: ++closed }) };
    };
    pair.members.push({ sessionUuid: 'far', nodeId: 'third' });
    await pair.ask('first', { ...openOf(roomId, 'far'), isBot: true });
    const told: SeatNote[] = [];
    let isAway = true;
    pair.replies = (request) => {
      if (isAway || request.type !== 'note') return undefined;
      told.push(request.note);
      return { type: 'ok' };
    };
    for (let times = 0; times < SEAT_NOTES_MAX; times++) {
      if (what === 'talks') for (const talking of [true, false]) hear({ type: 'voice', talking });
      else pair.first.span?.tellBots(roomId, 'other', { type: 'speech_started', session_uuid: 'other' });
    }
    if (what === 'talks') hear({ type: 'voice', talking: true });
    hear({ type: 'room.joined', room: 1 });
    await pair.advance(1_000);
    expect(closed).toBe(0);
    isAway = false;
    while (!told.some(({ note }) => note === 'joined')) await pair.advance(100);
    if (what === 'talks') expect(told.findLast(({ note }) => note === 'talking')).toEqual({ note: 'talking', talking: true });
    else expect(told.at(0)).toMatchObject({ note: 'news' });
  },
);

test('A coach of another node is heard by nobody once its member has left, also when its pipe is made anew.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const heardBy: string[] = [];
  const name = ({ coach }: JoinOptions) => (coach === undefined ? 'all' : coach.of === undefined ? 'nobody' : 'its member');
  pair.openPipe = () => ({ ...quietPipe, join: (_room, terms) => heardBy.push(name(terms)) });
  const coach = { ...openOf(roomId, 'coach'), coach: 'agent' };
  await pair.ask('first', openOf(roomId, 'agent'));
  await pair.ask('first', coach);
  const left = { type: 'note', roomId, sessionUuid: 'agent', link: 'agent', number: 1, note: { note: 'left' } } as const;
  expect(await pair.ask('first', left)).toEqual({ type: 'ok' });
  await pair.ask('first', { ...openOf(roomId, 'agent'), link: 'again' });
  await pair.ask('first', { ...coach, end: { ...coach.end, ssrc: 2 } });
  expect(heardBy).toEqual(['all', 'its member', 'all', 'nobody']);
});

test('A coach that comes back as a member is none, also where its node has not told yet that it had left.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const notices: ((notice: MediaNotice) => void)[] = [];
  let whispers = 0;
  pair.openPipe = ({ notify }) => {
    notices.push(notify);
    return { ...quietPipe, coach: () => whispers++ };
  };
  await pair.ask('first', openOf(roomId, 'agent'));
  await pair.ask('first', { ...openOf(roomId, 'supervisor'), coach: 'agent' });
  notices[0]?.({ type: 'room.joined', room: 1 });
  expect(whispers).toBe(1);
  const seat = { roomId, sessionUuid: 'supervisor', link: 'again', appUuid: 'app', isBot: false, reserved: false } as const;
  expect(await pair.ask('first', { type: 'take', ...seat })).toMatchObject({ type: 'taken' });
  await pair.ask('first', { ...openOf(roomId, 'supervisor'), link: 'again', isJoined: false });
  notices[0]?.({ type: 'room.joined', room: 1 });
  expect(whispers).toBe(1);
});

test('A node that has not heard that its call goes on at the home of the Room takes no place away from it there.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => quietPipe;
  await pair.first.span?.follow(pair.memberOf(roomId, 'first'));
  const open = openOf(roomId, 'member');
  expect(await pair.ask('first', open)).toMatchObject({ type: 'open' });
  const left = { type: 'note', roomId, sessionUuid: 'member', link: 'member', number: 1, note: { note: 'left' } } as const;
  expect(await pair.ask('first', left)).toEqual({ type: 'ok' });
  expect(pair.first.joined(roomId)).toEqual(['member']);
});

test('Calls that were dialled into a Room, and are answered after it came to another home, fill it up and no more.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.openPipe = () => quietPipe;
  pair.mostMembers = 2;
  pair.first.find(roomId)?.take('member');
  const asked = ['one', 'two'].map((sessionUuid) => pair.ask('first', openOf(roomId, sessionUuid)));
  expect(await Promise.all(asked)).toMatchObject([{ type: 'open' }, { type: 'gone' }]);
  // Whoever has a place there is let in again, and nobody is kept out while the database does not tell how many may be.
  expect(await pair.ask('first', openOf(roomId, 'member'))).toMatchObject({ type: 'open' });
  pair.fates.set('limits', 'away');
  expect(await pair.ask('first', openOf(roomId, 'two'))).toMatchObject({ type: 'open' });
});

test('A Room that was given up has left its node, also when the database did not answer.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.fates.set('release', 'unanswered');
  const given = pair.first.giveUp(roomId);
  await pair.advance(1_000);
  expect(await given).toBe(false);
  expect([pair.rows.get(roomId)?.nodeId, pair.first.size]).toEqual(['', 0]);
});

test('A Room whose release comes to the database late is given up once, and its next home keeps it.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.fates.set('release', { lateMs: STATEMENT_MAX_MS });
  await pair.broughtToSecond(roomId);
  expect([pair.rows.get(roomId)?.nodeId, pair.first.size, pair.second.size]).toEqual(['second', 0, 1]);
  await pair.advance(2 * STATEMENT_MAX_MS);
  expect([pair.rows.get(roomId)?.nodeId, pair.first.size, pair.second.size]).toEqual(['second', 0, 1]);
});

test('A Room that is being given up takes no orders: they would be lost with it.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.fates.set('release', { lateMs: 0 });
  const given = pair.first.giveUp(roomId);
  const order = await pair.first.order(roomId, { type: 'volume', volume: 50 }, pair.context());
  expect(order).toMatchObject({ status: 503, message: 'The Room is moving to another node.' });
  await pair.advance(1_000);
  await given;
});

test('Orders that find their Room at another node are to come again; those of a Room that is gone are 404.', async () => {
  const pair = new Pair();
  const orders = (roomId: string) =>
    Promise.all([50, 60].map((volume) => pair.first.order(roomId, { type: 'volume', volume }, pair.context())));
  const taken = await pair.made();
  pair.takenBySecond(taken);
  for (const each of await orders(taken)) expect(each).toMatchObject({ status: 503 });
  const gone = await pair.made();
  pair.rows.delete(gone);
  for (const each of await orders(gone)) expect(each).toMatchObject({ status: 404 });
});

test('A join or leave that finds its call at another node is to come again; one of a call that is over is 404.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const join = { session_uuid: 'member', muted: false };
  for (const isLive of [true, false]) {
    pair.isLive = isLive;
    // The call is found gone at once, or by the commit of the command.
    for (const isGone of [true, false])
      for (const command of ['join', 'leave'] as const) {
        if (!isGone) pair.memberOf(roomId, 'first', false);
        if (!isGone) pair.first.find(roomId)?.take('member');
        const context = pair.context();
        const answer = command === 'join' ? pair.first.join(roomId, join, context) : pair.first.leave(roomId, 'member', context);
        expect(await answer).toMatchObject(isLive ? { status: 503, retryAfterSec: 1 } : { status: 404 });
      }
  }
});

test('A place that waits for a call which is moving is given back, unless the call comes to it from its next node.', async () => {
  for (const comes of [true, false]) {
    const pair = new Pair();
    const roomId = await pair.made();
    const about = { sessionUuid: 'member', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
    const answered = { ...inbound(about, pair.clock.now()), phase: 'answered', hasLeg: true } as const;
    const journal = { commit: async () => true, wasStored: async () => false };
    const moving = quietSession(answered, journal, pair.clock, 'first', { onEnded: () => pair.actors.delete('member') });
    pair.actors.set('member', moving);
    const given = Promise.withResolvers<'given'>();
    void moving.handOver(() => given.promise);
    const join = pair.first.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
    await settle();
    moving.dropTaken();
    const seat = { roomId, sessionUuid: 'member', link: 'l', appUuid: 'app', isBot: false, reserved: false };
    if (comes) expect(await pair.ask('first', { type: 'take', ...seat })).toMatchObject({ type: 'taken' });
    given.resolve('given');
    expect(await join).toMatchObject({ status: 404 });
    await settle();
    expect(pair.first.find(roomId)?.places).toEqual(comes ? ['member'] : []);
  }
});

test('A Room of which something was asked that is not done yet is not given up.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const order = pair.first.order(roomId, { type: 'volume', volume: 50 }, pair.context());
  expect(await pair.first.giveUp(roomId)).toBe(false);
  expect(await order).toMatchObject({ status: 202 });
});

for (const fate of ['unanswered', { lateMs: STATEMENT_MAX_MS - 1 }] as const)
  test(`A Room that this node took without an answer of the database (${JSON.stringify(fate)}) is opened by it.`, async () => {
    const pair = new Pair();
    const roomId = await pair.made();
    pair.fates.set('settle', fate);
    expect(await pair.broughtToSecond(roomId)).toBeInstanceOf(StoreUnavailable);
    await pair.advance(2 * STATEMENT_MAX_MS);
    expect([pair.rows.get(roomId)?.nodeId, pair.second.size]).toEqual(['second', 1]);
    expect(await pair.second.order(roomId, { type: 'delete' }, pair.context())).toMatchObject({ status: 202 });
    await pair.advance(10);
    expect([pair.rows.size, pair.second.size, pair.clock.armed]).toEqual([0, 0, 0]);
  });

test('A Room that no media worker could open is opened when one is back.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.hasWorker = false;
  await pair.broughtToSecond(roomId);
  expect(pair.second.size).toBe(0);
  // It is not unknown meanwhile.
  expect(await pair.second.order(roomId, { type: 'delete' }, pair.context())).toMatchObject({ status: 503 });
  pair.hasWorker = true;
  await pair.advance(2_000);
  expect([pair.rows.get(roomId)?.nodeId, pair.second.size]).toEqual(['second', 1]);
});

test('A Room that was taken over keeps the places of its members, also when they could not be read at first.', async () => {
  const pair = new Pair();
  const { roomId, recovered } = await pair.comingToSecond();
  const moving = { status: 503, message: 'The Room is moving to another node.' };
  const early = pair.second.order(roomId, { type: 'volume', volume: 50 }, pair.context());
  const read = pair.second.opening(roomId);
  await pair.advance(1_500);
  expect([await early, await read]).toMatchObject([moving, moving]);
  pair.fates.clear();
  await pair.advance(2_000);
  await recovered;
  expect([pair.second.find(roomId)?.joined, pair.told]).toEqual([['far'], ['second']]);
  expect([pair.second.members(roomId), pair.second.opening(roomId)]).toEqual([[{ uuid: 'far', muted: false }], undefined]);
  expect(await pair.second.order(roomId, { type: 'volume', volume: 50 }, pair.context())).toMatchObject({ status: 202 });
});

test('A home tells where the Room is until its members have come: their nodes may not have heard it, and would mix it on.', async () => {
  const pair = new Pair();
  pair.openPipe = () => quietPipe;
  const { roomId, recovered } = await pair.comingToSecond();
  pair.fates.clear();
  await pair.advance(2_000);
  await recovered;
  pair.told.length = 0;
  await pair.advance(SEAT_CHECK_MS);
  await pair.advance(SEAT_CHECK_MS);
  expect(pair.told).toEqual(['second', 'second']);
  expect(await pair.ask('second', openOf(roomId, 'far'))).toMatchObject({ type: 'open' });
  pair.replies = () => ({ type: 'absent', links: [] });
  await pair.advance(SEAT_CHECK_MS);
  await pair.advance(SEAT_CHECK_MS);
  expect(pair.told).toEqual(['second', 'second']);
});

test('Nobody takes a seat in a Room that has come to a node before its members are known there: they have places first.', async () => {
  const pair = new Pair();
  const { roomId, recovered } = await pair.comingToSecond();
  const late = { roomId, sessionUuid: 'member', appUuid: 'app', isBot: false } as const;
  const moving = { status: 503, message: 'The Room is moving to another node.' };
  expect(await pair.ask('second', { type: 'take', ...late, link: 'link', reserved: false })).toEqual({ type: 'opening' });
  expect(await pair.second.reserve({ ...late, muted: false })).toMatchObject(moving);
  pair.memberOf('another', 'second');
  const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  await pair.advance(100);
  expect(pair.second.find(roomId)?.places).toEqual([]);
  pair.fates.clear();
  await pair.advance(2_000);
  await recovered;
  expect([await join, pair.second.find(roomId)?.places]).toMatchObject([{ status: 202 }, ['far', 'member']]);
});

test('A Room that another node took unheard, and left by its death, is opened anew where it was before, with its members.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const before = pair.first.find(roomId);
  const actor = pair.memberOf(roomId, 'first');
  await pair.first.span?.follow(actor);
  const row = pair.takenBySecond(roomId);
  const back = { ...row, nodeId: 'first', epoch: row.epoch + 1 };
  pair.rows.set(roomId, back);
  pair.left.push(back);
  pair.members.push({ sessionUuid: 'member', nodeId: 'first' });
  await pair.first.recover(async () => 0);
  await pair.advance(10);
  const room = pair.first.find(roomId);
  expect([room === before, room?.epoch, room?.places]).toEqual([false, back.epoch, ['member']]);
  expect(pair.first.span?.has('member', roomId)).toBe(false);
  expect(await pair.first.order(roomId, { type: 'volume', volume: 50 }, pair.context())).toMatchObject({ status: 202 });
});

test('A Room that comes back to a node, which is reading the members of the time before, is opened as what it is now.', async () => {
  for (const isTold of [true, false]) {
    const pair = new Pair();
    const { roomId, recovered } = await pair.comingToSecond();
    const row = pair.takenBySecond(roomId);
    if (isTold) pair.tell('second', { roomId, nodeId: 'third', epoch: row.epoch });
    const back = pair.takenBySecond(roomId);
    pair.fates.clear();
    const opened = pair.second.span?.becomeHome(back);
    await pair.advance(2_000);
    await Promise.all([recovered, opened]);
    expect([pair.second.find(roomId)?.epoch, pair.second.find(roomId)?.places]).toEqual([back.epoch, ['far']]);
    expect(pair.second.opening(roomId)).toBeUndefined();
  }
});

test('A Room that another node takes while this one opens it is asked for again there: it is neither empty nor unknown.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const row = pair.takenBySecond(roomId);
  pair.left.push(row);
  pair.fates.set('members', 'away');
  const recovered = pair.second.recover(async () => 0);
  await pair.advance(10);
  const read = pair.second.opening(roomId);
  pair.rows.set(roomId, { ...row, nodeId: 'third', epoch: row.epoch + 1 });
  pair.fates.clear();
  await pair.advance(1_500);
  await recovered;
  expect([pair.second.size, pair.second.opening(roomId)]).toEqual([0, undefined]);
  expect(await read).toMatchObject({ status: 503, message: 'The Room is moving to another node.' });
});

test('A Room that is still to be deleted as its node is lost goes to no call that asks for it meanwhile.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  pair.left.push({ ...pair.takenBySecond(roomId), deleting: true });
  const calls = Promise.withResolvers<number>();
  const recovered = pair.second.recover(() => calls.promise);
  await pair.advance(10);
  expect(await pair.second.giveUp(roomId)).toBe(false);
  pair.actors.set('member', pair.memberOf('', 'second'));
  const join = pair.second.join(roomId, { session_uuid: 'member', muted: false }, pair.context());
  expect(await join).toMatchObject({ status: 409, message: 'Room is being deleted' });
  calls.resolve(0);
  await recovered;
  await pair.advance(10);
  expect(pair.rows.has(roomId)).toBe(false);
});

test('A Room without a home that was to be deleted is deleted by the node that it comes to.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  expect(await pair.first.giveUp(roomId)).toBe(true);
  const row = pair.rows.get(roomId);
  if (row === undefined) throw new Error('no row');
  pair.rows.set(roomId, { ...row, deleting: true });
  await pair.broughtToSecond(roomId);
  expect(pair.rows.has(roomId)).toBe(false);
});

test('A Room that was taken over after the call of a member is deleted only when that member has left.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const row = pair.takenBySecond(roomId);
  pair.left.push(row);
  const about = { sessionUuid: 'late', appUuid: row.appUuid, callerId: '', did: '', orphanTimeoutMs: 1_000 };
  const joined = { roomId, room: 0, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false } as const;
  const journal = { commit: async () => true, wasStored: async () => false };
  const actor = quietSession({ ...inbound(about, pair.clock.now()), membership: joined }, journal, pair.clock, 'second');
  pair.actors.set('late', actor);
  pair.members.push({ sessionUuid: 'late', nodeId: 'second' });
  await pair.second.recover(async () => 0);
  await pair.advance(10);
  expect(await pair.second.order(roomId, { type: 'delete' }, pair.context())).toMatchObject({ status: 202 });
  await pair.advance(1_000);
  expect(pair.rows.has(roomId)).toBe(true);
  pair.second.onMembership('late', joined, undefined);
  await pair.advance(10);
  expect(pair.rows.has(roomId)).toBe(false);
});

test('A call that comes to this node is in its Room here, and in none where that is full, being deleted or gone.', async () => {
  const member = (roomId: string): Membership => ({
    ...{ roomId, room: 7, phase: 'joined', muted: false, voiceActivityEvents: false, talking: false },
  });
  const come = async (meanwhile: (pair: Pair, roomId: string) => unknown) => {
    const pair = new Pair();
    const roomId = await pair.madeByMember();
    await meanwhile(pair, roomId);
    const { actor } = joiner(pair, 'first', member(roomId));
    await pair.first.span?.follow(actor);
    await pair.advance(10);
    return { in: actor.state.membership?.room, joined: pair.first.joined(roomId), places: pair.first.find(roomId)?.places };
  };
  const here = await come((pair) => {
    pair.mostMembers = 2;
  });
  expect(here).toEqual({ in: quietRoom.number, joined: ['member'], places: ['another', 'member'] });
  // It had its place all the time.
  const kept = await come((pair, roomId) => {
    pair.mostMembers = 1;
    pair.first.find(roomId)?.giveBack('another');
    pair.first.find(roomId)?.take('member');
  });
  expect(kept).toEqual({ in: quietRoom.number, joined: ['member'], places: ['member'] });
  const full = await come((pair) => {
    pair.mostMembers = 1;
  });
  expect(full).toEqual({ in: undefined, joined: [], places: ['another'] });
  const deleted = await come((pair, roomId) => pair.first.order(roomId, { type: 'delete' }, pair.context()));
  expect(deleted).toEqual({ in: undefined, joined: [], places: ['another'] });
  const gone = await come(async (pair, roomId) => {
    pair.rows.delete(roomId);
    await pair.first.span?.verify(roomId);
  });
  expect(gone).toEqual({ in: undefined, joined: [], places: undefined });
});

test('A member that goes on at another node keeps its place at the home of its Room, and its pipe ends without a word.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const here = pair.memberOf(roomId, 'first');
  await pair.first.span?.follow(here);
  pair.first.span?.handedOver(here.state, 'third');
  pair.first.span?.handedOver({ sessionUuid: 'nobody', membership: here.state.membership }, 'third');
  expect([pair.first.joined(roomId), pair.first.find(roomId)?.places]).toEqual([['member'], ['member']]);
  pair.openPipe = () => quietPipe;
  pair.actors.clear();
  expect(await pair.ask('first', openOf(roomId, 'member'))).toMatchObject({ type: 'open' });
  const asked: SeatRequest[] = [];
  pair.replies = (request) => {
    asked.push(request);
    return { type: 'ok' };
  };
  const there = pair.memberOf(roomId, 'second');
  await pair.second.span?.follow(there);
  expect(pair.second.span?.has('member', roomId)).toBe(true);
  pair.second.span?.handedOver(there.state, 'third');
  await pair.advance(1_000);
  expect([pair.second.span?.has('member', roomId), asked]).toEqual([false, []]);
});

test('A seat that the home may have given without an answer is given back there, and one that it refused is not.', async () => {
  for (const [reply, told] of [
    [undefined, ['left']],
    [{ type: 'refused', problem: problems.roomFull() }, []],
    [{ type: 'moved' }, []],
  ] as const) {
    const pair = new Pair();
    const roomId = await pair.madeByMember();
    const notes: string[] = [];
    pair.replies = (request) => {
      if (request.type === 'note') notes.push(request.note.note);
      return request.type === 'take' ? reply : { type: 'ok' };
    };
    const seat = await pair.second.reserve({ roomId, sessionUuid: 'dialled', appUuid: 'app', muted: false, isBot: false });
    await pair.advance(1_000);
    expect([isProblem(seat), notes, pair.second.span?.has('dialled', roomId)]).toEqual([true, [...told], false]);
  }
});

test('A member of the node that its Room comes to keeps its place, also where the Room may have no more.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'second');
  await pair.second.span?.follow(actor);
  pair.members.push({ sessionUuid: 'member', nodeId: 'second' });
  pair.mostMembers = 1;
  await pair.second.span?.becomeHome(pair.takenBySecond(roomId));
  await pair.advance(10);
  expect([pair.second.joined(roomId), actor.state.membership?.room]).toEqual([['member'], quietRoom.number]);
  expect(pair.second.span?.has('member', roomId)).toBe(false);
});

test('A node that has its Room again by the row tells no member that it is closed, and hears no word of an older home.', async () => {
  const pair = new Pair();
  const roomId = await pair.made();
  const actor = pair.memberOf(roomId, 'first');
  await pair.first.span?.follow(actor);
  const before = pair.first.find(roomId);
  pair.tell('first', { roomId, nodeId: 'third', epoch: 0 });
  expect(pair.first.find(roomId)).toBe(before);
  pair.rows.set(roomId, { ...pair.takenBySecond(roomId), nodeId: 'first' });
  await pair.first.span?.verify(roomId);
  await pair.advance(10);
  // Whoever took the Room back is about to open it anew.
  expect([pair.first.find(roomId), actor.state.membership?.roomId]).toEqual([undefined, roomId]);
});
