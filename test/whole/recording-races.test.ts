/**
 * Recordings under races: begun, stopped, masked and looked at while calls and Rooms come together, part and end, from
 * both sides.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Admitted, admission, checkNothingOpen, checkRecordings } from '../support/recording-check.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';
import { TalkingPeer } from '../support/talking-peer.ts';

const NUMBER = '+15550002';
const SEED = Number(process.env.RACES_SEED ?? 20_261);
/** Calls that wait for our end, that hang up by themselves in the middle of it, and that say nothing. */
const WAITING = 5;
const HANGING_UP = 3;
const MUTE = 2;
const CALLS = WAITING + HANGING_UP + MUTE;
const ROOMS = 3;
const WAVES = 12;
const IN_FLIGHT = 24;
/** Spoken between two waves, in all calls together. */
const PACKETS_A_WAVE = 30;

/** Numbers from 0 to 1 that are the same for the same seed (Park and Miller). */
function dice(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

describe.skipIf(!sippInstalled)('recordings under races', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: TalkingPeer;
  const callers: Sipp[] = [];
  const receiver = new Receiver();
  const tone = toneWav(600, 1);
  const sounds = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(tone) });
  let sessions: readonly string[] = [];

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2', RECORDING_LIVENESS_SEC: '1' });
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
    peer = await TalkingPeer.open();
    const keys = { rtp_port: String(peer.port) };
    const to = platform.sipUdp;
    callers.push(
      await sipp({ scenario: 'caller-waits', to, calls: WAITING, rate: 50, keys }),
      await sipp({ scenario: 'caller-hangs-up', to, calls: HANGING_UP, rate: 50, keys, pauseMs: 900 }),
      await sipp({ scenario: 'caller-waits', to, calls: MUTE, rate: 50, keys: { rtp_port: '9' } }),
    );
    await receiver.until(() => receiver.count('session.created') === CALLS, 'the calls');
    sessions = receiver.events.map(({ body }) => String(body.session_uuid));
    await Promise.all(sessions.map((each) => platform.api(app, 'POST', `/v1/sessions/${each}/answer`)));
    await receiver.until(() => receiver.count('session.answered') === CALLS, 'the answers');
  }, 60_000);

  afterAll(async () => {
    for (const caller of callers) caller.stop();
    await platform?.stop();
    await receiver.stop();
    await sounds.stop(true);
    peer?.close();
  });

  test('each that was admitted ends once, before its owner, with a whole file, and leaves nothing open', async () => {
    const roll = dice(SEED);
    const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(roll() * list.length)];
    const statuses = new Map<string, number>();
    const api = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
      const answered = await platform.api(app, method, path, body, headers);
      const kind = `${method} ${path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '*')} ${answered.status}`;
      statuses.set(kind, (statuses.get(kind) ?? 0) + 1);
      return answered;
    };
    const admitted = new Map<string, Admitted>();
    const admit = (owner: Admitted['owner'], { status, body }: Awaited<ReturnType<typeof api>>) => {
      if (status !== 202) return;
      const given = admission(owner, body);
      // Two requests under one key are told of one recording.
      expect(admitted.get(given.recordingUuid) ?? given).toEqual(given);
      admitted.set(given.recordingUuid, given);
    };
    const rooms: string[] = [];
    for (let made = 0; made < ROOMS; made++) rooms.push(String((await api('POST', '/api/v1/rooms', {})).body.room_id));

    const record = async (session: string, headers: Record<string, string> = {}) => {
      const wish = { include_gaps: roll() < 0.5, enable_voice_activity_events: roll() < 0.5 };
      const body = { direction: 'both', channels: 'mono', ...wish };
      const path = `/v1/sessions/${session}/recordings`;
      const twice = 'idempotency-key' in headers ? [api('POST', path, body, headers)] : [];
      for (const each of [...twice, api('POST', path, body, headers)]) admit({ session_uuid: session }, await each);
    };
    const recordRoom = async (room: string) => {
      admit({ room_id: room }, await api('POST', `/api/v1/rooms/${room}/playback/record`, { include_gaps: roll() < 0.5 }));
    };
    /** A recording of its own Session, or one that the Session does not have. */
    const path = (session: string) => {
      const of = one([...admitted.values()]);
      const owner = of !== undefined && 'session_uuid' in of.owner ? of.owner.session_uuid : session;
      return `/v1/sessions/${owner}/recordings/${of?.recordingUuid ?? 'rec_x'}`;
    };
    const onRecording = (session: string, what: string) => api('POST', `${path(session)}/${what}`, {});
    const acts: readonly (readonly [number, (session: string, room: string) => Promise<unknown>])[] = [
      [5, (session) => record(session)],
      [2, (session) => record(session, { 'idempotency-key': `k${roll()}` })],
      [4, (session) => onRecording(session, 'stop')],
      [3, (session) => onRecording(session, 'mask')],
      [3, (session) => onRecording(session, 'unmask')],
      [2, (session) => api('GET', `/v1/sessions/${session}/recordings`)],
      [2, (session) => api('GET', path(session))],
      [4, (session, room) => api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: session })],
      [2, (session, room) => api('DELETE', `/api/v1/rooms/${room}/members/${session}`)],
      [4, (_, room) => recordRoom(room)],
      [3, (_, room) => api('POST', `/api/v1/rooms/${room}/playback/record/stop`, {})],
      [2, (session) => api('POST', `/v1/sessions/${session}/playback/play`, { type: 'files', urls: [sounds.url.href] })],
      [1, (_, room) => api('POST', `/api/v1/rooms/${room}/playback/play`, { type: 'files', urls: [sounds.url.href] })],
    ];
    const ends: typeof acts = [
      [2, (session) => api('DELETE', `/v1/sessions/${session}`)],
      [1, (_, room) => api('DELETE', `/api/v1/rooms/${room}`)],
    ];
    const act = (of: typeof acts) => {
      let left = roll() * of.reduce((sum, [weight]) => sum + weight, 0);
      const [, chosen] = of.find(([weight]) => {
        left -= weight;
        return left < 0;
      }) ?? [0, async () => {}];
      return chosen(one(sessions) ?? '', one(rooms) ?? '');
    };
    for (let wave = 0; wave < WAVES; wave++) {
      const may = wave < WAVES / 2 ? acts : [...acts, ...ends];
      await Promise.all(Array.from({ length: IN_FLIGHT }, () => act(may)));
      await peer.says(PACKETS_A_WAVE);
    }
    // The end of everything, and commands at the same instant and after it.
    await Promise.all([
      ...Array.from({ length: IN_FLIGHT / 2 }, () => act(acts)),
      ...sessions.map((each) => api('DELETE', `/v1/sessions/${each}`)),
      ...rooms.map((each) => api('DELETE', `/api/v1/rooms/${each}`)),
      ...Array.from({ length: IN_FLIGHT / 2 }, () => act(acts)),
    ]);
    await Promise.all(Array.from({ length: IN_FLIGHT / 2 }, () => act(acts)));
    await receiver.until(() => receiver.count('session.ended') === CALLS, 'the ends of the calls');
    await receiver.until(() => receiver.count('room.deleted') === ROOMS, 'the ends of the Rooms');
    await Promise.all(Array.from({ length: IN_FLIGHT / 2 }, () => act(acts)));

    const told = Object.fromEntries(statuses);
    for (const kind of statuses.keys())
      expect([200, 201, 202, 404, 409, 429], `${kind} of ${JSON.stringify(told)}`).toContain(Number(kind.slice(-3)));
    expect(admitted.size).toBeGreaterThan(CALLS);

    const lengths = await checkRecordings(platform, receiver, [...admitted.values()], `of seed ${SEED}`);

    await checkNothingOpen(platform);
    // Recordings that are left out had a call or Room that was gone by the time they were to be opened.
    expect(lengths.size).toBeGreaterThan(admitted.size / 2);
    for (const each of sessions) expect((await api('GET', `/v1/sessions/${each}/recordings`)).status).toBe(404);
  }, 60_000);
});
