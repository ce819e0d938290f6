/** An answered dial with answering machine detection whose answer the database takes its time to store. */
import { expect, test } from 'bun:test';
import type { Leg, LegListener } from '../../src/call/ports/leg.ts';
import { SessionRegistry } from '../../src/call/session/session-registry.ts';
import type { Change } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { bareRegistry } from '../support/bare-registry.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

test('Who has answered is listened for from when the answer is stored, and has its time from then on', async () => {
  const clock = new VirtualClock();
  const changes: Change[] = [];
  let database: Promise<void> = Promise.resolve();
  const registry = new SessionRegistry({
    journal: {
      commit: async (change) => {
        await database;
        changes.push(change);
        return true;
      },
      wasStored: async () => false,
    },
    ...bareRegistry(),
    clock,
  });
  let hear: LegListener = () => {};
  const listened: number[] = [];
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const leg: Leg = { audio: undefined, ...orders, detectMachine: (timeoutMs) => listened.push(timeoutMs) };
  registry.connect({
    dial: async ({ listener }) => {
      hear = listener;
      return { leg };
    },
  });
  const context = { appUuid: 'app', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const request = { from: '+15550002', to: '+15550100', ring_timeout_sec: 30, machine_detection: { timeout_ms: 1_000 } };
  expect(await registry.dial(request, context)).toMatchObject({ status: 202 });

  const stored = Promise.withResolvers<void>();
  database = stored.promise;
  hear({ type: 'leg.answered' });
  await clock.advance(20_000);
  expect(listened).toEqual([]);
  stored.resolve();
  await settle();
  expect(listened).toEqual([1_000]);
  await clock.advance(900);
  hear({ type: 'leg.media', notice: { type: 'machine.detected', result: 'human', afterMs: 900 } });
  await settle();
  expect(JSON.stringify(changes)).toContain('\\"result\\":\\"human\\"');
});
