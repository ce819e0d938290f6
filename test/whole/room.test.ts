/** Whole Rooms: SIPp calls whose audio are sockets of ours, joined, muted, turned up and down, moved, hung up. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import {
  bestPart,
  type Caller,
  createRoom,
  hangUp as endCalls,
  hearUntil,
  join as joinRoom,
  level,
  call as placeCall,
} from '../support/room-call.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';
/** What a caller says, in dB of full scale. */
const TONE_DB = 20 * Math.log10(8000 / 32_768);

describe.skipIf(!sippInstalled)('a Room', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      const hz = { '/tone.wav': 1000, '/music.wav': 1400 }[new URL(request.url).pathname];
      return hz === undefined ? new Response('no', { status: 404 }) : new Response(toneWav(hz, 1));
    },
  });

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2' });
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);

  const stage = () => ({ platform, receiver, app });
  const call = (hz: number) => placeCall(stage(), hz);
  const create = (more: Record<string, unknown> = {}) => createRoom(stage(), more);
  const join = (roomId: string, { sessionUuid }: Caller) => joinRoom(stage(), roomId, sessionUuid);
  const hangUp = (...callers: Caller[]) => endCalls(stage(), ...callers);
  /** Waits until, of `tones`, a caller hears these and no other. */
  const hears = (caller: Caller, tones: readonly number[], expected: readonly number[]) =>
    hearUntil(caller, (pcm) => tones.every((hz) => level(pcm, hz) > -25 === expected.includes(hz)), `the tones ${expected}`);
  /** The body of the first event of a name that a Room has, told already or to come. */
  const eventOf = async (roomId: string, name: string) => {
    const told = () => receiver.events.find(({ event, body }) => event === name && body.room_id === roomId)?.body;
    await receiver.until(() => told() !== undefined, `${name} of the Room`);
    return told();
  };
  const samplesOf = async (recordingUuid: unknown): Promise<Float32Array> => {
    const wav = await readFile(joinPath(platform.dataDir, 'recordings', `${recordingUuid}.wav`));
    return Float32Array.from({ length: (wav.length - 44) / 2 }, (_, at) => wav.readInt16LE(44 + 2 * at) / 32_768);
  };

  test('each of three hears the other two and not itself; mute and volume act in each direction', async () => {
    const a = await call(440);
    const b = await call(660);
    const c = await call(880);
    const roomId = await create();
    for (const caller of [a, b, c]) await join(roomId, caller);
    expect((await api('GET', `/api/v1/rooms/${roomId}`)).body).toMatchObject({
      member_count: 3,
      playback_status: 'stopped',
      playback_volume: 0,
    });
    const members = await api('GET', `/api/v1/rooms/${roomId}/members`);
    expect(members.body.members).toHaveLength(3);

    const tones = [440, 660, 880];
    for (const [at, caller] of [a, b, c].entries()) {
      const isRight = (heard: Float32Array): boolean => {
        const levels = tones.map((hz) => level(heard, hz));
        const others = levels.filter((_, tone) => tone !== at);
        return Math.min(...others) > -15 && Math.min(...others) - (levels[at] ?? 0) > 40;
      };
      await hearUntil(caller, isRight, 'the other two');
    }

    const isAt = (db: number) => (heard: Float32Array) => Math.abs(level(heard, 660) - TONE_DB - db) < 1;
    await hearUntil(a, isAt(0), 'the tone');
    expect((await api('POST', `/v1/sessions/${b.sessionUuid}/room/mute`)).status).toBe(202);
    const again = await api('POST', `/v1/sessions/${b.sessionUuid}/room/mute`);
    expect(again).toMatchObject({ status: 409, body: { message: 'Session is already muted' } });
    await hearUntil(a, (heard) => level(heard, 660) < TONE_DB - 40, 'one less');
    expect((await api('GET', `/api/v1/rooms/${roomId}/members/${b.sessionUuid}`)).body).toEqual({
      uuid: b.sessionUuid,
      muted: true,
    });
    await api('POST', `/v1/sessions/${b.sessionUuid}/room/unmute`);

    for (const [volume, direction, expected] of [
      [50, 'from_member', -6],
      [200, 'from_member', 6],
      [100, 'from_member', 0],
    ] as const) {
      const set = await api('POST', `/v1/sessions/${b.sessionUuid}/room/volume`, { volume, direction });
      const changed = () => receiver.of(b.sessionUuid).find((event) => event.body.operation_uuid === set.body.operation_uuid);
      await receiver.until(() => changed() !== undefined, 'the volume');
      expect(changed()?.body).toMatchObject({ event: 'room.member.volume_changed', room_id: roomId, volume, direction });
      await hearUntil(a, isAt(expected), `the volume ${volume}`);
    }
    await api('POST', `/v1/sessions/${a.sessionUuid}/room/volume`, { volume: 0, direction: 'to_member' });
    await hearUntil(a, (heard) => level(heard, 660) < -60, 'nobody');
    await hearUntil(c, isAt(0), 'the tone as before');

    await hangUp(a, b, c);
    await receiver.event('session.ended', c.sessionUuid);
    expect(
      receiver
        .of(b.sessionUuid)
        .slice(-2)
        .map(({ body }) => [body.event, body.reason]),
    ).toEqual([
      ['room.member.left', 'hangup'],
      ['session.ended', undefined],
    ]);
    expect((await api('DELETE', `/api/v1/rooms/${roomId}`)).body).toMatchObject({ room_id: roomId, status: 'deleting' });
    const deleted = await eventOf(roomId, 'room.deleted');
    expect(deleted).toMatchObject({ app_uuid: app.appUuid, reason: 'closed' });
    expect((await api('GET', `/api/v1/rooms/${roomId}`)).status).toBe(404);
  }, 60_000);

  test('two alone hear each other packet for packet, what is lost too, and are recorded all the while; with a third they are mixed', async () => {
    const a = await call(440);
    const b = await call(660);
    const c = await call(880);
    const roomId = await create();
    for (const caller of [a, b]) await join(roomId, caller);
    const recording = await api('POST', `/v1/sessions/${a.sessionUuid}/recordings`, { direction: 'both', channels: 'mono' });
    expect(recording.status).toBe(202);
    /** Packets that `a` misses of the next 25, of which one that `b` says is lost. */
    const missed = async (): Promise<number> => {
      const settled = a.ear.packets.length + 40;
      await a.ear.until(() => a.ear.packets.length >= settled, 'what was lost before');
      const from = a.ear.packets.length - 1;
      b.speaker.lose(1);
      await a.ear.until(() => a.ear.packets.length >= from + 25, 'half a second');
      const [first, last] = [a.ear.packets[from], a.ear.packets[from + 24]];
      return (((last?.sequence ?? 0) - (first?.sequence ?? 0)) & 0xffff) - 24;
    };
    let passed = 0;
    while (passed !== 1) passed = await missed(); // a busy machine has them mixed for a moment
    await hearUntil(a, (heard) => level(heard, 660) > -15 && level(heard, 440) < -60, 'the other one alone');
    await api('POST', `/v1/sessions/${a.sessionUuid}/recordings/${recording.body.recording_uuid}/stop`);
    const ended = () => receiver.of(a.sessionUuid).find((event) => event.event === 'recording.ended');
    await receiver.until(() => ended() !== undefined, 'the end of the recording');
    const samples = bestPart(await samplesOf(recording.body.recording_uuid), [440, 660], 4000);
    for (const hz of [440, 660]) expect(level(samples, hz)).toBeGreaterThan(-15);
    await join(roomId, c);
    expect(await missed()).toBe(0);
    await hearUntil(a, (heard) => [660, 880].every((hz) => level(heard, hz) > -15), 'both others');
    await hangUp(a, b, c);
    await receiver.event('session.ended', c.sessionUuid);
    await api('DELETE', `/api/v1/rooms/${roomId}`);
  }, 60_000);

  test('a coach is heard by its member alone, in no recording of the Room, and by nobody once that member has left', async () => {
    const agent = await call(440);
    const customer = await call(660);
    const coach = await call(880);
    const roomId = await create({ voice_activity_events: true });
    const coaching = { session_uuid: coach.sessionUuid, coach: agent.sessionUuid };
    const members = `/api/v1/rooms/${roomId}/members`;
    const refused = { status: 409, body: { message: 'The Session to coach is not a member of the room' } };
    expect(await api('POST', members, coaching)).toMatchObject(refused);
    for (const caller of [agent, customer]) await join(roomId, caller);
    expect(await api('POST', members, { ...coaching, coach: coach.sessionUuid })).toMatchObject(refused);
    expect(await api('POST', members, { ...coaching, coach: 'nobody' })).toMatchObject(refused);
    expect((await api('POST', members, coaching)).status).toBe(202);
    await receiver.event('room.member.joined', coach.sessionUuid);
    expect((await api('GET', `${members}/${coach.sessionUuid}`)).body).toEqual({ uuid: coach.sessionUuid, muted: false });

    const recording = await api('POST', `/api/v1/rooms/${roomId}/playback/record`, {});
    expect(recording.status).toBe(202);
    const tones = [440, 660, 880];
    await hears(agent, tones, [660, 880]);
    await hears(customer, tones, [440]);
    await hears(coach, tones, [440, 660]);
    await api('POST', `/api/v1/rooms/${roomId}/playback/record/stop`);
    const ended = () => receiver.events.find(({ event, body }) => event === 'recording.ended' && body.room_id === roomId);
    await receiver.until(() => ended() !== undefined, 'the end of the recording');
    const samples = bestPart(await samplesOf(recording.body.recording_uuid), [440, 660], 4000);
    expect(tones.map((hz) => level(samples, hz) > -25)).toEqual([true, true, false]);
    expect(level(samples, 880)).toBeLessThan(-50);

    await api('DELETE', `${members}/${agent.sessionUuid}`);
    await receiver.event('room.member.left', agent.sessionUuid);
    await hears(customer, tones, []);
    await hears(coach, tones, [660]);
    const talked = receiver.events.filter(({ event }) => event === 'room.member.voice_activity_changed');
    expect(talked.filter(({ body }) => body.session_uuid === coach.sessionUuid)).toEqual([]);
    await hangUp(agent, customer, coach);
    await api('DELETE', `/api/v1/rooms/${roomId}`);
  }, 60_000);

  test('plays files to every member, moves members, lets them go, and tells each reason', async () => {
    const a = await call(440);
    const b = await call(660);
    const first = await create();
    const second = await create({ voice_activity_events: true });
    await join(first, a);
    await join(first, b);
    const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
    const since = a.ear.packets.length;
    const play = await api('POST', `/api/v1/rooms/${first}/playback/play`, { type: 'files', urls });
    expect(play).toMatchObject({ status: 202, body: { room_id: first, status: 'in_progress' } });
    await hearUntil(a, (heard) => level(heard, 1000) > -20, 'the file', since);
    const ended = await eventOf(first, 'room.playback.ended');
    expect(ended).toMatchObject({ operation_uuid: play.body.operation_uuid, urls, reason: 'completed' });
    const stream = await api('POST', `/api/v1/rooms/${first}/playback/play`, { type: 'stream', url: urls[0] });
    expect(stream).toMatchObject({ status: 502, body: { code: 'playback_source_error', detail: { reason: 'unsupported' } } });
    expect((await api('POST', `/api/v1/rooms/${first}/playback/stop`)).status).toBe(409);

    await join(second, a);
    expect(receiver.of(a.sessionUuid).find((event) => event.event === 'room.member.left')?.body).toMatchObject({
      room_id: first,
      reason: 'moved',
    });
    const removed = await api('DELETE', `/api/v1/rooms/${first}/members/${b.sessionUuid}`);
    expect(removed.body).toMatchObject({ status: 'leaving' });
    const left = await receiver.event('room.member.left', b.sessionUuid);
    expect(left.body).toMatchObject({ room_id: first, reason: 'removed' });
    expect((await api('DELETE', `/api/v1/rooms/${first}/members/${b.sessionUuid}`)).status).toBe(404);

    const talking = await receiver.event('room.member.voice_activity_changed', a.sessionUuid);
    expect(talking.body).toMatchObject({ room_id: second, talking: true });
    await api('DELETE', `/api/v1/rooms/${second}`);
    await eventOf(second, 'room.deleted');
    const names = receiver.events.filter((event) => event.body.room_id === second).map((event) => event.event);
    expect(names.at(-1)).toBe('room.deleted');
    expect(names.at(-2)).toBe('room.member.left');
    expect(receiver.of(a.sessionUuid).at(-1)?.body.reason).toBe('room_closed');
    await hangUp(a, b);
  }, 60_000);

  test('hold music is heard by a member that is alone while nothing is played, and is in no recording, field or event', async () => {
    const music = `http://127.0.0.1:${media.port}/music.wav`;
    const roomId = await create({ hold_music_url: music });
    const tones = [440, 660, 1000, 1400];
    const a = await call(440);
    const b = await call(660);
    await join(roomId, a);
    await hears(a, tones, [1400]);
    const recorded = await api('POST', `/api/v1/rooms/${roomId}/playback/record`, { include_gaps: true });
    const own = await api('POST', `/v1/sessions/${a.sessionUuid}/recordings`, { direction: 'both', channels: 'mono' });
    await hears(a, tones, [1400]);
    expect((await api('GET', `/api/v1/rooms/${roomId}`)).body).toMatchObject({
      playback_status: 'stopped',
      playback_operation_uuid: '',
      playback_urls: [],
      playback_volume: 0,
    });
    await join(roomId, b);
    await hears(a, tones, [660]);
    await hears(b, tones, [440]);
    await api('DELETE', `/api/v1/rooms/${roomId}/members/${a.sessionUuid}`);
    await hears(b, tones, [1400]);

    const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
    await api('POST', `/api/v1/rooms/${roomId}/playback/play`, { type: 'files', urls, loop: 0 });
    await hears(b, tones, [1000]);
    await api('POST', `/api/v1/rooms/${roomId}/playback/stop`);
    const stopped = () => receiver.events.find(({ event, body }) => event === 'room.playback.ended' && body.room_id === roomId);
    await receiver.until(() => stopped() !== undefined, 'the end of the playback');
    await hears(b, tones, [1400]);

    await hangUp(a, b);
    await api('DELETE', `/api/v1/rooms/${roomId}`);
    for (const { recording_uuid: uuid } of [recorded.body, own.body]) {
      await receiver.until(
        () => receiver.events.some(({ event, body }) => event === 'recording.ended' && body.recording_uuid === uuid),
        'the end of a recording',
      );
      const wav = await readFile(joinPath(platform.dataDir, 'recordings', `${uuid}.wav`));
      const samples = Float32Array.from({ length: (wav.length - 44) >> 1 }, (_, at) => wav.readInt16LE(44 + 2 * at) / 32_768);
      expect([level(samples, 440) > -30, level(samples, 1400) < -50]).toEqual([true, true]);
    }
    const playbacks = receiver.events.filter(({ event, body }) => event.startsWith('room.playback') && body.room_id === roomId);
    expect(playbacks.map(({ body }) => body.urls)).toEqual([urls]);
  }, 60_000);

  test('the cap of an application holds however many are created at once', async () => {
    const other = await platform.application(receiver.url, '+15550777');
    // A bucket of ten and two a second would stand in the way: the operator's cap is made small instead.
    await platform.operator('PATCH', `/apps/${other.appUuid}`, { room_limits: { max_rooms: 5 } });
    const made = await Promise.all(Array.from({ length: 10 }, () => platform.api(other, 'POST', '/api/v1/rooms', {})));
    expect(made.filter((answer) => answer.status === 201)).toHaveLength(5);
    const refused = made.filter((answer) => answer.status !== 201);
    for (const answer of refused) {
      expect(answer).toMatchObject({
        status: 403,
        body: { code: 'forbidden', message: 'Maximum number of rooms reached for this application' },
      });
    }
    const mine = String(made.find((answer) => answer.status === 201)?.body.room_id);
    expect((await api('GET', `/api/v1/rooms/${mine}`)).status).toBe(404);
    // A place is free again when a Room has closed: the refusal was not kept under the key.
    const create = () => platform.api(other, 'POST', '/api/v1/rooms', {}, { 'idempotency-key': 'one more' });
    expect((await create()).status).toBe(403);
    expect((await platform.api(other, 'DELETE', `/api/v1/rooms/${mine}`)).status).toBe(202);
    let again = await create();
    for (let tries = 0; again.status === 403 && tries < 1_000; tries++) again = await create();
    expect(again.status).toBe(201);
  }, 30_000);
});
