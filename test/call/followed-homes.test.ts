/** Which home of a Room the seats of its members follow, where a node hears of several. */
import { expect, test } from 'bun:test';
import { L16_PROTOCOL, type NewHome, type RoomPeers } from '../../src/call/ports/room-peers.ts';
import { RoomSpan } from '../../src/call/room/room-span.ts';
import type { RoomStore } from '../../src/database/call/rooms.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { audio, pipe } from './quiet-pipe.ts';
import { quietRoom } from './quiet-room.ts';

/** A node with a member of a Room, whose home `first` says that it has moved. The row is read when the test says so. */
async function following() {
  let served: Parameters<RoomPeers['serve']>[0] | undefined;
  const row = Promise.withResolvers<Awaited<ReturnType<RoomStore['where']>>>();
  const span = new RoomSpan({
    clock: new VirtualClock(),
    log: silentLog,
    nodeId: 'here',
    peers: {
      pipeHost: '127.0.0.1',
      ask: async (nodeId, { type }) => {
        if (type === 'take') return { type: 'taken', voiceActivityEvents: false, epoch: 1 };
        return type === 'members' ? { type: 'members', members: [{ sessionUuid: nodeId, isBot: false }] } : { type: 'moved' };
      },
      reach: async () => 'answers',
      isDead: () => false,
      protocol: () => L16_PROTOCOL,
      tellHome() {},
      askRelease: async () => false,
      serve: (given) => {
        served = given;
      },
    },
    media: { openRoom: async () => quietRoom, openPipe: async () => pipe },
    homes: { seize: async () => undefined, where: () => row.promise, members: async () => [] },
    session: () => undefined,
    mostMembers: async () => 1,
    find: () => undefined,
    adopt: async () => undefined,
    giveUp: async () => false,
    tellBots() {},
  });
  const seat = { roomId: 'room', appUuid: 'app', sessionUuid: 'member', isBot: false, reserved: false, coach: undefined };
  await span.take('first', seat);
  span.join('member', 'room', audio, { muted: false, volumes: {}, coach: undefined });
  await settle();
  return {
    tell: (nodeId: string, epoch: number) => served?.homeChanged({ roomId: 'room', nodeId, epoch } satisfies NewHome),
    read: async (nodeId: string, epoch: number) => {
      row.resolve({ nodeId, epoch });
      await settle();
    },
    /** The node that the seat of the member leads to. */
    home: async () => (await span.members('room', 'member'))?.[0]?.sessionUuid,
  };
}

test('A seat follows the row of its Room to the next home.', async () => {
  const { read, home } = await following();
  expect(await home()).toBe('first');
  await read('second', 2);
  expect(await home()).toBe('second');
});

test('A seat stays at the newest home that was told, where a row that was read before tells of an older one.', async () => {
  const { tell, read, home } = await following();
  tell('third', 3);
  await read('second', 2);
  expect(await home()).toBe('third');
  tell('second', 2);
  expect(await home()).toBe('third');
});
