/** The long ones, by `npm run soak`: a node is stopped for 40 s and goes on, twenty times, with the settings of a default. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo } from './calls.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';

const ROUNDS = Number(process.env.SOAK_ROUNDS ?? 20);
const STOP_SEC = 40;
const CALLS = 10;

describe.skipIf(!natsInstalled || !sippInstalled)('a node that is stopped for long', () => {
  let cluster: TestCluster;
  let app: Credentials;
  const receiver = new Receiver();

  const first = () => {
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('no node');
    return node;
  };

  beforeAll(async () => {
    cluster = await TestCluster.start(2, { ORPHAN_TIMEOUT_SEC: '25', WEBHOOK_RETRY_SCALE: '0.1' });
    app = await first().platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await first().platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await cluster?.stop();
    await receiver.stop();
  });

  for (let round = 1; round <= ROUNDS; round++)
    test(`is buried, ends each call once, hangs up and exits when it goes on (${round} of ${ROUNDS})`, async () => {
      const { platform } = await cluster.add();
      await eventually(
        async () => JSON.stringify((await platform.operator('GET', '/trunks')).body).includes('carrier'),
        'the trunk',
      );
      const { sessions, sipp } = await callsTo(platform, app, receiver, CALLS);
      platform.signal('SIGSTOP');
      await Bun.sleep(STOP_SEC * 1000);
      platform.signal('SIGCONT');
      expect(await platform.ended()).toBe(1);
      // SIPp is content only if it was hung up on by BYE in every call.
      expect(await sipp.done).toBe(true);
      await receiver.until(() => sessions.every((each) => receiver.names(each).includes('session.ended')), 'the ends', 30_000);
      for (const each of sessions) expect(receiver.names(each).filter((name) => name === 'session.ended')).toHaveLength(1);
    }, 180_000);
});
