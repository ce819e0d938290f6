/**
 * Recordings while the platform under them goes: its database killed, and an orderly stop. Nothing is lost or told
 * twice, and the audio goes on.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Admitted, admission, checkNothingOpen, checkRecordings } from '../support/recording-check.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';
import { TalkingPeer } from '../support/talking-peer.ts';

/** How often the database is killed, each time as soon as it is started again. */
const KILLS = 2;
const BOTH = { direction: 'both', channels: 'mono', include_gaps: true } as const;

describe.skipIf(!sippInstalled)('recordings', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: TalkingPeer;
  const receiver = new Receiver();
  const callers: Sipp[] = [];
  const sounds = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(600, 1)) });
  const admitted: Admitted[] = [];

  beforeAll(async () => {
    peer = await TalkingPeer.open();
    platform = await Platform.start({ MEDIA_WORKERS: '2', WEBHOOK_RETRY_SCALE: '0.1' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);
  afterAll(async () => {
    for (const caller of callers) caller.stop();
    await platform?.stop();
    await receiver.stop();
    await sounds.stop(true);
    peer.close();
  });

  const api = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    platform.api(app, method, path, body, headers);
  /** Answered calls, which speak; those that hang up do so by themselves. */
  const calls = async (count: number, hangUpMs?: number): Promise<readonly string[]> => {
    const known = new Set(receiver.events.map(({ body }) => body.session_uuid));
    const keys = { rtp_port: String(peer.port) };
    const scenario = hangUpMs === undefined ? 'caller-waits' : 'caller-hangs-up';
    callers.push(await sipp({ scenario, to: platform.sipUdp, calls: count, rate: 50, keys, pauseMs: hangUpMs ?? 0 }));
    const fresh = () =>
      receiver.events
        .filter(({ event, body }) => event === 'session.created' && !known.has(body.session_uuid))
        .map(({ body }) => String(body.session_uuid));
    await receiver
      .until(() => fresh().length === count, 'the calls')
      .catch((error: unknown) => {
        throw new Error(`${error}\nSIPp: ${callers.at(-1)?.errors()}\nthe platform: ${platform.output.slice(-5_000)}`);
      });
    await Promise.all(fresh().map((each) => api('POST', `/v1/sessions/${each}/answer`)));
    for (const each of fresh()) await receiver.event('session.answered', each);
    return fresh();
  };
  const record = async (owner: Admitted['owner']) => {
    const made =
      'room_id' in owner
        ? await api('POST', `/api/v1/rooms/${owner.room_id}/playback/record`, { include_gaps: true })
        : await api('POST', `/v1/sessions/${owner.session_uuid}/recordings`, BOTH);
    if (made.status === 202) admitted.push(admission(owner, made.body));
    return made.status;
  };
  const room = async (...members: string[]): Promise<string> => {
    const roomId = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
    const joined = receiver.count('room.member.joined') + members.length;
    for (const session_uuid of members) await api('POST', `/api/v1/rooms/${roomId}/members`, { session_uuid });
    await receiver.until(() => receiver.count('room.member.joined') === joined, 'the members');
    return roomId;
  };
  const end = async (sessions: readonly string[]) => {
    for (const each of sessions) expect((await api('DELETE', `/v1/sessions/${each}`)).status).toBe(202);
    for (const each of sessions) await receiver.event('session.ended', each);
  };
  const remove = async (rooms: readonly string[]) => {
    for (const each of rooms) expect((await api('DELETE', `/api/v1/rooms/${each}`)).status).toBe(202);
    const deleted = () =>
      receiver.events.filter(({ event, body }) => event === 'room.deleted' && rooms.includes(String(body.room_id)));
    await receiver.until(() => deleted().length === rooms.length, 'the ends of the Rooms');
  };
  /** Recordings that were admitted since have begun to be written. */
  const heard = async (since: number) => {
    const available = () =>
      new Set(
        receiver.events.filter(({ event }) => event === 'recording.became_available').map(({ body }) => body.recording_uuid),
      );
    const all = () => admitted.slice(since).every(({ recordingUuid }) => available().has(recordingUuid));
    await receiver.until(all, 'the audio');
  };

  test('are one for one Idempotency-Key, however many ask at once', async () => {
    const [session_uuid = ''] = await calls(1);
    const path = `/v1/sessions/${session_uuid}/recordings`;
    const headers = { 'idempotency-key': 'one' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => api('POST', path, BOTH, headers)));
    const [first] = answers.filter(({ status }) => status === 202);
    for (const { status, body } of answers) {
      if (status === 202) expect(body).toEqual(first?.body ?? {});
      else expect([status, body.code]).toEqual([409, 'conflict']);
    }
    const again = await api('POST', path, BOTH, headers);
    expect([again.status, again.headers.get('idempotent-replayed'), again.body]).toEqual([202, 'true', first?.body ?? {}]);
    expect(await api('POST', path, { ...BOTH, include_gaps: false }, headers)).toMatchObject({ status: 422 });
    expect((await api('GET', path)).body.recordings).toHaveLength(1);
    admitted.push(admission({ session_uuid }, again.body));
    await heard(0);
    await end([session_uuid]);
    expect(await api('POST', path, BOTH, headers)).toMatchObject({ status: 202, body: again.body });
    await checkRecordings(platform, receiver, admitted);
    await checkNothingOpen(platform);
  }, 60_000);

  test('go on while the database is killed; ends that came meanwhile are told when it is back, once and in order', async () => {
    const waiting = await calls(3);
    const hangingUp = await calls(2, 2_500);
    const roomId = await room(waiting[0] ?? '', waiting[1] ?? '');
    const before = admitted.length;
    for (const session_uuid of [...waiting, ...waiting]) expect(await record({ session_uuid })).toBe(202);
    const [masked, ...whole] = admitted.slice(before);
    for (const session_uuid of hangingUp) expect(await record({ session_uuid })).toBe(202);
    expect(await record({ room_id: roomId })).toBe(202);
    await heard(before);
    const began = peer.said();

    // Something of the Room and of a call ends of itself while the database is away.
    await api('POST', `/api/v1/rooms/${roomId}/playback/play`, { type: 'files', urls: [sounds.url.href] });
    await api('POST', `/v1/sessions/${waiting[2]}/playback/play`, { type: 'files', urls: [sounds.url.href] });
    // Commands meanwhile are refused or were stored, and each is answered.
    const pidFile = join(platform.dataDir, 'postgres/postmaster.pid');
    const killed = new Set<number>();
    const meanwhile: Promise<number>[] = [];
    for (let back = 0; back < 3 || killed.size < KILLS; ) {
      const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8').split('\n')[0]) : 0;
      if (killed.size < KILLS && pid > 0 && !killed.has(pid)) {
        process.kill(pid, 'SIGKILL');
        killed.add(pid);
      }
      const mask = `/v1/sessions/${waiting[0]}/recordings/${masked?.recordingUuid}/mask`;
      meanwhile.push(api('POST', mask, {}).then(({ status }) => status));
      meanwhile.push(api('POST', `/api/v1/rooms/${roomId}/playback/volume`, { volume: 50 }).then(({ status }) => status));
      meanwhile.push(record({ session_uuid: waiting[2] ?? '' }));
      await peer.says(20);
      back = (await fetch(`${platform.url}/readyz`)).status === 200 ? back + 1 : 0;
    }
    const statuses = await Promise.all(meanwhile);
    for (const status of statuses) expect([202, 429, 503]).toContain(status);
    for (const each of hangingUp) await receiver.event('session.ended', each);
    await receiver.event('room.playback.ended');
    await receiver.event('playback.ended', waiting[2]);
    // The three that wait heard the most; a machine that is busy has them hear less, and record less.
    const frames = [...peer.said()].map(([port, said]) => said - (began.get(port) ?? 0)).sort((one, other) => other - one);
    await end(waiting);
    await remove([roomId]);
    const lengths = await checkRecordings(platform, receiver, admitted);
    await checkNothingOpen(platform);
    // The audio went on, but for the one that was masked from the outage on.
    for (const { recordingUuid } of whole) {
      expect(lengths.get(recordingUuid)).toBeGreaterThan((frames[waiting.length - 1] ?? Number.NaN) * 20 - 500);
    }
  }, 60_000);

  test('of Sessions and Rooms are finished and told of by an orderly stop, and not again by the next start', async () => {
    const sessions = await calls(4);
    const rooms = [await room(...sessions.slice(0, 2)), await room(sessions[2] ?? ''), await room()];
    const before = admitted.length;
    for (const session_uuid of [...sessions, ...sessions]) expect(await record({ session_uuid })).toBe(202);
    for (const room_id of rooms) expect(await record({ room_id })).toBe(202);
    await heard(before);
    await peer.says(200);
    const stopping = platform.terminate();
    // Somebody goes on asking for recordings of Rooms that outlive their calls, until nobody answers.
    await Promise.all(
      rooms.map(async (room_id) => {
        while ((await record({ room_id }).catch(() => undefined)) !== undefined);
      }),
    );
    await stopping;
    await platform.start();
    for (const each of sessions) await receiver.event('session.ended', each);
    await remove(rooms);
    await checkRecordings(platform, receiver, admitted);
    await checkNothingOpen(platform);
  }, 60_000);
});
