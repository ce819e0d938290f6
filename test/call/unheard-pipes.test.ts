/** What a node says whose members of a Room hear nothing, as the network between the nodes lets no audio through. */
import { expect, test } from 'bun:test';
import { L16_PROTOCOL } from '../../src/call/ports/room-peers.ts';
import { RoomSpan } from '../../src/call/room/room-span.ts';
import { HOME_LOOK_MS, HOME_PIPE_MS, UNHEARD_SAID_EVERY_MS } from '../../src/limits.ts';
import { type LogFields, silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { audio, END, pipe } from './quiet-pipe.ts';
import { quietRoom } from './quiet-room.ts';

/** A node with a member of a Room at `home`, whose pipes tell at once that nothing comes. */
async function deaf() {
  const clock = new VirtualClock();
  const warned: LogFields[] = [];
  const span = new RoomSpan({
    clock,
    log: { ...silentLog, warn: (fields: LogFields) => void warned.push(fields) },
    nodeId: 'here',
    peers: {
      pipeHost: '127.0.0.1',
      ask: async (_, { type }) =>
        type === 'take' ? { type: 'taken', voiceActivityEvents: false, epoch: 1 } : { type: 'open', end: END, epoch: 1 },
      reach: async () => 'answers',
      isDead: () => false,
      protocol: () => L16_PROTOCOL,
      tellHome() {},
      askRelease: async () => false,
      serve() {},
    },
    media: {
      openRoom: async () => quietRoom,
      openPipe: async ({ onSilent }) => {
        clock.at(clock.now() + HOME_LOOK_MS, onSilent);
        return pipe;
      },
    },
    homes: { seize: async () => undefined, where: async () => undefined, members: async () => [] },
    session: () => undefined,
    mostMembers: async () => 1,
    find: () => undefined,
    adopt: async () => undefined,
    giveUp: async () => false,
    tellBots() {},
  });
  await span.take('home', {
    roomId: 'room',
    appUuid: 'app',
    sessionUuid: 'member',
    isBot: false,
    reserved: false,
    coach: undefined,
  });
  span.join('member', 'room', audio, { muted: false, volumes: {}, coach: undefined });
  const wait = async (ms: number) => {
    for (let waited = 0; waited < ms; waited += HOME_LOOK_MS) {
      await settle();
      await clock.advance(HOME_LOOK_MS);
    }
  };
  return { span, warned, wait };
}

test('A home that answers and whose audio does not come is named once a minute, and counted each time.', async () => {
  const { span, warned, wait } = await deaf();
  await wait(HOME_PIPE_MS);
  expect([span.pipesUnheard, warned]).toEqual([0, []]);
  await wait(UNHEARD_SAID_EVERY_MS / 2);
  expect(span.pipesUnheard).toBeGreaterThan(5);
  expect(warned).toEqual([{ room_id: 'room', session_uuid: 'member', home: 'home' }]);
  await wait(UNHEARD_SAID_EVERY_MS);
  expect(warned).toHaveLength(2);
});
