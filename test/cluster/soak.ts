/**
 * The long ones, by `npm run soak -- cluster`: nodes that are stopped and go on, twenty times each, with the settings
 * of a default.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { level } from '../support/room-call.ts';
import { decodeMulaw } from '../support/rtp-peer.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo } from './calls.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';
import { RawCaller } from './raw-caller.ts';

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

describe.skipIf(!natsInstalled)('a Room over three nodes', () => {
  const TONES = [440, 660, 880] as const;
  let cluster: TestCluster;
  let app: Credentials;
  let roomId = '';
  const receiver = new Receiver();
  const callers: RawCaller[] = [];

  beforeAll(async () => {
    cluster = await TestCluster.start(3, { WEBHOOK_RETRY_SCALE: '0.1' });
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('no node');
    const { platform } = first;
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    receiver.misbehave = ({ event, session_uuid }) => {
      if (event === 'session.created') void platform.answerSoon(app, session_uuid);
      return undefined;
    };
    await platform.trunk('127.0.0.1:9');
    roomId = String((await platform.api(app, 'POST', '/api/v1/rooms', {})).body.room_id);
    for (const [at, node] of cluster.nodes.entries()) {
      await eventually(
        async () => JSON.stringify((await node.platform.operator('GET', '/trunks')).body).includes('carrier'),
        'the trunk',
      );
      callers.push(await RawCaller.call(node.platform.sipUdp, '+15550002', TONES[at] ?? 440));
      await receiver.until(() => receiver.count('session.answered') === at + 1, 'the answer');
      const session_uuid = receiver.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid;
      const joined = await platform.api(app, 'POST', `/api/v1/rooms/${roomId}/members`, { session_uuid });
      expect(joined.status).toBe(202);
    }
    await receiver.until(() => receiver.count('room.member.joined') === 3, 'the joins');
  }, 90_000);

  afterAll(async () => {
    for (const caller of callers) caller.close();
    await cluster?.stop();
    await receiver.stop();
  });

  for (let round = 1; round <= ROUNDS; round++)
    test(`goes on whichever node is stopped for 2.5 s, and nobody leaves (${round} of ${ROUNDS})`, async () => {
      const node = cluster.nodes[round % 3];
      node?.platform.signal('SIGSTOP');
      await Bun.sleep(2_500);
      node?.platform.signal('SIGCONT');
      const hears = ({ ear }: RawCaller, hz: number) => level(decodeMulaw(ear.packets.slice(-25)), hz) > -25;
      const allHear = () =>
        callers.every((caller, at) => TONES.every((hz, tone) => (tone === at ? !hears(caller, hz) : hears(caller, hz))));
      await eventually(allHear, 'all to hear all', 10_000);
      expect(receiver.count('room.member.left')).toBe(0);
      // Longer than a judgement of anyone may still be under way.
      await Bun.sleep(2_000);
      expect(allHear()).toBe(true);
    }, 60_000);
});
