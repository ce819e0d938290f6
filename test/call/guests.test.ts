/** The members of a Room whose Sessions are on other nodes, as the Room's home has them. */
import { expect, test } from 'bun:test';
import { L16_PROTOCOL, type SeatNote, type SeatReply, type SeatRequest } from '../../src/call/ports/room-peers.ts';
import { Guests } from '../../src/call/room/guests.ts';
import { RoomActor } from '../../src/call/room/room-actor.ts';
import { SEAT_CHECK_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { newRoom } from '../../src/machine/room/room.ts';
import { type JoinOptions, type MediaNotice, NO_COUNTERS, type RoomMember } from '../../src/media/engine.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { audio, END, pipe } from './quiet-pipe.ts';
import { quietRoom } from './quiet-room.ts';

/** An end of a pipe at the home, with what was done to it. */
interface End {
  readonly notify: (notice: MediaNotice) => void;
  readonly done: (string | JoinOptions)[];
  isClosed: boolean;
}

/** A Room at its home, with nobody in it yet. */
function home() {
  const clock = new VirtualClock();
  const ends: End[] = [];
  /** What the home asked of other nodes, and what they answer. */
  const asked: { readonly nodeId: string; readonly request: SeatRequest }[] = [];
  const answers = { to: (_request: SeatRequest): SeatReply => ({ type: 'ok' }) };
  /** The members by their rows, and dead nodes. */
  const rows: { sessionUuid: string; nodeId: string }[] = [];
  const dead = new Set<string>();
  const local = new Map<string, RoomMember>();
  const room = new RoomActor(
    newRoom({ roomId: 'room', appUuid: 'app', voiceActivityEvents: true, holdMusicUrl: '' }, 0),
    quietRoom,
    {
      ...{ clock, log: silentLog, nodeId: 'home', recordings: noRecordings },
      journal: { commit: async () => true, wasStored: async () => false },
      media: { openPlaylist: async (urls) => ({ urls, release() {} }) },
      ...{ dismiss() {}, onDeleted() {}, onNeverBegan() {}, onTaken() {} },
    },
  );
  const guests = new Guests({
    ...{ nodeId: 'home', clock },
    peers: {
      pipeHost: '127.0.0.1',
      ask: async (nodeId, request) => {
        asked.push({ nodeId, request });
        return answers.to(request);
      },
      ...{ reach: async () => 'answers', isDead: (nodeId) => dead.has(nodeId), protocol: () => L16_PROTOCOL },
      ...{ tellHome() {}, askRelease: async () => false, serve() {} },
    },
    media: {
      openPipe: async ({ notify }) => {
        const end: End = { notify, done: [], isClosed: false };
        ends.push(end);
        return {
          ...pipe,
          end: { ...END, port: 20_000 + ends.length },
          join: (_room, terms) => end.done.push(terms),
          setMuted: (muted) => end.done.push(`muted ${muted}`),
          setVolume: (direction, percent) => end.done.push(`${direction} ${percent}`) > 0,
          connect: ({ port }, codec) => end.done.push(`${codec} to ${port}`),
          close: async () => {
            end.isClosed = true;
            return NO_COUNTERS;
          },
        };
      },
    },
    membersByRow: async () => rows,
    isHere: () => false,
    audioOf: (sessionUuid) => local.get(sessionUuid),
    onNews() {},
  });
  const seat = (sessionUuid: string) => ({
    roomId: 'room',
    sessionUuid,
    link: `link of ${sessionUuid}`,
    appUuid: 'app',
    isBot: false,
  });
  const take = (sessionUuid: string, more: { isBot?: boolean; from?: string; most?: number } = {}) => {
    const { isBot = false, from = 'far', most = 250 } = more;
    return guests.take(room, { type: 'take', ...seat(sessionUuid), isBot, reserved: false }, from, most);
  };
  const open = (sessionUuid: string, more: Partial<Extract<SeatRequest, { type: 'open' }>> = {}, most = 250) => {
    const request = {
      type: 'open',
      ...seat(sessionUuid),
      muted: false,
      codec: 'PCMU',
      end: END,
      isJoined: false,
      ...more,
    } as const;
    return guests.open(room, request, 'far', most);
  };
  let notes = 0;
  const note = (sessionUuid: string, said: SeatNote) => guests.note(room, seat(sessionUuid), ++notes, said);
  /** The notes that were sent to a member. */
  const told = (sessionUuid: string) =>
    asked.flatMap(({ request }) => (request.type === 'note' && request.sessionUuid === sessionUuid ? [request.note.note] : []));
  const checked = () =>
    asked.flatMap(({ nodeId, request: { type, ...rest } }) =>
      type === 'check' && 'seats' in rest ? [[nodeId, ...rest.seats.map(({ sessionUuid }) => sessionUuid)]] : [],
    );
  return { clock, room, guests, ends, answers, rows, dead, local, take, open, note, told, checked };
}

test('A member of another node has the mute and the volumes that its node tells, as its pipe is made and later.', async () => {
  const { room, guests, ends, take, open, note } = home();
  expect(take('far')).toEqual({ type: 'taken', voiceActivityEvents: true, epoch: 0 });
  expect(await open('far', { muted: true, volumes: { from_member: 30, to_member: 40 } })).toMatchObject({
    ...{ type: 'open', epoch: 0 },
    end: { port: 20_001 },
  });
  const terms = { muted: true, fromVolumePercent: 30, toVolumePercent: 40 };
  expect(ends[0]?.done.splice(0)).toEqual([`PCMU to ${END.port}`, terms]);
  expect(guests.find(room, 'far')?.muted).toBe(true);
  expect(note('far', { note: 'muted', muted: false })).toEqual({ type: 'ok' });
  ends[0]?.notify({ type: 'voice', talking: true });
  expect(guests.find(room, 'far')).toMatchObject({ muted: false, talking: true });
  note('far', { note: 'volume', to_member: 50 });
  note('far', { note: 'volume', from_member: 60 });
  note('far', { note: 'muted', muted: true });
  expect(ends[0]?.done).toEqual(['muted false', 'to_member 50', 'from_member 60', 'muted true']);
  expect(guests.find(room, 'far')).toMatchObject({ muted: true, talking: false });
});

test('A pipe is made for whoever has the seat, also in a full Room, and for nobody without one.', async () => {
  const { room, take, open } = home();
  expect(await open('far')).toEqual({ type: 'gone' });
  expect([take('far', { most: 1 }), take('more', { most: 1 })]).toMatchObject([{ type: 'taken' }, { type: 'refused' }]);
  expect(await open('far', {}, 1)).toMatchObject({ type: 'open' });
  expect(await open('far', { end: { ...END, ssrc: 2 } }, 1)).toMatchObject({ type: 'open' });
  expect(await open('far', { link: 'another' })).toEqual({ type: 'gone' });
  expect(await open('far', { appUuid: 'another' })).toEqual({ type: 'gone' });
  expect(room.places).toEqual(['far']);
});

test('One that comes to the Room has joined once it is heard; one that the Room came with is a member at once.', async () => {
  const { room, ends, take, open } = home();
  take('comes');
  await open('comes');
  await open('came', { isJoined: true });
  expect([room.joined, room.places]).toEqual([['came'], ['comes', 'came']]);
  ends[0]?.notify({ type: 'room.joined', room: 1 });
  expect(room.joined).toEqual(['comes', 'came']);
});

test('A member leaves by a note of its seat of now, which ends its pipe, and not by one of the seat before.', async () => {
  const { room, guests, ends, take, open, note } = home();
  take('far');
  await open('far');
  const left = { note: 'left' } as const;
  expect(guests.note(room, { roomId: 'room', sessionUuid: 'far', link: 'before' }, 1, left)).toEqual({ type: 'gone' });
  expect(guests.note(room, { roomId: 'room', sessionUuid: 'nobody', link: 'before' }, 1, left)).toEqual({ type: 'gone' });
  expect([room.places, ends[0]?.isClosed]).toEqual([['far'], false]);
  expect(note('far', left)).toEqual({ type: 'ok' });
  expect([room.places, ends[0]?.isClosed, guests.of(room)]).toEqual([[], true, []]);
});

test.each(['room.left', 'media.lost'] as const)('A member whose end of the pipe is lost (%s) is told so once.', async (type) => {
  const { room, guests, ends, take, open, told } = home();
  take('far');
  await open('far');
  ends[0]?.notify(type === 'room.left' ? { type, room: 1 } : { type });
  ends[0]?.notify(type === 'room.left' ? { type, room: 1 } : { type });
  await settle();
  expect([told('far'), ends[0]?.isClosed, guests.find(room, 'far')?.media]).toEqual([['lost'], true, undefined]);
});

test('What happens to a member is told to the bots of other nodes, but to the one that it happens to.', async () => {
  const { room, guests, take, told } = home();
  for (const sessionUuid of ['bot', 'other bot']) take(sessionUuid, { isBot: true });
  take('phone');
  guests.tellBots(room, 'bot', { type: 'speech_started', session_uuid: 'bot' });
  await settle();
  expect(['bot', 'other bot', 'phone'].map(told)).toEqual([[], ['news'], []]);
});

test('A coach of another node is heard by a member of this one.', async () => {
  const { local, ends, take, open, room } = home();
  local.set('member', audio);
  room.take('member');
  room.confirm('member', false);
  take('coach');
  await open('coach', { coach: 'member' });
  expect(ends[0]?.done.at(-1)).toMatchObject({ coach: { of: audio } });
});

test('All members of a node are asked after at once, and those that it does not know keep their places by their rows.', async () => {
  const { clock, room, rows, answers, take, checked } = home();
  for (const sessionUuid of ['one', 'two', 'gone', 'moved']) take(sessionUuid, { from: 'far' });
  take('alone', { from: 'further' });
  rows.push({ sessionUuid: 'moved', nodeId: 'further' });
  answers.to = (request) =>
    request.type === 'check' ? { type: 'absent', links: ['link of gone', 'link of moved'] } : { type: 'ok' };
  await clock.advance(SEAT_CHECK_MS);
  expect(checked()).toEqual([
    ['far', 'one', 'two', 'gone', 'moved'],
    ['further', 'alone'],
  ]);
  expect(room.places).toEqual(['one', 'two', 'moved', 'alone']);
  // One that is awaited has no seat to ask after, and leaves with its row.
  await clock.advance(SEAT_CHECK_MS);
  expect(checked().slice(2)).toEqual([
    ['far', 'one', 'two'],
    ['further', 'alone'],
  ]);
  rows.length = 0;
  await clock.advance(SEAT_CHECK_MS);
  expect(room.places).toEqual(['one', 'two', 'alone']);
});

test('A member of a dead node keeps its place until its row says that it has left, also where a note found nobody there.', async () => {
  const { clock, room, guests, rows, dead, answers, take, checked } = home();
  take('far', { isBot: true });
  take('lost');
  rows.push({ sessionUuid: 'far', nodeId: 'far' });
  dead.add('far');
  answers.to = () => ({ type: 'gone' });
  guests.tellBots(room, 'other', { type: 'speech_started', session_uuid: 'other' });
  await settle();
  expect(room.places).toEqual(['far', 'lost']);
  await clock.advance(SEAT_CHECK_MS);
  expect([room.places, checked()]).toEqual([['far'], []]);
  rows.length = 0;
  await clock.advance(SEAT_CHECK_MS);
  // Nobody is left to be asked after.
  expect([room.places, clock.armed]).toEqual([[], 0]);
});

test("A Room that is another node's gives back what led to its members, and tells them nothing.", async () => {
  const { clock, room, guests, ends, take, open, told } = home();
  for (const sessionUuid of ['one', 'two']) {
    take(sessionUuid);
    await open(sessionUuid);
  }
  guests.forget(room);
  expect([ends.map(({ isClosed }) => isClosed), guests.of(room)]).toEqual([[true, true], []]);
  await clock.advance(SEAT_CHECK_MS);
  expect([told('one'), told('two'), clock.armed]).toEqual([[], [], 0]);
});
