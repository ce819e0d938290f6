/** Commands through the wrong node: the same answers as through the right one, each effect and event once. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { patiently } from '../support/patiently.ts';
import type { Answered, Credentials } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { sippInstalled } from '../support/sipp.ts';
import { callsTo, type LiveCalls } from './calls.ts';
import { eventually, natsInstalled, TestCluster, type TestNode } from './harness.ts';

const CALLS = 20;
const ROUNDS = 12;

describe.skipIf(!natsInstalled || !sippInstalled)('a command through another node', () => {
  let cluster: TestCluster;
  let app: Credentials;
  const receiver = new Receiver();
  const audio = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(440, 2)) });
  const running: LiveCalls[] = [];

  const node = (at: number): TestNode => cluster.node(at);
  type Ask = (at: number, method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answered>;
  const ask: Ask = (at, method, path, body, headers = {}) => node(at).platform.api(app, method, path, body, headers);
  /** This client heeds Retry-After: it asks again where a node was too busy to answer another in time. */
  const api: Ask = (...asked) => patiently(() => ask(...asked));
  const call = async (at: number, count = 1, through = at): Promise<readonly string[]> => {
    const calls = await callsTo(node(at).platform, app, receiver, count, node(through).platform);
    running.push(calls);
    return calls.sessions;
  };

  beforeAll(async () => {
    cluster = await TestCluster.start(3, { WEBHOOK_RETRY_SCALE: '0.1' });
    app = await cluster.application(receiver, '+15550002');
  }, 60_000);

  afterAll(async () => {
    for (const { sipp } of running) sipp.stop();
    await cluster?.stop();
    await receiver.stop();
    await audio.stop(true);
  });

  test('answers, plays, collects, records, inspects and hangs up as through its own node', async () => {
    const [here = ''] = await call(0);
    const [there = ''] = await call(0, 1, 1);
    const of = async (sessionUuid: string, at: number) => {
      const path = `/v1/sessions/${sessionUuid}`;
      const url = `http://127.0.0.1:${audio.port}/a.wav`;
      // The event to wait for stands behind a command whose outcome others depend on.
      const steps: [string, string, unknown?, string?][] = [
        ['GET', path],
        ['POST', `${path}/answer`, {}],
        ['POST', `${path}/playback/play`, { type: 'files', urls: [url] }, 'playback.started'],
        ['POST', `${path}/playback/play`, { type: 'files', urls: ['http://127.0.0.1:1/none.wav'] }],
        ['POST', `${path}/playback/pause`, {}],
        ['POST', `${path}/playback/stop`, {}],
        ['POST', `${path}/dtmf/collect`, { max_digits: 0 }],
        ['POST', `${path}/recordings`, { direction: 'both', channels: 'mono' }],
        ['GET', `${path}/recordings`],
        ['POST', `${path}/room/mute`, {}],
        ['POST', `${path}/transfer`, { to: 'nobody' }],
        ['DELETE', path],
      ];
      const answers: unknown[] = [];
      for (const [method, route, body, event] of steps) {
        const { status, body: said } = await api(at, method, route, body);
        if (event !== undefined) await receiver.event(event, sessionUuid);
        answers.push([method, route.slice(path.length), status, shapeOf(said)]);
      }
      await receiver.event('session.ended', sessionUuid);
      // An end is told for a day; nothing else is.
      const after = [await api(at, 'DELETE', path), await api(at, 'POST', `${path}/playback/stop`, {})];
      return {
        answers: [...answers, ...after.map(({ status, body }) => [status, shapeOf(body)])],
        names: receiver.names(sessionUuid).filter((name) => name !== 'recording.became_available'),
      };
    };
    const direct = await of(here, 0);
    expect(await of(there, 2)).toEqual(direct);
    expect(direct.answers.map((each) => (Array.isArray(each) ? each[2] : 0)).slice(0, 4)).toEqual([200, 409, 202, 502]);
    expect(receiver.badSignatures).toBe(0);
  }, 60_000);

  test('replays its answer under an Idempotency-Key at any node', async () => {
    const [sessionUuid = ''] = await call(0);
    const path = `/v1/sessions/${sessionUuid}`;
    const key = { 'idempotency-key': 'once' };
    const first = await api(1, 'DELETE', path, undefined, key);
    expect(first.status).toBe(202);
    for (const at of [0, 1, 2]) {
      const again = await api(at, 'DELETE', path, undefined, key);
      expect([again.status, again.headers.get('idempotent-replayed'), again.body]).toEqual([202, 'true', first.body]);
    }
    await receiver.event('session.ended', sessionUuid);
    expect(receiver.names(sessionUuid).filter((name) => name === 'session.ended')).toHaveLength(1);
  }, 30_000);

  test('is 404 for a Session of another application, and for none', async () => {
    const [sessionUuid = ''] = await call(0);
    const other = await node(1).platform.application(receiver.url, '+15550077');
    receiver.secrets.set(other.appUuid, other.webhookSecret);
    expect((await node(1).platform.api(other, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(404);
    expect((await api(1, 'DELETE', `/v1/sessions/${crypto.randomUUID()}`)).status).toBe(404);
    expect((await api(1, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
  }, 30_000);

  test('is 503 while NATS is away, does nothing later, and works when NATS is back', async () => {
    const sessions = await call(0, 5);
    const [elsewhere = ''] = await call(1);
    node(0).nats.set('blackhole');
    const answers = await Promise.all(sessions.map((sessionUuid) => ask(1, 'DELETE', `/v1/sessions/${sessionUuid}`)));
    for (const { status, headers } of answers) expect([status, headers.get('retry-after')]).toEqual([503, '2']);
    // The owner's own commands work.
    expect((await api(0, 'DELETE', `/v1/sessions/${sessions[0]}`)).status).toBe(202);
    await receiver.event('session.ended', sessions[0]);
    const ready = async () => await fetch(`${node(0).platform.url}/readyz`);
    await eventually(async () => (await (await ready()).text()).includes('"nats":false'), 'the node to tell it');
    expect((await ready()).status).toBe(200);
    // That it reaches nobody says nothing of the others.
    expect((await ask(0, 'DELETE', `/v1/sessions/${elsewhere}`)).status).toBe(503);
    expect(JSON.stringify((await node(0).platform.operator('GET', '/nodes')).body)).not.toContain('"suspect":true');
    node(0).nats.set('pass');
    const again = () => ask(1, 'POST', `/v1/sessions/${sessions[1]}/playback/stop`, {});
    await eventually(async () => (await again()).status !== 503, 'NATS to come back');
    await Bun.sleep(1_000);
    for (const sessionUuid of sessions.slice(1)) expect(receiver.names(sessionUuid)).not.toContain('session.ended');
    for (const sessionUuid of sessions.slice(1)) expect((await api(2, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
  }, 60_000);

  test('with a key whose owner is stopped is 503, then 409, and acts once when it is tried again', async () => {
    const [sessionUuid = ''] = await call(0);
    const path = `/v1/sessions/${sessionUuid}/recordings`;
    const body = { direction: 'both', channels: 'mono' };
    const key = { 'idempotency-key': 'stopped' };
    node(0).platform.signal('SIGSTOP');
    expect((await ask(1, 'POST', path, body, key)).status).toBe(503);
    expect((await ask(2, 'POST', path, body, key)).status).toBe(409);
    node(0).platform.signal('SIGCONT');
    let last: Answered | undefined;
    await eventually(async () => {
      last = await ask(2, 'POST', path, body, key);
      return last.status === 202;
    }, 'the retry');
    const replay = await api(1, 'POST', path, body, key);
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
    expect(replay.body).toEqual(last?.body ?? {});
    // A node that was just stopped may be a suspect for a moment yet.
    const list = await api(1, 'GET', path);
    expect(list.body.recordings).toHaveLength(1);
    expect((await api(1, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
  }, 60_000);

  test('shares the buckets of an application over all nodes', async () => {
    for (let tries = 1; ; tries += 1) {
      const asked = await Promise.all(Array.from({ length: 60 }, (_, n) => api(n % 3, 'GET', '/v1/sessions')));
      const admitted = asked.filter(({ status }) => status === 200).length;
      expect(asked.filter(({ status }) => status === 429).length).toBe(60 - admitted);
      // 40 at once and 20 a second.
      expect(admitted).toBeGreaterThanOrEqual(40);
      if (admitted <= 50) break;
      // The node that has the buckets was too busy to be asked, and the others took limits of their own.
      expect(tries).toBeLessThan(5);
      await Bun.sleep(3_000);
    }
  }, 60_000);

  test('shares the buckets of a Room over all nodes, and what is refused gives its token back there', async () => {
    const [first = ''] = await call(0);
    const [second = ''] = await call(1);
    const [outsider = ''] = await call(1);
    const made = await api(0, 'POST', '/api/v1/rooms', {});
    expect(made.status).toBe(201);
    const room = `/api/v1/rooms/${made.body.room_id}`;
    const path = `${room}/members`;
    const join = (sessionUuid: string, at: number) => ask(at, 'POST', path, { session_uuid: sessionUuid });
    // The Room's home is the node of its first member.
    for (const [at, sessionUuid] of [first, second].entries()) {
      expect((await api(at, 'POST', path, { session_uuid: sessionUuid })).status).toBe(202);
      await receiver.event('room.member.joined', sessionUuid);
    }

    // 100 at once and 30 a second. A member that joins again changes nothing, and keeps its token.
    for (let tries = 1; ; tries += 1) {
      const started = performance.now();
      const own: Answered[] = [];
      let isOver = false;
      const hammers = Array.from({ length: 16 }, async () => {
        while (!isOver) own.push(await join(first, 0));
      });
      const others: Answered[] = [];
      try {
        await eventually(() => own.some(({ status }) => status === 429), 'a bucket that is empty');
        // One after the other: a join to another node's Room waits for the end of the Session's last one. The bucket is
        // kept empty meanwhile, which on a busy machine would fill faster than these take from it.
        while (others.length < 130 && others.at(-1)?.status !== 429) others.push(await join(second, 1 + (others.length % 2)));
      } finally {
        isOver = true;
        await Promise.all(hammers);
      }
      const most = 101 + ((performance.now() - started) / 1000) * 30;
      const admitted = [...own, ...others].filter(({ status }) => status === 202).length;
      // The second member's first join took one.
      expect(admitted).toBeGreaterThanOrEqual(99);
      const last = others.at(-1);
      if (admitted <= most && last?.status === 429) {
        expect([last.headers.get('retry-after'), last.body.code]).toEqual(['1', 'rate_limited']);
        break;
      }
      // The home was too busy to be asked, and the other nodes took limits of their own, or it was slower than the
      // refill.
      expect(tries).toBeLessThan(5);
      await Bun.sleep(4_000);
    }

    // Who is no member cannot be removed: the token that was taken at the home is there again.
    for (let batch = 0; batch < 8; batch += 1) {
      const removed = await Promise.all(Array.from({ length: 30 }, () => ask(1, 'DELETE', `${path}/${outsider}`)));
      expect(removed.filter(({ status }) => status !== 404)).toEqual([]);
    }
    const ends = [first, second, outsider].map((sessionUuid) => api(0, 'DELETE', `/v1/sessions/${sessionUuid}`));
    for (const { status } of await Promise.all(ends)) expect(status).toBe(202);
    await receiver.event('session.ended', first);
    await receiver.event('session.ended', second);
    await eventually(async () => (await api(0, 'GET', room)).body.member_count === 0, 'an empty Room');
    expect((await api(0, 'DELETE', room)).status).toBe(202);
  }, 90_000);

  test('dials as often as the application may, and with as many channels as the trunk has, over all nodes', async () => {
    const number = '+15550002';
    const trunk = { uri: 'sip:127.0.0.1:9', inbound_cidrs: [], max_channels: 5 };
    const dial = (at: number, name: string) =>
      api(at, 'POST', '/v1/sessions:dial', { from: number, to: '+15550199', ring_timeout_sec: 60, trunk: name });
    expect((await node(0).platform.operator('PUT', '/trunks/narrow', trunk)).status).toBe(204);
    // What is set up at one node is in use at the others at once: NATS tells them, since they look for it each 5 s
    // only.
    for (const at of [1, 2]) {
      let first: Answered | undefined;
      await eventually(
        async () => {
          first = await dial(at, 'narrow');
          return first.status === 202;
        },
        'the trunk',
        4_000,
      );
      const sessionUuid = String(first?.body.session_uuid);
      expect((await api(at, 'DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
      await receiver.event('session.ended', sessionUuid);
    }
    const narrow = await Promise.all(Array.from({ length: 12 }, (_, n) => dial(n % 3, 'narrow')));
    const admitted = narrow.filter(({ status }) => status === 202);
    expect(narrow.map(({ status }) => status).sort()).toEqual([...Array(5).fill(202), ...Array(7).fill(529)]);
    // A channel that is given back at one node is another's.
    const [first] = admitted;
    const ended = await api(1, 'DELETE', `/v1/sessions/${first?.body.session_uuid}`);
    expect(ended.status).toBe(202);
    await receiver.event('session.ended', String(first?.body.session_uuid));
    await eventually(async () => (await dial(2, 'narrow')).status === 202, 'a free channel', 5_000);
    expect((await dial(0, 'narrow')).status).toBe(529);

    // The 529 gave their tokens back, and a second gives ten: 20 at once and 10 a second.
    await Bun.sleep(2_500);
    const started = performance.now();
    const many = await Promise.all(Array.from({ length: 60 }, (_, n) => dial(n % 3, 'carrier')));
    const dialled = many.filter(({ status }) => status === 202).length;
    expect(dialled).toBeGreaterThanOrEqual(20);
    expect(dialled).toBeLessThanOrEqual(21 + ((performance.now() - started) / 1000) * 10);
    expect(many.filter(({ status }) => status === 429).length).toBe(60 - dialled);
    const left = JSON.parse(JSON.stringify((await api(1, 'GET', '/v1/sessions')).body.sessions));
    const ends = await Promise.all(
      left.map((each: { session_uuid: string }, n: number) => api(n % 3, 'DELETE', `/v1/sessions/${each.session_uuid}`)),
    );
    expect(ends.filter(({ status }) => status !== 202)).toEqual([]);
  }, 90_000);

  test('dials over a trunk as often as its carrier takes it, over all nodes', async () => {
    const other = await cluster.application(receiver, '+15550005');
    const trunk = { uri: 'sip:127.0.0.1:9', inbound_cidrs: [], max_cps: 2 };
    expect((await node(0).platform.operator('PUT', '/trunks/paced', trunk)).status).toBe(204);
    const order = { from: '+15550005', to: '+15550199', ring_timeout_sec: 60, trunk: 'paced' };
    const dial = (at: number) => node(at).platform.api(other, 'POST', '/v1/sessions:dial', order);
    const isKnown = async (at: number) => (await dial(at)).status === 202;
    for (const at of [1, 2]) await eventually(() => isKnown(at), 'the trunk', 4_000);
    // All turns of the next two seconds are free again.
    await Bun.sleep(2_500);
    const started = performance.now();
    const dials = await Promise.all(Array.from({ length: 12 }, (_, n) => dial(n % 3)));
    const elapsedSec = (performance.now() - started) / 1000;
    const placed = dials.filter(({ status }) => status === 202).length;
    expect(placed + dials.filter(({ status }) => status === 529).length).toBe(12);
    // One at once and those of two seconds; each node for itself would have as many.
    expect(placed).toBeGreaterThanOrEqual(5);
    expect(placed).toBeLessThanOrEqual(6 + elapsedSec * 2);
  }, 60_000);

  test('makes as many Rooms as the application may have, wherever they are asked for', async () => {
    const limited = await node(0).platform.operator('PATCH', `/apps/${app.appUuid}`, { room_limits: { max_rooms: 7 } });
    expect(limited.status).toBeLessThan(300);
    const made = await Promise.all(Array.from({ length: 9 }, (_, n) => api(n % 3, 'POST', '/api/v1/rooms', {})));
    expect(made.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 201, 201, 201, 403, 403]);
    const rooms = made.filter(({ status }) => status === 201).map(({ body }) => String(body.room_id));
    const { body: listed } = await api(1, 'GET', '/api/v1/rooms');
    expect(listed.rooms).toHaveLength(7);
    for (const [n, room] of rooms.entries()) {
      expect((await api((n + 1) % 3, 'GET', `/api/v1/rooms/${room}`)).body).toMatchObject({ room_id: room, member_count: 0 });
    }
    // An empty Room follows its first member.
    const [sessionUuid = ''] = await call(2);
    for (const room of rooms.slice(0, 1)) {
      expect((await api(1, 'POST', `/api/v1/rooms/${room}/members`, { session_uuid: sessionUuid })).status).toBe(202);
      await receiver.event('room.member.joined', sessionUuid);
      for (const at of [0, 1, 2])
        expect((await api(at, 'GET', `/api/v1/rooms/${room}/members`)).body).toEqual({
          members: [{ uuid: sessionUuid, muted: false }],
        });
    }
    for (const [n, room] of rooms.entries()) expect((await api(n % 3, 'DELETE', `/api/v1/rooms/${room}`)).status).toBe(202);
    // Other tests delete Rooms of theirs.
    const isDeleted = (room: string) =>
      receiver.events.some(({ event, body }) => event === 'room.deleted' && body.room_id === room);
    await receiver.until(() => rooms.every(isDeleted), 'the deletions');
    expect((await api(0, 'GET', '/api/v1/rooms')).body.rooms).toEqual([]);
    expect(receiver.names(sessionUuid)).toContain('room.member.left');
  }, 60_000);

  test('whose events are delivered by a node that is killed: they go on in order at another one, none lost', async () => {
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

/** A recording has these once there is sound in it, which depends on the moment. */
const WHEN_AVAILABLE = ['available', 'media_url', 'live_url', 'expires_at', 'duration'];

/** The names and kinds of a body's fields: identifiers and times differ from call to call. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' && /[0-9a-f]{8}-|\d{4}-\d\d/.test(value) ? 'id' : value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !WHEN_AVAILABLE.includes(name))
      .map(([name, each]) => [name, shapeOf(each)]),
  );
}
