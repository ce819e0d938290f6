/** A Room over nodes, one of which has no RTP port left for the way to it. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpRange } from '../support/rtp-range.ts';
import { eventually, natsInstalled, TestCluster } from './harness.ts';
import { RawCaller } from './raw-caller.ts';

describe.skipIf(!natsInstalled)('a member whose node has no RTP port left', () => {
  let cluster: TestCluster;
  let app: Credentials;
  let range: RtpRange;
  const receiver = new Receiver();
  const callers: RawCaller[] = [];

  beforeAll(async () => {
    cluster = await TestCluster.start(1);
    range = await RtpRange.take();
    const first = Number(range.ports.split('-')[0]);
    await cluster.add({ RTP_PORTS: `${first}-${first + 1}` });
    app = await cluster.application(receiver, '+15550002');
    receiver.misbehave = ({ event, session_uuid: uuid }) => {
      if (event === 'session.created') void answer(String(uuid));
      return undefined;
    };
  }, 60_000);

  /** Answers a call of either node at the first. It asks again where the other one is busy, as an application does. */
  const answer = async (sessionUuid: string): Promise<void> => {
    const ask = () => cluster.node(0).platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    let status = 503;
    for (let tries = 0; tries < 50 && status === 503; tries++) {
      if (tries > 0) await Bun.sleep(200);
      ({ status } = await ask());
    }
    if (status !== 202) throw new Error(`the answer was refused with ${status}`);
  };

  afterAll(async () => {
    for (const caller of callers) caller.close();
    await cluster?.stop();
    await receiver.stop();
    range?.free();
  });

  /** A call to that node. Resolves with its Session, once it is answered. */
  const call = async (at: number): Promise<string> => {
    const before = receiver.count('session.answered');
    callers.push(await RawCaller.call(cluster.node(at).platform.sipUdp, '+15550002', 440));
    await receiver.until(() => receiver.count('session.answered') > before, 'the answer');
    return String(receiver.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid);
  };

  test('is told as left, its seat is free again, and its call goes on', async () => {
    const { platform } = cluster.node(0);
    const room = String((await platform.api(app, 'POST', '/api/v1/rooms', {})).body.room_id);
    /** A busy machine may keep a node from answering another: the command is 503 then, and asked again by its key. */
    const join = async (session_uuid: string) => {
      const key = { 'Idempotency-Key': newUuid() };
      const asked = () => platform.api(app, 'POST', `/api/v1/rooms/${room}/members`, { session_uuid }, key);
      await eventually(async () => (await asked()).status === 202, 'it is let into the Room');
    };
    const here = await call(0);
    await join(here);
    await receiver.event('room.member.joined', here);
    const there = await call(1);
    for (const times of [1, 2]) {
      await join(there);
      await receiver.until(
        () => receiver.names(there).filter((name) => name === 'room.member.left').length === times,
        'the left',
      );
      await eventually(
        async () => (await platform.api(app, 'GET', `/api/v1/rooms/${room}`)).body.member_count === 1,
        'the seat to be free',
      );
    }
    expect(receiver.of(there).at(-1)?.body).toMatchObject({ event: 'room.member.left', room_id: room, reason: 'orphan' });
    expect((await platform.api(app, 'GET', `/v1/sessions/${there}`)).body.status).toBe('answered');
  }, 60_000);
});
