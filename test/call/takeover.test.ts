/** Calls of a lost node that go on here, where far ends are silent and where going on with one fails. */
import { expect, test } from 'bun:test';
import type { LegSnapshot, ResumedLeg } from '../../src/call/ports/leg.ts';
import { Takeover } from '../../src/call/session/handover/takeover.ts';
import { sleep } from '../../src/clock.ts';
import type { SessionRow } from '../../src/database/journal/journal.ts';
import { MOVE_CSEQ_STEP, MOVE_PREPARED_MS, TAKEOVERS_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** The row of an answered call, whose far end is known by the Call-ID. */
const rowOf = (sessionUuid: string): SessionRow => ({
  ...{ sessionUuid, appUuid: 'app', nodeId: 'lost', epoch: 1, type: 'phone_in', state: 'answered' },
  ...{ callerId: '+1', did: '+2', answered: true, clientState: '', roomId: '', trunk: 'carrier', summary: '' },
  ...{ createdAt: 1, answeredAt: 2, endedAt: undefined },
  running: JSON.stringify({
    call: JSON.stringify({ leg: { call: { dialog: { callId: sessionUuid } }, origin: { version: 1 } }, maxDurationMs: 60_000 }),
  }),
});

/** Takes over so many calls, whose far ends refuse at once but for the silent ones. */
function takeOver(calls: number, isSilent: (at: number) => boolean, orphan: (sessionUuid: string) => void) {
  const clock = new VirtualClock();
  const left = Array.from({ length: calls }, (_, at) => `${at}`);
  let underWay = 0;
  let most = 0;
  let queries = 0;
  const resume = async ({ call }: LegSnapshot) => {
    most = Math.max(most, ++underWay);
    await (isSilent(Number(call.dialog.callId)) ? sleep(clock, MOVE_PREPARED_MS) : Promise.resolve());
    underWay--;
    return { failed: 'the far end refused with 481', asked: true };
  };
  const takeover = new Takeover({
    dialer: { resume },
    clock,
    log: silentLog,
    orphanTimeoutMs: 120_000,
    lead: () => 0,
    takeCalls: async (_, atMost) => {
      queries++;
      return left.splice(0, atMost).map(rowOf);
    },
    trunks: () => ['carrier'],
    hold: () => () => {},
    tell: () => {},
    goOn: async () => {},
    orphan: ({ sessionUuid }) => orphan(sessionUuid),
  });
  const taken = takeover.take('lost');
  return { clock, taken, again: () => takeover.take('lost'), most: () => most, queries: () => queries };
}

test('Far ends that are silent hold up no other call, and no more are asked at a time than may be.', async () => {
  const judged: string[] = [];
  const { clock, taken, most, queries } = takeOver(
    400,
    (at) => at % 40 === 0,
    (each) => judged.push(each),
  );
  await settled();
  expect(judged.length).toBe(390);
  await clock.advance(MOVE_PREPARED_MS);
  await taken;
  expect(new Set(judged).size).toBe(400);
  expect(most()).toBe(TAKEOVERS_MAX);
  expect(queries()).toBeLessThan(20);
});

test('Hundreds of far ends that are silent are waited for together, and whoever asks for the calls meanwhile waits, too.', async () => {
  const judged: string[] = [];
  const { clock, taken, again } = takeOver(
    400,
    (at) => at < 350,
    (each) => judged.push(each),
  );
  let isOver = false;
  void again().then(() => {
    isOver = true;
  });
  await settled();
  await clock.advance(MOVE_PREPARED_MS);
  // The far ends that answer are behind the silent ones.
  expect(judged.filter((each) => Number(each) >= 350)).toHaveLength(50);
  expect(isOver).toBe(false);
  await clock.advance(MOVE_PREPARED_MS);
  await taken;
  await settled();
  expect([new Set(judged).size, isOver]).toEqual([400, true]);
});

test('One call that cannot be gone on with leaves the others alone, and the end waits for all of them.', async () => {
  const judged: string[] = [];
  const { clock, taken } = takeOver(
    120,
    (at) => at === 7,
    (each) => {
      if (each === '3') throw new Error('it is lost');
      judged.push(each);
    },
  );
  let isOver = false;
  void taken.then(() => {
    isOver = true;
  });
  await settled();
  expect([judged.length, isOver]).toEqual([118, false]);
  await clock.advance(MOVE_PREPARED_MS);
  await taken;
  expect(judged.length).toBe(119);
});

test('A call whose far end follows goes on under new numbers, by the clock of this node, and no call is taken twice.', async () => {
  const clock = new VirtualClock();
  const asked: (readonly [number, number])[] = [];
  const gone: (readonly [string, number | undefined, number])[] = [];
  const told: string[] = [];
  const rows = [1, 2].map((epoch) => ({ ...rowOf(`${epoch}`), epoch, answeredAt: 10_000 }));
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const handOver = { snapshot: () => undefined, kept: () => undefined, release() {}, reclaim() {} };
  const leg: ResumedLeg = { leg: { audio: undefined, ...orders, handOver }, listen() {} };
  let held = 0;
  const takeover = new Takeover({
    dialer: {
      resume: async ({ origin }, ahead) => {
        asked.push([origin.version, ahead]);
        return leg;
      },
    },
    ...{ clock, log: silentLog, orphanTimeoutMs: 120_000, lead: () => 4_000, trunks: () => [] },
    takeCalls: async (_, atMost) => rows.splice(0, atMost),
    hold: () => {
      held++;
      return () => held--;
    },
    tell: (sessions) => void told.push(...sessions),
    goOn: async ({ sessionUuid, answeredAt }, _leg, epoch) => {
      expect(held).toBe(1);
      gone.push([sessionUuid, answeredAt, epoch]);
    },
    orphan: ({ sessionUuid }) => void told.push(`${sessionUuid} is lost`),
  });
  await Promise.all([takeover.take('lost'), takeover.take('lost')]);
  expect([gone, told, held]).toEqual([
    [
      ['1', 6_000, 1],
      ['2', 6_000, 2],
    ],
    ['1', '2'],
    0,
  ]);
  // Each node that has had the call since may have used the numbers of the one before.
  const [[version = 0, ahead = 0] = [], [laterVersion = 0, laterAhead = 0] = []] = asked;
  expect([version > 1, ahead > MOVE_CSEQ_STEP * 3, laterVersion - version, laterAhead]).toEqual([
    true,
    true,
    version - 1,
    2 * ahead,
  ]);
  rows.push({ ...rowOf('later'), answeredAt: 10_000 });
  await takeover.take('lost');
  expect(gone.at(-1)?.[0]).toBe('later');
});

test('Calls that are this node’s already are asked for a limited number at a time, and silent far ends hold up no other.', async () => {
  const clock = new VirtualClock();
  const judged: string[] = [];
  let underWay = 0;
  let most = 0;
  const takeover = new Takeover({
    dialer: {
      resume: async ({ call }) => {
        most = Math.max(most, ++underWay);
        await (Number(call.dialog.callId) % 40 === 0 ? sleep(clock, MOVE_PREPARED_MS) : Promise.resolve());
        underWay--;
        return { failed: 'the far end refused with 481', asked: true };
      },
    },
    ...{ clock, log: silentLog, orphanTimeoutMs: 120_000, lead: () => 4_000, trunks: () => [], tell: () => {} },
    takeCalls: async () => [],
    hold: () => () => {},
    goOn: async () => {},
    orphan: ({ sessionUuid }) => void judged.push(sessionUuid),
  });
  const gone = takeover.goOnWith(Array.from({ length: 400 }, (_, at) => rowOf(`${at}`)));
  await settled();
  expect(judged.length).toBe(390);
  await clock.advance(MOVE_PREPARED_MS);
  await gone;
  expect([new Set(judged).size, most]).toEqual([400, TAKEOVERS_MAX]);
});
