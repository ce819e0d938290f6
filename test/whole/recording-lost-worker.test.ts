/** A media worker that is lost under recorded calls and Rooms: what was on it ends, whole; what was not goes on. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Admitted, admission, checkRecordings } from '../support/recording-check.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';
import { TalkingPeer } from '../support/talking-peer.ts';

const CALLS = 6;
const ROOMS = 3;

describe.skipIf(!sippInstalled)('a media worker that is lost', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: TalkingPeer;
  let callers: Sipp;
  const receiver = new Receiver();
  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);

  beforeAll(async () => {
    const preload = join(import.meta.dir, '../support/loses-worker.ts');
    platform = await Platform.start({ MEDIA_WORKERS: '2', BUN_OPTIONS: `--preload=${preload}` });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
    peer = await TalkingPeer.open();
    const keys = { rtp_port: String(peer.port) };
    callers = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: CALLS, rate: 50, keys });
    await receiver.until(() => receiver.count('session.created') === CALLS, 'the calls');
  }, 60_000);

  afterAll(async () => {
    callers?.stop();
    await platform?.stop();
    await receiver.stop();
    peer?.close();
  });

  test('ends the calls and the recordings on it, each once and with a whole file; a Room on it is left at once by who joins', async () => {
    const sessions = receiver.events.map(({ body }) => String(body.session_uuid));
    for (const each of sessions) await api('POST', `/v1/sessions/${each}/answer`);
    await receiver.until(() => receiver.count('session.answered') === CALLS, 'the answers');
    const rooms: string[] = [];
    for (let made = 0; made < ROOMS; made++) rooms.push(String((await api('POST', '/api/v1/rooms', {})).body.room_id));
    for (const [at, session_uuid] of sessions.slice(0, 4).entries())
      await api('POST', `/api/v1/rooms/${rooms[at % 2]}/members`, { session_uuid });
    await receiver.until(() => receiver.count('room.member.joined') === 4, 'the members');

    const admitted: Admitted[] = [];
    const record = async (owner: Admitted['owner'], path: string, body: object) => {
      const made = await api('POST', path, body);
      expect(made.status).toBe(202);
      admitted.push(admission(owner, made.body));
    };
    for (const room_id of rooms) await record({ room_id }, `/api/v1/rooms/${room_id}/playback/record`, { include_gaps: true });
    for (const session_uuid of [...sessions, ...sessions])
      await record({ session_uuid }, `/v1/sessions/${session_uuid}/recordings`, { direction: 'both', channels: 'mono' });
    await receiver.until(() => receiver.count('recording.became_available') === admitted.length, 'the audio');

    process.kill(platform.pid, 'SIGUSR2');
    await receiver.event('session.ended');
    const list = async () =>
      ((await api('GET', '/v1/sessions')).body.sessions as { session_uuid: string }[]).map((each) => each.session_uuid);
    await receiver.until(
      () => receiver.count('recording.ended') > receiver.count('session.ended') * 2,
      'the recording of a Room',
    );
    // All calls of the lost worker end at the same time: those are left that are there when no end has come for a
    // while.
    for (let ended = -1; ended !== receiver.count('session.ended'); await peer.says(25)) ended = receiver.count('session.ended');
    let [survivor = ''] = await list();
    expect(sessions).toContain(survivor);
    // The worker is replaced, and the node is ready by itself.
    for (let asked = 0; asked < 200 && (await fetch(`${platform.url}/readyz`)).status !== 200; asked++) await peer.says(1);
    expect((await fetch(`${platform.url}/readyz`)).status).toBe(200);
    for (const roomId of rooms) {
      const joined = () =>
        receiver.of(survivor).some(({ event, body }) => event === 'room.member.joined' && body.room_id === roomId);
      const ask = async () => (await api('POST', `/api/v1/rooms/${roomId}/members`, { session_uuid: survivor })).status;
      // On a busy machine the end of a call of the lost worker may still have been under way: another one survives
      // then. Its join to the Room before may still be under way too: 409.
      let status = await ask();
      for (let tries = 0; status !== 202 && tries < 100; tries++) {
        await peer.says(10);
        if (status === 404) survivor = (await list())[0] ?? '';
        status = await ask();
      }
      expect(status).toBe(202);
      // It joins, or it may ask again; it does not wait for a Room that nothing is heard of.
      let waits = true;
      for (let asked = 0; waits && asked < 100; asked++) {
        await peer.says(10);
        waits = !joined() && (await ask()) === 409;
      }
      expect(waits).toBe(false);
    }
    for (const each of await list()) expect((await api('DELETE', `/v1/sessions/${each}`)).status).toBe(202);
    for (const each of rooms) expect((await api('DELETE', `/api/v1/rooms/${each}`)).status).toBe(202);
    await receiver.until(() => receiver.count('session.ended') === CALLS, 'the ends of the calls');
    await receiver.until(() => receiver.count('room.deleted') === ROOMS, 'the ends of the Rooms');
    const lengths = await checkRecordings(platform, receiver, admitted);
    expect(lengths.size).toBe(admitted.length);
  }, 60_000);
});
