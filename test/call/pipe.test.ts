/**
 * The codec on which a Session's node and the home of its Room agree, as a home of an older release knows no L16; and
 * what is told to a home that does not know of the seat yet.
 */
import { expect, test } from 'bun:test';
import { L16_PROTOCOL, type SeatReply, type SeatRequest } from '../../src/call/ports/room-peers.ts';
import { Pipe } from '../../src/call/room/pipe.ts';
import { HOME_LOOK_MS, HOME_PIPE_MS } from '../../src/limits.ts';
import type { Reach } from '../../src/machine/room/home-watch.ts';
import { type MediaPipe, type MediaRoom, NO_COUNTERS, type PipeCodec, type PipeOptions } from '../../src/media/engine.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const END = { host: '127.0.0.1', port: 10_000, ssrc: 1 };
const noRecording = { mask() {}, unmask() {}, stop() {} };
const player = { play() {}, stopPlayback() {}, controlPlayback() {}, record: () => noRecording };
const room: MediaRoom = {
  number: 1,
  ...player,
  setVoiceActivity() {},
  setPlaybackVolume() {},
  playMusic() {},
  stopMusic() {},
  close: async () => {},
};
const plain = { muted: false, volumes: {}, coach: undefined };
const member = { join() {}, leave() {}, setMuted() {}, coach() {}, setVolume: () => true };

/** A pipe to the node `home`, and what was asked of it. `agree` hears the codec that is spoken. */
function pipeTo(
  answer: (request: SeatRequest) => SeatReply | Promise<SeatReply> | undefined,
  { protocol = L16_PROTOCOL, agree = () => {} }: { readonly protocol?: number; readonly agree?: (codec: PipeCodec) => void } = {},
) {
  const asked: SeatRequest[] = [];
  const notices: string[] = [];
  const clock = new VirtualClock();
  /** Ends of pipes at this node that were given back. */
  const ends = { closed: 0 };
  const nats: { reach: Reach; isDead: boolean } = { reach: 'answers', isDead: false };
  let silence = () => {};
  let notify: PipeOptions['notify'] = () => {};
  const media: MediaPipe = {
    end: END,
    ...member,
    connect: (_end, codec) => agree(codec),
    counters: async () => NO_COUNTERS,
    close: async () => {
      ends.closed++;
      return NO_COUNTERS;
    },
  };
  const pipe = new Pipe(
    {
      peers: {
        pipeHost: '127.0.0.1',
        ask: async (_, request) => {
          asked.push(request);
          return await answer(request);
        },
        reach: async () => nats.reach,
        isDead: () => nats.isDead,
        protocol: (nodeId) => (nodeId.startsWith('home') ? protocol : 0),
        tellHome() {},
        askRelease: async () => false,
        serve() {},
      },
      clock,
      media: {
        openPipe: async (options) => {
          ({ notify, onSilent: silence } = options);
          return media;
        },
        openRoom: async () => room,
      },
      roomId: 'room',
      sessionUuid: 'session',
      appUuid: 'app',
      isBot: true,
      number: 1,
      listener: {
        notice: ({ type }) => void notices.push(type),
        closed: () => void notices.push('closed'),
        news: ({ type }) => void notices.push(type),
        unheard: (home) => void notices.push(`unheard ${home}`),
        homeLost: (why, { nodeId }) => void notices.push(`${nodeId} ${why}`),
      },
    },
    'home',
  );
  return {
    pipe,
    asked,
    notices,
    clock,
    ends,
    nats,
    fallSilent: () => silence(),
    heard: () => notify({ type: 'room.joined', room: 1 }),
  };
}

/** The codec that is asked for, and the one that is spoken, where the leg's own is `pipeCodec`. */
async function agreed(protocol: number, pipeCodec: PipeCodec): Promise<readonly (PipeCodec | undefined)[]> {
  const spoken: PipeCodec[] = [];
  const opened = { type: 'open', end: END, epoch: 1 } as const;
  const { pipe, asked } = pipeTo(() => opened, { protocol, agree: (codec) => void spoken.push(codec) });
  pipe.join({ ...player, ...member, pipeCodec }, plain);
  await settle();
  return [...asked.flatMap((request) => (request.type === 'open' ? [request.codec] : [])), ...spoken];
}

test('A stream goes to a home of this release as samples, at its rate.', async () => {
  for (const codec of ['L16/8000', 'L16/16000', 'L16/24000', 'PCMA'] as const)
    expect(await agreed(L16_PROTOCOL, codec)).toEqual([codec, codec]);
});

test('A home of an older release, or one that is not known yet, is offered what every release knows.', async () => {
  for (const [own, offered] of [
    ['L16/8000', 'PCMU'],
    ['L16/16000', 'G722'],
    ['L16/24000', 'G722'],
    ['PCMA', 'PCMA'],
    ['G722', 'G722'],
  ] as const)
    for (const protocol of [0, L16_PROTOCOL - 1]) expect(await agreed(protocol, own)).toEqual([offered, offered]);
});

test('What a talker tells of itself while its Room gets another home waits there for its seat.', async () => {
  const { promise: opening, resolve: open } = Promise.withResolvers<SeatReply>();
  const known = new Set<string>();
  const { pipe, asked, notices } = pipeTo((request) => {
    if (request.type === 'check' || request.type === 'members') return { type: 'gone' };
    if (request.type === 'take') return { type: 'taken', voiceActivityEvents: true, epoch: 1 };
    if (request.type === 'note') return { type: known.has(request.link) ? 'ok' : 'gone' };
    known.add(request.link);
    return opening;
  });
  expect((await pipe.take(false, undefined))?.type).toBe('taken');
  pipe.retarget('home-2', 2, true);
  pipe.tell({ type: 'speech_ended', session_uuid: 'session' });
  pipe.setMuted(true);
  await settle();
  expect(asked.map(({ type }) => type)).toEqual(['take']);
  pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
  await settle();
  expect(asked.map(({ type }) => type)).toEqual(['take', 'open']);
  open({ type: 'open', end: END, epoch: 2 });
  await settle();
  expect(asked.flatMap((request) => (request.type === 'note' ? [request.note.note] : []))).toEqual(['news', 'muted']);
  expect(notices).toEqual([]);
});

test('Who leaves before the next home of its Room has its seat says so at once.', async () => {
  const { pipe, asked } = pipeTo(() => ({ type: 'gone' }));
  pipe.retarget('home-2', 2, true);
  await pipe.leave();
  expect(asked.map((request) => (request.type === 'note' ? request.note.note : request.type))).toEqual(['left']);
});

test('A pipe that is made anew has the mute and the volumes that were set last.', async () => {
  const { pipe, asked, notices, clock, fallSilent } = pipeTo((request) =>
    request.type === 'open' ? { type: 'open', end: END, epoch: 1 } : { type: 'ok' },
  );
  pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, { ...plain, coach: 'agent' });
  await settle();
  pipe.setMuted(true);
  await pipe.setVolume('from_member', 0);
  await pipe.setVolume('to_member', 70);
  fallSilent();
  expect(notices).toEqual([]);
  for (let waited = 0; waited <= 2 * HOME_PIPE_MS; waited += HOME_LOOK_MS) {
    await settle();
    await clock.advance(HOME_LOOK_MS);
  }
  const terms = asked.flatMap((request) =>
    request.type === 'open' ? [{ muted: request.muted, volumes: request.volumes, coach: request.coach }] : [],
  );
  const changed = { muted: true, volumes: { from_member: 0, to_member: 70 }, coach: 'agent' };
  expect(terms.slice(0, 2)).toEqual([{ ...plain, coach: 'agent' }, changed]);
  expect(notices).toEqual(['unheard home']);
});

test('What is set while the home makes its end of the pipe is told once the end is there.', async () => {
  const { promise: opening, resolve: open } = Promise.withResolvers<SeatReply>();
  const { pipe, asked } = pipeTo((request) => (request.type === 'open' ? opening : { type: 'ok' }));
  await pipe.take(false, undefined);
  pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
  await settle();
  pipe.setMuted(true);
  void pipe.setVolume('from_member', 30);
  await settle();
  open({ type: 'open', end: END, epoch: 1 });
  await settle();
  const notes = asked.flatMap((request) => (request.type === 'note' ? [request.note] : []));
  expect(notes.slice(-2)).toEqual([
    { note: 'muted', muted: true },
    { note: 'volume', from_member: 30 },
  ]);
});

test('What a home answers to the opening of a pipe says whether it is asked again, replaced, or the member has left.', async () => {
  const open = { type: 'open', end: END, epoch: 1 } as const;
  for (const [replies, questions, told] of [
    [[{ type: 'opening' }, undefined, open], 3, []],
    [[{ type: 'moved' }], 1, ['home moved']],
    [[{ type: 'gone' }], 1, ['room.left']],
    [[], 4, ['home silent']],
  ] as const) {
    const left: (SeatReply | undefined)[] = [...replies];
    const { pipe, asked, notices, clock, ends } = pipeTo((request) => (request.type === 'open' ? left.shift() : { type: 'ok' }));
    pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
    await settle();
    await clock.advance(10_000);
    expect([asked.length, notices, clock.armed, ends.closed]).toEqual([questions, [...told], 0, told.length]);
    pipe.drop();
    await settle();
    expect(ends.closed).toBe(1);
  }
});

test('A note that does not find the Room at its home any more has the next home looked for, and the member stays in it.', async () => {
  for (const [reply, told] of [
    [{ type: 'moved' }, ['home moved']],
    [{ type: 'gone' }, ['room.left']],
    [undefined, ['home silent']],
  ] as const) {
    const { pipe, asked, notices, clock, nats } = pipeTo((request) =>
      request.type === 'open' ? { type: 'open', end: END, epoch: 1 } : reply,
    );
    pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
    await settle();
    // One that says nothing to a note was declared dead.
    nats.isDead = reply === undefined;
    pipe.setMuted(true);
    expect(await pipe.setVolume('from_member', 30)).toBe(false);
    await clock.advance(60_000);
    expect([notices, asked.map(({ type }) => type)]).toEqual([[...told], ['open', 'note']]);
    // Whoever leaves meanwhile looks for nothing.
    await pipe.leave();
    expect(notices).toHaveLength(1);
  }
});

test('A node that does not reach NATS takes no home for lost because it has no answer, and asks until NATS is back.', async () => {
  const { pipe, asked, notices, clock, nats } = pipeTo(() =>
    nats.reach === 'unknown' ? undefined : { type: 'open', end: END, epoch: 2 },
  );
  nats.reach = 'unknown';
  pipe.retarget('home-2', 2, true);
  pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
  await settle();
  await clock.advance(60_000);
  expect(notices).toEqual([]);
  nats.reach = 'answers';
  await clock.advance(1_000);
  const questions = asked.length;
  await clock.advance(60_000);
  expect([notices, asked.length, clock.armed]).toEqual([[], questions, 0]);
});

test('A member has joined once it is heard at the home and hears it, of each home anew until then.', async () => {
  const { pipe, notices, heard } = pipeTo(() => ({ type: 'open', end: END, epoch: 1 }));
  const join = async () => {
    pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
    await settle();
  };
  await join();
  heard();
  pipe.retarget('home-2', 2, false);
  await join();
  pipe.hear(1, { note: 'joined' });
  expect(notices).toEqual([]);
  heard();
  pipe.hear(2, { note: 'joined' });
  heard();
  expect(notices).toEqual(['room.joined']);
});

test('Each note of a home is heard once and in order, and its end or that of its Room is told.', async () => {
  const { pipe, notices } = pipeTo(() => ({ type: 'ok' }));
  expect(pipe.hear(2, { note: 'closed' })).toEqual({ type: 'gone' });
  for (const number of [1, 1]) expect(pipe.hear(number, { note: 'talking', talking: true })).toEqual({ type: 'ok' });
  pipe.hear(2, { note: 'news', news: { type: 'member_joined', session_uuid: 'other' } });
  pipe.hear(3, { note: 'closed' });
  pipe.hear(4, { note: 'inherit' });
  pipe.hear(5, { note: 'lost' });
  pipe.drop();
  pipe.hear(6, { note: 'lost' });
  expect(notices).toEqual(['voice', 'member_joined', 'closed', 'home inherit', 'room.left']);
});

test('A home from which nothing comes is lost where NATS knows no such node, and is not while it answers.', async () => {
  for (const [reach, told] of [
    ['nobody', ['home silent']],
    ['answers', []],
  ] as const) {
    const { pipe, notices, clock, nats, fallSilent } = pipeTo(() => ({ type: 'open', end: END, epoch: 1 }));
    pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, plain);
    await settle();
    nats.reach = reach;
    // Two notices of one silence begin one watch.
    fallSilent();
    fallSilent();
    await clock.advance(2 * HOME_LOOK_MS);
    expect(notices).toEqual([...told]);
  }
});

test('A seat is asked for with all that its home judges it by, and an end that is made anew gives the one before back.', async () => {
  const { pipe, asked, ends, clock, fallSilent, notices } = pipeTo((request) =>
    request.type === 'open' ? { type: 'open', end: END, epoch: 1 } : { type: 'taken', voiceActivityEvents: false, epoch: 1 },
  );
  await pipe.take(false, 'agent');
  await pipe.take(true, undefined);
  pipe.join({ ...player, ...member, pipeCodec: 'PCMU' }, { ...plain, coach: 'agent' });
  await settle();
  const name = { roomId: 'room', sessionUuid: 'session', link: pipe.name.link, appUuid: 'app', isBot: true };
  expect(asked.splice(0)).toEqual([
    { type: 'take', ...name, reserved: false, coach: 'agent' },
    { type: 'take', ...name, reserved: true },
    { type: 'open', ...name, muted: false, volumes: {}, coach: 'agent', codec: 'PCMU', end: END, isJoined: false },
  ]);
  expect(ends.closed).toBe(0);
  fallSilent();
  for (let waited = 0; notices.length === 0 && waited <= 2 * HOME_PIPE_MS; waited += HOME_LOOK_MS) {
    await settle();
    await clock.advance(HOME_LOOK_MS);
  }
  await settle();
  expect([notices, asked.map(({ type }) => type), ends.closed]).toEqual([['unheard home'], ['open'], 1]);
  pipe.drop();
  await settle();
  expect(ends.closed).toBe(2);
});

test('The seat of a home that the pipe leads to no more promises none at the next.', async () => {
  const { promise, resolve } = Promise.withResolvers<SeatReply>();
  const { pipe } = pipeTo(() => promise);
  const taken = pipe.take(false, undefined);
  pipe.retarget('home-2', 7, false);
  resolve({ type: 'taken', voiceActivityEvents: false, epoch: 3 });
  expect(await taken).toMatchObject({ type: 'taken' });
  expect([pipe.isPromised, pipe.epoch]).toEqual([false, 7]);
});

test('A seat is asked for at the next home until that has answered, or the pipe leads elsewhere or is over.', async () => {
  const replies: (SeatReply | undefined)[] = [undefined, { type: 'opening' }, { type: 'moved' }];
  const { pipe, asked, clock } = pipeTo(() => replies.shift());
  void pipe.takeAgain(true);
  await settle();
  await clock.advance(10_000);
  expect(asked.splice(0)).toHaveLength(3);
  void pipe.takeAgain(true);
  await settle();
  pipe.retarget('home-2', 2, false);
  await clock.advance(10_000);
  expect(asked.splice(0)).toHaveLength(1);
  void pipe.takeAgain(false);
  await settle();
  pipe.drop();
  await clock.advance(10_000);
  expect([asked.length, clock.armed]).toEqual([1, 0]);
});
