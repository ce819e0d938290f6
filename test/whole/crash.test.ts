/** `kill -9` with calls up: what was committed is delivered, in order, once; every call ends once. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';

const CALLS = 50;

/**
 * What a killed platform's recordings had: bytes of sound put, by the rings it left in memory, and bytes of sound in
 * their files.
 */
function leftBehind({ ringFolder, dataDir }: Platform): Map<string, { put: number; written: number }> {
  if (!existsSync(ringFolder)) return new Map();
  return new Map(
    readdirSync(ringFolder).map((name) => {
      const put = readFileSync(join(ringFolder, name)).readUInt32LE(64);
      const wav = name.replace(/\.ring$/, '');
      return [wav.replace(/\.wav$/, ''), { put, written: statSync(join(dataDir, 'recordings', wav)).size - 44 }];
    }),
  );
}

describe.skipIf(!sippInstalled)('kill -9', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const taken = new Set<string>();

  beforeAll(async () => {
    // A call that nobody answers for so long is declined, and a busy machine takes its time.
    platform = await Platform.start({ ORPHAN_TIMEOUT_SEC: '4', WEBHOOK_RETRY_SCALE: '0.1' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  /**
   * Answers each new call as it comes: nobody waits for long here. Resolves with the Sessions when there were so many.
   */
  const answerEach = async (calls: number): Promise<readonly string[]> => {
    const statuses = new Map<string, Promise<number>>();
    await receiver.until(() => {
      for (const { event, body } of receiver.events) {
        const sessionUuid = String(body.session_uuid);
        if (event !== 'session.created' || statuses.has(sessionUuid) || taken.has(sessionUuid)) continue;
        taken.add(sessionUuid);
        statuses.set(
          sessionUuid,
          platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`).then(({ status }) => status),
        );
      }
      return statuses.size === calls;
    }, 'all calls');
    expect(new Set(await Promise.all(statuses.values()))).toEqual(new Set([202]));
    return [...statuses.keys()];
  };

  test('of the platform with 50 answered calls: 50 synthetic ends after the restart, and no event lost, doubled or out of order', async () => {
    // Half of the answers' events are refused, so that they are still to be sent when the platform dies.
    const refused = new Set<unknown>();
    receiver.misbehave = (event) => {
      if (event.event !== 'session.answered' || refused.size >= CALLS / 2 || refused.has(event.session_uuid)) return undefined;
      refused.add(event.session_uuid);
      return new Response(null, { status: 500 });
    };
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: CALLS, rate: 50, timeoutSec: 30 });
    const answered = await answerEach(CALLS);
    await receiver.until(() => receiver.count('session.answered') >= CALLS / 2, 'half of the answers');
    const list = async () => (await platform.api(app, 'GET', '/v1/sessions?state=answered')).body.sessions;
    // Half of the events are held back, so the list tells when all are answered.
    for (let asked = 0; asked < 30 && String(await list()).split(',').length < CALLS; asked++) await Bun.sleep(100);
    expect(await list()).toHaveLength(CALLS);

    await platform.kill();
    caller.stop();
    await platform.start();
    await receiver.until(() => receiver.count('session.ended') === CALLS, 'the ends', 20_000);
    for (const sessionUuid of answered) {
      expect(receiver.names(sessionUuid)).toEqual(['session.created', 'session.answered', 'session.ended']);
    }
    const ends = receiver.events.filter((event) => event.event === 'session.ended');
    for (const end of ends) expect(end.body).toMatchObject({ answered: false, duration_seconds: 0, hangup_by: 'system' });
    expect(receiver.badSignatures).toBe(0);
    expect(await list()).toEqual([]);
  }, 90_000);

  test('with a Room open: its members have left as orphans, and the empty Room lives on', async () => {
    receiver.misbehave = undefined;
    const before = receiver.events.length;
    const since = (name: string) => receiver.events.slice(before).filter((event) => event.event === name);
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: 3, rate: 50, timeoutSec: 30 });
    const sessions = await answerEach(3);
    await receiver.until(() => since('session.answered').length === 3, 'the answers');
    const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
    const path = `/api/v1/rooms/${room.room_id}`;
    for (const session_uuid of sessions) await platform.api(app, 'POST', `${path}/members`, { session_uuid });
    await receiver.until(() => since('room.member.joined').length === 3, 'the joins');

    await platform.kill();
    caller.stop();
    await platform.start();
    await receiver.until(() => since('session.ended').length === 3, 'the ends', 20_000);
    for (const sessionUuid of sessions) {
      expect(receiver.names(sessionUuid).slice(-3)).toEqual(['room.member.joined', 'room.member.left', 'session.ended']);
    }
    expect(since('room.member.left').map((event) => event.body.reason)).toEqual(['orphan', 'orphan', 'orphan']);
    expect((await platform.api(app, 'GET', path)).body).toMatchObject({ member_count: 0, room_id: room.room_id });
    expect((await platform.api(app, 'GET', `${path}/members`)).body).toEqual({ members: [] });
    expect((await platform.api(app, 'DELETE', path)).status).toBe(202);
    expect((await receiver.event('room.deleted')).body).toMatchObject({ room_id: room.room_id, reason: 'closed' });
  }, 90_000);

  test('during a playback, a collection of digits and the playback of a Room: each has failed once, in order, before its Session ends', async () => {
    const before = receiver.events.length;
    const since = (name: string) => receiver.events.slice(before).filter((event) => event.event === name);
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: 2, rate: 50, timeoutSec: 30 });
    const [first = '', second = ''] = await answerEach(2);
    await receiver.until(() => since('session.answered').length === 2, 'the answers');
    const wav = toneWav(500, 60);
    using source = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(wav) });
    const urls = [`http://127.0.0.1:${source.port}/a.wav`];
    const post = async (path: string, body: unknown) => {
      const reply = await platform.api(app, 'POST', path, body);
      expect(reply.status).toBeLessThan(300);
      return reply.body;
    };
    const play = await post(`/v1/sessions/${first}/playback/play`, { type: 'files', urls });
    const collect = await post(`/v1/sessions/${first}/dtmf/collect`, {
      first_digit_timeout_ms: 600_000,
      total_timeout_ms: 600_000,
    });
    const sent = [await post(`/v1/sessions/${first}/dtmf/send`, { digits: `${'w'.repeat(40)}1` })];
    sent.push(await post(`/v1/sessions/${first}/dtmf/send`, { digits: '2' }));
    const room = await post('/api/v1/rooms', {});
    await post(`/api/v1/rooms/${room.room_id}/members`, { session_uuid: second });
    await receiver.until(() => since('room.member.joined').length === 1, 'the join');
    const roomPlay = await post(`/api/v1/rooms/${room.room_id}/playback/play`, { type: 'files', urls });
    await receiver.until(() => since('playback.started').length === 1, 'the playback');

    await platform.kill();
    caller.stop();
    await platform.start();
    await receiver.until(() => since('session.ended').length === 2, 'the ends', 20_000);
    expect(receiver.names(first).slice(-6)).toEqual([
      'playback.started',
      'digits.collected',
      'playback.failed',
      'dtmf.sent',
      'dtmf.sent',
      'session.ended',
    ]);
    expect(since('dtmf.sent').map(({ body }) => [body.operation_uuid, body.status])).toEqual(
      sent.map(({ operation_uuid }) => [operation_uuid, 'stopped']),
    );
    expect(since('digits.collected').map(({ body }) => [body.operation_uuid, body.status])).toEqual([
      [collect.operation_uuid, 'failure'],
    ]);
    expect(since('playback.failed').map(({ body }) => [body.operation_uuid, body.reason, body.urls])).toEqual([
      [play.operation_uuid, 'media_unavailable', urls],
    ]);
    expect(since('room.playback.failed').map(({ body }) => [body.operation_uuid, body.error, body.urls])).toEqual([
      [roomPlay.operation_uuid, 'playback_error', urls],
    ]);
    // A second restart finds nothing to tell.
    const told = receiver.events.length;
    await platform.kill();
    await platform.start();
    expect((await platform.api(app, 'DELETE', `/api/v1/rooms/${room.room_id}`)).status).toBe(202);
    await receiver.until(() => since('room.deleted').length === 1, 'the end of the Room');
    expect(receiver.events.slice(told).map(({ event }) => event)).toEqual(['room.deleted']);
  }, 90_000);

  test('during ten recordings: each is whole to the last frame, is told as ended once, before its Session, and is served', async () => {
    const before = receiver.events.length;
    const since = (name: string) => receiver.events.slice(before).filter((event) => event.event === name);
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: 5, rate: 50, timeoutSec: 30 });
    const sessions = await answerEach(5);
    await receiver.until(() => since('session.answered').length === 5, 'the answers');
    const begunAt = new Map<string, number>();
    for (const sessionUuid of [...sessions, ...sessions]) {
      const made = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/recordings`, {
        direction: 'both',
        channels: 'mono',
        include_gaps: true,
      });
      begunAt.set(String(made.body.recording_uuid), performance.now());
    }
    await receiver.until(() => since('recording.became_available').length === 10, 'the recordings');
    const last = performance.now() + 1_000;
    while (performance.now() < last) await platform.api(app, 'GET', '/v1/sessions?limit=1');
    const killed = performance.now();
    await platform.kill();
    caller.stop();
    const left = leftBehind(platform);
    await platform.start();
    await receiver.until(() => since('session.ended').length === 5, 'the ends', 20_000);
    const ends = since('recording.ended');
    expect(ends.map(({ body }) => body.recording_uuid).sort()).toEqual([...begunAt.keys()].sort());
    for (const sessionUuid of sessions)
      expect(receiver.names(sessionUuid).slice(-3)).toEqual(['recording.ended', 'recording.ended', 'session.ended']);
    for (const { body } of ends) {
      const served = await fetch(String(body.pull_url));
      const wav = Buffer.from(await served.arrayBuffer());
      // All that a tick had put, to the byte, of which the file alone lacked up to a second.
      const there = left.get(String(body.recording_uuid));
      if (there !== undefined) expect(wav.length - 44).toBe(there.put);
      const said = killed - (begunAt.get(String(body.recording_uuid)) ?? 0);
      expect(wav.readUInt32LE(40)).toBe(wav.length - 44);
      expect((wav.length - 44) / 16).toBeGreaterThan(said - 500);
      expect(body.duration).toBe(Math.floor((wav.length - 44) / 16_000));
    }
    if (left.size === 0) return; // no memory on this machine outlives the process
    expect(left.size).toBe(10);
    expect(Math.max(...[...left.values()].map(({ put, written }) => put - written))).toBeGreaterThan(16 * 100);
    // Nothing is left of what was in memory.
    expect(readdirSync(platform.ringFolder)).toEqual([]);
  }, 90_000);
});
