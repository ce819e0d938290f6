/** Nodes whose clocks differ by minutes. Signatures of webhooks allow for 5 minutes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { fakeTime } from '../support/fake-time.ts';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';
import { RawCaller } from './raw-caller.ts';

const NUMBER = '+15550002';

describe.skipIf(!natsInstalled || fakeTime('-4m') === undefined)('A node whose clock is behind by four minutes', () => {
  let cluster: TestCluster;
  let app: Credentials;
  const receiver = new Receiver();

  beforeAll(async () => {
    cluster = await TestCluster.start(1, { CALL_TAKEOVER: 'on', WEBHOOK_RETRY_SCALE: '0.1' });
    await cluster.add(fakeTime('-4m'));
    app = await cluster.application(receiver, NUMBER);
    cluster.node(0).platform.answerEveryCall(app, receiver);
  }, 60_000);

  afterAll(async () => {
    await cluster?.stop();
    await receiver.stop();
  });

  test('is told by the others, and a call of it that is taken over is no longer for that', async () => {
    const [{ platform: right }, { platform: late }] = [cluster.node(0), cluster.node(1)];
    await eventually(() => right.output.includes('the clock of a node differs'), 'the warning', 30_000);
    expect(right.output).toMatch(/"ahead_ms":-2(39|40)\d{3}/);
    // A node that is suspected to be dead for a moment, on a busy machine, is not counted then.
    const metrics = async () => await (await fetch(`${right.url}/metrics`)).text();
    await eventually(async () => (await metrics()).includes('sidetone_nodes_clocks_apart 1\n'), 'the gauge', 30_000);

    const caller = await RawCaller.call(late.sipUdp, NUMBER, 440);
    const { body } = await receiver.event('session.answered');
    const began = performance.now();
    await late.kill();
    await caller.until(() => caller.answered.some((each) => each.startsWith('INVITE')), 'the re-INVITE', 20_000);
    expect(await caller.ask('BYE')).toBe(200);
    const ended = await receiver.event('session.ended', String(body.session_uuid));
    const most = Math.ceil((performance.now() - began) / 1000) + 1;
    caller.close();
    expect(ended.body.answered).toBe(true);
    expect(Number(ended.body.duration_seconds)).toBeGreaterThanOrEqual(2);
    expect(Number(ended.body.duration_seconds)).toBeLessThanOrEqual(most);
  }, 60_000);
});
