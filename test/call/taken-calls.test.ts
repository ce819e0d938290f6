import { expect, test } from 'bun:test';
import { TakenCalls } from '../../src/call/session/handover/taken-calls.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/**
 * Looks at a node with one call, which is `owner`'s by its row, and tells what became of the call and its seat. With
 * `from`, that node tells that it has taken the call. `mine` tells whether it is among the calls of the node itself.
 */
async function looked(owner: string | undefined, from?: string, mine = () => false): Promise<readonly string[]> {
  const done: string[] = [];
  const clock = new VirtualClock();
  const about = { sessionUuid: 'member', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000 };
  const sound = { muted: false, voiceActivityEvents: false, talking: false };
  const membership = { roomId: 'room', room: 1, phase: 'joined' as const, ...sound };
  const state = { ...inbound(about, clock.now()), phase: 'answered' as const, hasLeg: true, membership };
  const end = (how: string) => {
    done.push(how);
    calls.clear();
  };
  const calls = new Set([
    {
      state,
      abandon: () => end('hung up'),
      dropTaken: (nodeId = '') => end(`let go to '${nodeId}'`),
    },
  ]);
  const taken = new TakenCalls({
    clock,
    all: () => calls,
    find: (sessionUuid) => [...calls].find(({ state }) => state.sessionUuid === sessionUuid),
    mine: async () => (mine() ? [{ sessionUuid: 'member' }] : []),
    owner: async () => owner,
    handedOver: (left, nodeId) => void done.push(`seat in ${left.membership?.roomId} goes to '${nodeId}'`),
  });
  const look = from === undefined ? taken.look() : taken.told(from, 'member');
  await settle();
  await clock.advance(60_000);
  await look;
  return done;
}

test('A call that another node has taken is let go to that node.', async () => {
  expect(await looked('another')).toEqual(["let go to 'another'"]);
});

test('A call that another node has taken, and that has ended there, keeps no seat in a Room.', async () => {
  expect(await looked(undefined)).toEqual(["seat in room goes to ''", 'hung up']);
});

test('A node that tells that it has taken a call gets it where its row says so too.', async () => {
  expect(await looked('another', 'another')).toEqual(["let go to 'another'"]);
  for (const owner of ['own', 'third', undefined]) expect(await looked(owner, 'another')).toEqual([]);
});

test("A call that is still its own node's goes on, and is looked at once more: it may be taken just then.", async () => {
  let looks = 0;
  expect(await looked('another', undefined, () => ++looks > 0)).toEqual([]);
  expect(looks).toBe(2);
  expect(await looked('another', undefined, () => --looks > 0)).toEqual(["let go to 'another'"]);
});
