/** What comes of a hand-over of a call for each answer of the other node, at both of them. */
import { expect, test } from 'bun:test';
import type { ResumedLeg } from '../../src/call/ports/leg.ts';
import type { MovePeers, MoveReply, MoveRequest } from '../../src/call/ports/session-moves.ts';
import { Mover } from '../../src/call/session/handover/mover.ts';
import { Traces } from '../../src/call/traces.ts';
import { sleep } from '../../src/clock.ts';
import { MOVE_CSEQ_STEP, MOVE_LOOK_MS, MOVE_PREPARED_MS, MOVE_RETRY_MS, MOVES_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { inbound, type SessionState } from '../../src/machine/session/session.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { snapshot } from './leg-snapshot.ts';

const about = { sessionUuid: 'call', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 120_000 };
const stateAt = (now: number): SessionState => ({ ...inbound(about, now), phase: 'answered', hasLeg: true, deadlines: {} });
const failed = (asked: boolean): MoveReply => ({ type: 'failed', why: 'as the test says', asked });
const nothing = {
  log: silentLog,
  nodeId: 'own',
  find: () => undefined,
  hold: () => () => {},
  goOn: async () => {},
  handedOver() {},
};

/** Hands a call over to node `other`, which answers so. `isTaken`: the row is this node's when it is asked for. */
async function handOver(prepared: MoveReply | undefined, committed?: MoveReply, isTaken = false) {
  const clock = new VirtualClock();
  const done: string[] = [];
  const state = stateAt(clock.now());
  const call = {
    ...{ state, epoch: 4, traces: new Traces(), snapshot: () => snapshot, reclaim: () => void done.push('reclaimed') },
    handOver: async (give: (state: SessionState) => Promise<'given' | number>) => {
      const outcome = await give(state);
      done.push(`${outcome}`);
      return outcome === 'given';
    },
  };
  const ask: MovePeers['ask'] = async (to, request) => {
    done.push(`${request.type} at ${to}${request.type === 'prepare' ? ` +${request.ahead / MOVE_CSEQ_STEP}` : ''}`);
    return request.type === 'prepare' ? prepared : request.type === 'commit' ? committed : undefined;
  };
  const mover = new Mover({
    ...nothing,
    peers: { serve() {}, ask, place: async () => 'other' },
    dialer: {},
    clock,
    all: () => [call],
    find: () => call,
    take: async (_, from, epoch) => {
      done.push(`row of ${from} at ${epoch}`);
      return isTaken;
    },
    handedOver: (_, to) => void done.push(`seat to ${to}`),
  });
  mover.moveAll(true);
  await settle();
  mover.moveAll(false);
  await clock.advance(MOVE_LOOK_MS);
  return done;
}

test('A call goes on at the node that has committed it, or that has its row though it did not answer; else it stays here.', async () => {
  const [asked, commit, abort] = ['prepare at other +1', 'commit at other', 'abort at other'];
  const prepared: MoveReply = { type: 'prepared' };
  expect(await handOver(prepared, { type: 'committed' })).toEqual([asked, commit, 'seat to other', 'given']);
  expect(await handOver(prepared, undefined, false)).toEqual([asked, commit, 'row of own at 4', 'seat to other', 'given']);
  expect(await handOver(prepared, undefined, true)).toEqual([asked, commit, 'row of own at 4', '5', abort, 'reclaimed']);
  // It has not taken the row, and says so.
  expect(await handOver(prepared, failed(true))).toEqual([asked, commit, '4', abort, 'reclaimed']);
  // A far end that was not asked has followed nobody.
  expect(await handOver(failed(false))).toEqual([asked, abort]);
  expect(await handOver(failed(true))).toEqual([asked, abort, 'reclaimed']);
  expect(await handOver(undefined)).toEqual([asked, abort, 'reclaimed']);
});

test('A call that no node may take yet, or whose dialog is at no rest, is looked at every 5 s, and its far end is left alone.', async () => {
  for (const lacks of ['node', 'rest']) {
    const clock = new VirtualClock();
    const begun = clock.now();
    const [looks, done]: [number[], string[]] = [[], []];
    const look = () => looks.push(clock.now() - begun) > 0;
    const call = {
      ...{ state: stateAt(begun), epoch: 4, traces: new Traces(), reclaim: () => void done.push('reclaimed') },
      snapshot: () => (look() && lacks === 'rest' ? undefined : snapshot),
      handOver: async () => true,
    };
    const ask: MovePeers['ask'] = async (_, { type }) => {
      done.push(type);
      return undefined;
    };
    const mover = new Mover({
      ...nothing,
      peers: { serve() {}, ask, place: async () => (lacks === 'node' ? undefined : 'other') },
      dialer: {},
      clock,
      all: () => [call],
      find: () => call,
      take: async () => false,
    });
    mover.moveAll(true);
    await settle();
    await clock.advance(3 * MOVE_RETRY_MS);
    expect([lacks, looks, done]).toEqual([lacks, [0, 1, 2, 3].map((nth) => nth * MOVE_RETRY_MS), []]);
    mover.moveAll(false);
    await clock.advance(MOVE_LOOK_MS);
  }
});

/** Hands so many calls over to node `other`, which answers at once but for those of silent far ends, the first ones. */
async function handOverAll(calls: number, silent: number, forMs: number) {
  const clock = new VirtualClock();
  const uuids = Array.from({ length: calls }, (_, at) => `${at}`);
  const left = new Map(
    uuids.map((sessionUuid) => {
      const call = { state: { ...stateAt(clock.now()), sessionUuid }, epoch: 4, traces: new Traces(), snapshot: () => snapshot };
      return [sessionUuid, { ...call, handOver: async () => left.delete(sessionUuid), reclaim() {} }] as const;
    }),
  );
  let [underWay, most] = [0, 0];
  const ask: MovePeers['ask'] = async (_, { type, sessionUuid }) => {
    if (type === 'prepare' && Number(sessionUuid) < silent) {
      await sleep(clock, MOVE_PREPARED_MS);
      return failed(true);
    }
    most = Math.max(most, ++underWay);
    await settle();
    underWay--;
    return { type: 'prepared' };
  };
  const mover = new Mover({
    ...nothing,
    peers: { serve() {}, ask, place: async () => 'other' },
    dialer: {},
    clock,
    all: () => left.values(),
    find: (sessionUuid) => left.get(sessionUuid),
    take: async () => false,
  });
  mover.moveAll(true);
  for (let ms = 0; ms < forMs; ms += MOVE_LOOK_MS / 10) {
    for (let turn = 0; turn < 10; turn++) await settle();
    await clock.advance(MOVE_LOOK_MS / 10);
  }
  mover.moveAll(false);
  await clock.advance(MOVE_PREPARED_MS);
  return { left: left.size, most };
}

test('A thousand calls go within a moment, so many at a time, and hundreds of silent far ends hold up none of them.', async () => {
  expect(await handOverAll(1_000, 0, 2 * MOVE_LOOK_MS)).toEqual({ left: 0, most: MOVES_MAX });
  expect((await handOverAll(600, 300, 3 * MOVE_PREPARED_MS)).left).toBe(300);
});

/** A node that is asked to go on with a call, whose row it gets or does not. */
function asked(isTaken: boolean) {
  const clock = new VirtualClock();
  const done: string[] = [];
  let answer: Parameters<MovePeers['serve']>[0] = async () => failed(false);
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const handOver = { snapshot: () => undefined, kept: () => undefined, release: () => done.push('released'), reclaim() {} };
  const leg: ResumedLeg = { leg: { audio: undefined, ...orders, handOver }, listen() {} };
  const serve: MovePeers['serve'] = (by) => {
    answer = by;
  };
  new Mover({
    ...nothing,
    peers: { serve, ask: async () => undefined, place: async () => undefined },
    dialer: { resume: async () => leg },
    clock,
    all: () => [],
    take: async (_, from, epoch) => {
      done.push(`row of ${from} at ${epoch}`);
      return isTaken;
    },
    hold: () => {
      done.push('held');
      return () => void done.push('let go');
    },
    goOn: async ({ sessionUuid }, _leg, epoch, traceparent) =>
      void done.push(`${sessionUuid} goes on at ${epoch}, ${traceparent}`),
  });
  const ask = (request: MoveRequest, leftMs = 1) => answer(request, 'former', clock.now() + leftMs);
  const prepare = () => ask({ type: 'prepare', sessionUuid: 'call', snapshot, ahead: MOVE_CSEQ_STEP });
  const commit = (leftMs = 1) =>
    ask({ type: 'commit', sessionUuid: 'call', epoch: 4, state: stateAt(0), now: clock.now(), traceparent: 'trace' }, leftMs);
  return { clock, done, ask, prepare, commit };
}

test('A call that was prepared goes on once its row is here, and what was prepared is given back where it is not.', async () => {
  const { done, prepare, commit } = asked(true);
  expect(await prepare()).toEqual({ type: 'prepared' });
  // Nobody else prepares it meanwhile.
  expect(await prepare()).toMatchObject({ type: 'failed', asked: false });
  expect(await commit()).toEqual({ type: 'committed' });
  expect(done).toEqual(['held', 'row of former at 4', 'call goes on at 5, trace', 'let go']);
  expect(await commit()).toMatchObject({ type: 'failed', asked: false });
  const refused = asked(false);
  await refused.prepare();
  expect(await refused.commit()).toMatchObject({ type: 'failed', asked: true });
  expect(refused.done).toEqual(['held', 'row of former at 4', 'let go', 'released']);
});

test('A call that was prepared is given back where it is told off, or asked for too late, or no more.', async () => {
  const off = asked(true);
  await off.prepare();
  await off.ask({ type: 'abort', sessionUuid: 'call' });
  const late = asked(true);
  await late.prepare();
  expect(await late.commit(0)).toMatchObject({ type: 'failed', asked: true });
  const forgotten = asked(true);
  await forgotten.prepare();
  await forgotten.clock.advance(MOVE_PREPARED_MS);
  expect(await forgotten.commit()).toMatchObject({ type: 'failed', asked: false });
  for (const { done, clock } of [off, late, forgotten]) {
    await clock.advance(MOVE_PREPARED_MS);
    expect(done).toEqual(['released']);
  }
});
