/** Webhooks of a cluster: one node delivers, and another goes on where it is killed. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { natsInstalled, TestCluster, type TestNode } from './harness.ts';

const CALLS = 20;
const ROUNDS = 12;

describe.skipIf(!natsInstalled || !sippInstalled)('the webhooks of a cluster', () => {
  let cluster: TestCluster;
  let app: Credentials;
  const receiver = new Receiver();
  const running: LiveCalls[] = [];

  const node = (at: number): TestNode => {
    const found = cluster.nodes[at];
    if (found === undefined) throw new Error('no such node');
    return found;
  };

  beforeAll(async () => {
    cluster = await TestCluster.start(3, { WEBHOOK_RETRY_SCALE: '0.1' });
    app = await node(0).platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await node(0).platform.trunk('127.0.0.1:9');
    await Bun.sleep(1_000);
  }, 60_000);

  afterAll(async () => {
    for (const { sipp } of running) sipp.stop();
    await cluster?.stop();
    await receiver.stop();
  });

  test('go on in order, none lost, where the node that delivers is killed', async () => {
    // The first node started first, so it has the relay's lease; the calls are on another one.
    const calls = await callsTo(node(1).platform, app, receiver, CALLS);
    running.push(calls);
    let last = performance.now();
    let gapMs = 0;
    receiver.misbehave = () => {
      gapMs = Math.max(gapMs, performance.now() - last);
      last = performance.now();
      return undefined;
    };
    const orders = new Map<string, string[]>();
    for (let round = 0; round < ROUNDS; round++) {
      if (round === 3) await node(0).platform.kill();
      await Promise.all(
        calls.sessions.map(async (sessionUuid) => {
          const path = `/v1/sessions/${sessionUuid}`;
          const { status, body } = await node(2).platform.api(app, 'POST', `${path}/dtmf/send`, { digits: '1' });
          if (status === 202) orders.set(sessionUuid, [...(orders.get(sessionUuid) ?? []), String(body.operation_uuid)]);
        }),
      );
      await Bun.sleep(300);
    }
    const told = (sessionUuid: string) =>
      receiver
        .of(sessionUuid)
        .filter(({ event }) => event === 'dtmf.sent')
        .map(({ body }) => String(body.operation_uuid));
    await receiver.until(
      () => [...orders].every(([sessionUuid, operations]) => told(sessionUuid).length === operations.length),
      'all events',
      20_000,
    );
    for (const [sessionUuid, operations] of orders) expect(told(sessionUuid)).toEqual(operations);
    expect([...orders.values()].flat().length).toBe(CALLS * ROUNDS);
    // A lease of 4 s and a look each second: under 6 s on a quiet machine.
    expect(gapMs).toBeLessThan(9_000);
    expect(receiver.badSignatures).toBe(0);
  }, 60_000);
});
