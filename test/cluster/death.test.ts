/** Nodes that die, stop, or are cut off: every call ends once, and nobody else's call is touched. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { eventually, natsInstalled, TestCluster, type TestNode } from './harness.ts';

const BURIAL_SEC = 5;
const ORPHAN_SEC = 12;

describe.skipIf(!natsInstalled || !sippInstalled)('a cluster', () => {
  let cluster: TestCluster;
  let app: Credentials;
  const receiver = new Receiver();
  const running: LiveCalls[] = [];
  let collecting = '';

  const call = async (node: TestNode, count: number): Promise<LiveCalls> => {
    const calls = await callsTo(node.platform, app, receiver, count);
    running.push(calls);
    return calls;
  };
  const ends = (sessions: readonly string[]) =>
    sessions.map((sessionUuid) => receiver.names(sessionUuid).filter((name) => name === 'session.ended').length);
  const node = (at: number): TestNode => cluster.node(at);

  beforeAll(async () => {
    cluster = await TestCluster.start(2, {
      NODE_BURIAL_SEC: String(BURIAL_SEC),
      ORPHAN_TIMEOUT_SEC: String(ORPHAN_SEC),
      WEBHOOK_RETRY_SCALE: '0.1',
    });
    app = await cluster.application(receiver, '+15550002');
  }, 60_000);

  afterAll(async () => {
    for (const { sipp } of running) sipp.stop();
    await cluster?.stop();
    await receiver.stop();
  });

  test('is not disturbed by a node that starts under live calls', async () => {
    const calls = await call(node(0), 20);
    const api = (method: string, path: string, body?: unknown) => node(0).platform.api(app, method, path, body);
    const [recorded = '', second = '', ...members] = calls.sessions.slice(0, 5);
    collecting = second;
    const { body: room } = await api('POST', '/api/v1/rooms', {});
    for (const session_uuid of members)
      expect((await api('POST', `/api/v1/rooms/${room.room_id}/members`, { session_uuid })).status).toBe(202);
    await receiver.until(() => receiver.count('room.member.joined') === members.length, 'the joins');
    const recording = await api('POST', `/v1/sessions/${recorded}/recordings`, {
      direction: 'both',
      channels: 'mono',
      include_gaps: true,
    });
    expect(recording.status).toBe(202);
    await receiver.event('recording.became_available', recorded);
    const collect = await api('POST', `/v1/sessions/${collecting}/payment/card/collect`, { first_digit_timeout_ms: 30_000 });
    expect(collect.status).toBe(202);
    const before = receiver.events.length;
    await cluster.add();
    await Bun.sleep(1500);
    expect(receiver.events.slice(before)).toEqual([]);
    expect((await api('GET', `/api/v1/rooms/${room.room_id}/members`)).body.members).toHaveLength(members.length);
    expect((await api('GET', `/v1/sessions/${recorded}/recordings`)).body.recordings).toHaveLength(1);
    // It is still collecting.
    const again = await api('POST', `/v1/sessions/${collecting}/payment/card/collect`, {});
    expect(again.status).toBe(409);
    expect(ends(calls.sessions).every((count) => count === 0)).toBe(true);
  }, 60_000);

  test('ends each call of a killed node once, after the orphan timeout, or at once by DELETE', async () => {
    const others = await call(node(1), 5);
    const doomed = running[0]?.sessions ?? [];
    const killedAt = performance.now();
    await node(0).platform.kill();
    running[0]?.sipp.stop();
    const [first = '', ...rest] = doomed;
    // Whoever buried it has its calls; a DELETE there ends one at once.
    const endedBy = async () => {
      const tries = [node(1), node(2)].map(({ platform }) => platform.api(app, 'DELETE', `/v1/sessions/${first}`));
      return (await Promise.all(tries)).some(({ status }) => status === 202);
    };
    await eventually(endedBy, 'a DELETE after the burial', 15_000);
    const buriedMs = performance.now() - killedAt;
    expect(buriedMs).toBeGreaterThan(BURIAL_SEC * 1000 - 1100);
    expect(buriedMs).toBeLessThan(ORPHAN_SEC * 1000);
    await receiver.event('session.ended', first);
    expect(ends(rest).every((count) => count === 0)).toBe(true);
    await receiver.until(() => ends(rest).every((count) => count > 0), 'the ends', 20_000);
    const endedMs = performance.now() - killedAt;
    expect(endedMs).toBeGreaterThan(ORPHAN_SEC * 1000 - 1200);
    expect(endedMs).toBeLessThan((ORPHAN_SEC + 8) * 1000);
    await Bun.sleep(1000);
    expect(ends(doomed).every((count) => count === 1)).toBe(true);
    // What ran in them was told of once, before their ends; the Room lives on, empty.
    expect(receiver.count('recording.ended')).toBe(1);
    expect(
      receiver
        .of(collecting)
        .filter(({ event }) => event === 'payment.card.collected')
        .map(({ body }) => body.status),
    ).toEqual(['failed']);
    const left = receiver.events.filter(({ event }) => event === 'room.member.left');
    expect(left.map(({ body }) => body.reason)).toEqual(['orphan', 'orphan', 'orphan']);
    for (const { body } of left)
      expect(receiver.names(String(body.session_uuid)).slice(-2)).toEqual(['room.member.left', 'session.ended']);
    const rooms = await node(2).platform.api(app, 'GET', '/api/v1/rooms');
    expect(rooms.body.rooms).toMatchObject([{ member_count: 0 }]);
    for (const sessionUuid of rest)
      expect(receiver.of(sessionUuid).at(-1)?.body).toMatchObject({ answered: false, duration_seconds: 0, hangup_by: 'system' });
    expect(ends(others.sessions).every((count) => count === 0)).toBe(true);
    expect(receiver.badSignatures).toBe(0);
  }, 60_000);

  test('ends nothing where a node is stopped for less than the burial takes', async () => {
    const { platform } = node(1);
    const { sessions } = running[1] ?? { sessions: [] };
    platform.signal('SIGSTOP');
    await Bun.sleep((BURIAL_SEC - 1) * 1000);
    platform.signal('SIGCONT');
    await Bun.sleep(BURIAL_SEC * 1000);
    expect(ends(sessions).every((count) => count === 0)).toBe(true);
    const { body } = await platform.api(app, 'GET', '/v1/sessions');
    expect(body.sessions).toHaveLength(sessions.length);
  }, 30_000);

  test('buries nobody while the database is away from all, and goes on when it is back', async () => {
    const { sessions } = running[1] ?? { sessions: [] };
    for (const { postgres } of [node(1), node(2)]) postgres.set('reset');
    await Bun.sleep((BURIAL_SEC + 1) * 1000);
    const refused = await node(2).platform.api(app, 'GET', `/v1/sessions/${sessions[0]}`);
    expect(refused.status).toBe(503);
    for (const { postgres } of [node(1), node(2)]) postgres.set('pass');
    const backAt = performance.now();
    const [last = ''] = sessions.slice(-1);
    await eventually(
      async () => (await node(1).platform.api(app, 'DELETE', `/v1/sessions/${last}`)).status === 202,
      'a command after the return',
      5_000,
    );
    // The figure of a quiet machine is under 2 s.
    expect(performance.now() - backAt).toBeLessThan(5_000);
    await Bun.sleep((BURIAL_SEC + 1) * 1000);
    expect(
      ends(sessions)
        .slice(0, -1)
        .every((count) => count === 0),
    ).toBe(true);
    expect(ends(sessions).at(-1)).toBe(1);
  }, 60_000);

  test('buries a node that is stopped for long, which hangs up and ends when it goes on', async () => {
    const { platform } = node(1);
    const sessions = (running[1]?.sessions ?? []).slice(0, -1);
    platform.signal('SIGSTOP');
    await receiver.until(() => ends(sessions).every((count) => count > 0), 'the ends', 40_000);
    platform.signal('SIGCONT');
    expect(await platform.ended()).toBe(1);
    // SIPp is content only if it was hung up on by BYE in every call.
    expect(await running[1]?.sipp.done).toBe(true);
    await Bun.sleep(500);
    expect(ends(sessions).every((count) => count === 1)).toBe(true);
  }, 60_000);
});
