/** The hand-over of calls, as the node sees it that is asked to go on with one. */
import { expect, test } from 'bun:test';
import type { ResumedLeg } from '../../src/call/ports/leg.ts';
import type { MovePeers, MoveRequest } from '../../src/call/ports/session-moves.ts';
import { Mover } from '../../src/call/session/handover/mover.ts';
import { Traces } from '../../src/call/traces.ts';
import type { Change } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { MOVE_LOOK_MS, MOVE_RETRY_MAX_MS, MOVE_RETRY_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { inbound } from '../../src/machine/session/session.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { snapshot } from './leg-snapshot.ts';
import { quietSession } from './quiet-session.ts';

/** A mover that is asked for calls by node `a`. */
function asked(options: Partial<ConstructorParameters<typeof Mover>[0]>) {
  const clock = new VirtualClock();
  let answer: Parameters<MovePeers['serve']>[0] = async () => Promise.reject(new Error('nobody serves'));
  const serve: MovePeers['serve'] = (by) => {
    answer = by;
  };
  const mover = new Mover({
    peers: { serve, ask: async () => undefined, place: async () => undefined },
    dialer: {},
    clock,
    log: silentLog,
    nodeId: 'b',
    all: () => [],
    find: () => undefined,
    take: async () => false,
    hold: () => () => {},
    goOn: async () => {},
    handedOver: () => {},
    ...options,
  });
  return { clock, mover, ask: (request: MoveRequest, until: number) => answer(request, 'a', until) };
}

test('A node that is asked for a call too late leaves its far end alone, which is back at its own node by then.', async () => {
  const numbers: number[] = [];
  const { clock, ask } = asked({
    dialer: {
      resume: async (_, ahead) => {
        numbers.push(ahead);
        return { failed: 'the far end refused with 488', asked: true };
      },
    },
  });
  const prepare = (until: number) => ask({ type: 'prepare', sessionUuid: newUuid(), snapshot, ahead: 1_000 }, until);
  expect(await prepare(clock.now() + 1)).toMatchObject({ type: 'failed', asked: true });
  expect(await prepare(clock.now())).toMatchObject({ type: 'failed', asked: false });
  expect(numbers).toEqual([1_000]);
});

test('A call that was taken over in the middle of its hand-over goes on with the leg of the takeover, and its old node lets it go.', async () => {
  const released: string[] = [];
  const gone: number[] = [];
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const handOver = { snapshot: () => undefined, kept: () => undefined, release: () => released.push('prepared'), reclaim() {} };
  const leg: ResumedLeg = { leg: { audio: undefined, ...orders, handOver }, listen() {} };
  const { clock, ask } = asked({
    dialer: { resume: async () => leg },
    find: () => ({ epoch: 2 }),
    // The row is this node's since the takeover, as if this very commit had written it.
    take: async () => true,
    goOn: async (_state, _leg, epoch) => {
      gone.push(epoch);
    },
  });
  const sessionUuid = newUuid();
  const about = { sessionUuid, appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = inbound(about, clock.now());
  expect(await ask({ type: 'prepare', sessionUuid, snapshot, ahead: 1_000 }, clock.now() + 1)).toEqual({ type: 'prepared' });
  const commit = { type: 'commit', sessionUuid, epoch: 1, state, now: clock.now(), traceparent: '' } as const;
  expect(await ask(commit, clock.now() + 1)).toEqual({ type: 'committed' });
  expect([released, gone]).toEqual([['prepared'], []]);
});

test('A command that waits while its call is handed over is to come again, and is not told that there is no such call.', async () => {
  const clock = new VirtualClock();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const journal = { commit: async () => true, wasStored: async () => true };
  const actor = quietSession(state, journal, clock, 'a');
  const { promise: outcome, resolve: gives } = Promise.withResolvers<'given'>();
  const handed = actor.handOver(() => outcome);
  const context = { appUuid: 'app_1', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const join = { type: 'member_join', roomId: newUuid(), room: 1, muted: false, voiceActivityEvents: false } as const;
  const transfer = { type: 'transfer', target: { number: '+15550100' }, timeoutMs: 30_000 } as const;
  const waiting = [join, transfer].map((command) => actor.command(command, context));
  await settle();
  gives('given');
  expect(await handed).toBe(true);
  const moved = { status: 503, message: 'The call has just moved to another node.', retryAfterSec: 1 };
  expect(await Promise.all([...waiting, actor.command(join, context)])).toMatchObject([moved, moved, moved]);
});

test('A call that stays here after a hand-over that was not answered is written at the epoch that it has then.', async () => {
  const clock = new VirtualClock();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const epochs: (number | undefined)[] = [];
  const commit = async ({ session }: Change) => epochs.push(session?.epoch) > 0;
  const actor = quietSession(state, { commit, wasStored: async () => true }, clock, 'a');
  expect(await actor.handOver(async () => 7)).toBe(false);
  actor.signal({ type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: '' } });
  await settle();
  expect(epochs).toEqual([7]);
});

test('The row of a call is held while the call is handed over, until the call has the epoch of its row', async () => {
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const handOver = { snapshot: () => snapshot, kept: () => undefined, release() {}, reclaim() {} };
  const state = { ...inbound(about, 0), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const journal = { commit: async () => true, wasStored: async () => true };
  const told: string[] = [];
  const ask: MovePeers['ask'] = async (_node, { type }) => (type === 'prepare' ? { type: 'prepared' } : undefined);
  const { clock, mover } = asked({
    peers: { serve: () => {}, ask, place: async () => 'c' },
    all: () => [actor],
    find: () => actor,
    take: async () => told.push('taken') > 0,
    hold() {
      told.push(`held at ${actor.epoch}`);
      return () => told.push(`let go at ${actor.epoch}`);
    },
  });
  const actor = quietSession(state, journal, clock, 'b', {}, { audio: undefined, ...orders, handOver });
  mover.moveAll(true);
  await settle();
  expect(told).toEqual(['held at 0', 'taken', 'let go at 1']);
  mover.moveAll(false);
  await clock.advance(MOVE_LOOK_MS);
});

test('A call whose hand-over fails by a bug has not gone, and whoever asked for it is told so.', async () => {
  const clock = new VirtualClock();
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const actor = quietSession(state, { commit: async () => true, wasStored: async () => true }, clock, 'a');
  let gone: boolean | undefined;
  void actor
    .handOver(() => Promise.reject(new Error('a bug')))
    .then((isGone) => {
      gone = isGone;
    });
  await settle();
  expect(gone).toBe(false);
});

test('A drain that is taken back and given again at once looks for calls to hand over as often as before.', async () => {
  let looks = 0;
  const { clock, mover } = asked({
    all: () => {
      looks++;
      return [];
    },
  });
  for (const on of [true, false, true]) mover.moveAll(on);
  looks = 0;
  await clock.advance(3 * MOVE_LOOK_MS);
  expect(looks).toBe(3);
  mover.moveAll(false);
  await clock.advance(MOVE_LOOK_MS);
  expect(clock.armed).toBe(0);
});

test('A call whose far end refuses to follow is asked less and less often, and every 160 s at last.', async () => {
  const sessionUuid = newUuid();
  const about = { sessionUuid, appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const asked: number[] = [];
  const clock = new VirtualClock();
  const state = { ...inbound(about, clock.now()), phase: 'answered', deadlines: {} } as const;
  const actor = {
    ...{ state, epoch: 1, traces: new Traces(), snapshot: () => snapshot, reclaim() {} },
    handOver: async () => false,
  };
  const mover = new Mover({
    peers: {
      serve() {},
      place: async () => 'b',
      ask: async (_, request) => {
        if (request.type === 'prepare') asked.push(clock.now());
        return { type: 'failed', why: 'the far end refused with 488', asked: true };
      },
    },
    ...{ dialer: {}, clock, log: silentLog, nodeId: 'a' },
    all: () => [actor],
    find: () => actor,
    take: async () => false,
    hold: () => () => {},
    goOn: async () => {},
    handedOver: () => {},
  });
  mover.moveAll(true);
  await clock.advance(4 * MOVE_RETRY_MAX_MS);
  const pausesSec = asked.slice(1).map((at, n) => Math.round((at - (asked[n] ?? 0)) / 1000));
  expect(pausesSec).toEqual([5, 10, 20, 40, 80, 160, 160, 160]);
  mover.moveAll(false);
  await clock.advance(MOVE_LOOK_MS);
});

test('A call that is still being handed over is not handed over once more by a drain that is taken back and given again.', async () => {
  const about = { sessionUuid: newUuid(), appUuid: 'app_1', callerId: '', did: '', orphanTimeoutMs: 120_000 };
  const clock = new VirtualClock();
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const call = {
    ...{ state, epoch: 1, traces: new Traces(), snapshot: () => snapshot, reclaim() {} },
    handOver: async () => false,
  };
  const follows = Promise.withResolvers<undefined>();
  const prepared: number[] = [];
  const { mover } = asked({
    peers: {
      serve() {},
      place: async () => 'b',
      ask: async (_, { type }) => {
        if (type !== 'prepare') return undefined;
        prepared.push(clock.now());
        return await follows.promise;
      },
    },
    clock,
    all: () => [call],
    find: () => call,
  });
  const drained = async (on: boolean) => {
    mover.moveAll(on);
    await clock.advance(2 * MOVE_LOOK_MS);
  };
  for (const on of [true, false, true]) await drained(on);
  expect(prepared).toHaveLength(1);
  // It is tried again as one that was not handed over is.
  follows.resolve(undefined);
  await clock.advance(MOVE_RETRY_MS + MOVE_LOOK_MS);
  expect(prepared).toHaveLength(2);
  await drained(false);
});
