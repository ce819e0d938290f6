import { expect, test } from 'bun:test';
import { TakenCalls } from '../../src/call/session/handover/taken-calls.ts';
import { NODE_LEFT_LOOK_MS } from '../../src/limits.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

interface Situation {
  /** That node tells that it has taken a call. */
  readonly from?: string;
  /** The call that is told of. */
  readonly told?: string;
  readonly phase?: 'ringing' | 'answered';
  /** Whether the call is among those of the node itself. Asked at each look, with the time since the first one. */
  readonly mine?: (ms: number) => boolean;
  /** The call ends while the node of its row is asked for. */
  readonly endsMeanwhile?: boolean;
}

/** Looks at a node with one call, which is `owner`'s by its row, and tells what became of the call and its seat. */
async function looked(owner: string | undefined, situation: Situation = {}): Promise<readonly string[]> {
  const { from, told = 'member', phase = 'answered', mine = () => false, endsMeanwhile = false } = situation;
  const done: string[] = [];
  const clock = new VirtualClock();
  const begun = clock.now();
  const about = { sessionUuid: 'member', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000 };
  const sound = { muted: false, voiceActivityEvents: false, talking: false };
  const membership = { roomId: 'room', room: 1, phase: 'joined' as const, ...sound };
  const state = { ...inbound(about, clock.now()), phase, hasLeg: true, membership };
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
    mine: async () => (mine(clock.now() - begun) ? [{ sessionUuid: 'member' }] : []),
    owner: async () => {
      if (endsMeanwhile) calls.clear();
      return owner;
    },
    handedOver: (left, nodeId) => void done.push(`seat in ${left.membership?.roomId} goes to '${nodeId}'`),
  });
  const look = from === undefined ? taken.look() : taken.told(from, told);
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
  expect(await looked('another', { from: 'another' })).toEqual(["let go to 'another'"]);
  for (const owner of ['own', 'third', undefined]) expect(await looked(owner, { from: 'another' })).toEqual([]);
  expect(await looked('another', { from: 'another', told: 'a call that is not here' })).toEqual([]);
});

test("A call that is not answered yet is nobody else's, though its row may not be stored.", async () => {
  for (const owner of ['another', undefined]) expect(await looked(owner, { phase: 'ringing' })).toEqual([]);
});

test('A call that ends while its row is asked for has ended here, and is not let go as well.', async () => {
  for (const owner of ['another', undefined])
    for (const from of ['another', undefined])
      expect(await looked(owner, { endsMeanwhile: true, ...(from && { from }) })).toEqual([]);
});

test("A call that is still its own node's goes on, and is looked at once more, 5 s later: it may be taken just then.", async () => {
  const looks: number[] = [];
  expect(await looked('another', { mine: (ms) => looks.push(ms) > 0 })).toEqual([]);
  expect(looks).toEqual([0, NODE_LEFT_LOOK_MS]);
  expect(await looked('another', { mine: (ms) => ms === 0 })).toEqual(["let go to 'another'"]);
});
