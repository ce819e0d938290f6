/** Whole recordings: real calls, real files, every event, hangup, masking to the sample, Rooms. */
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
  join as joinRoom,
  level,
  call as placeCall,
} from '../support/room-call.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';
const BOTH = { direction: 'both', channels: 'mono' } as const;
const HEADER_BYTES = 44;
const COUNTED_LATE_FRAMES = 20;
/** Never the same twice within its file. */
const OURS_HZ = 997.37;

/** The samples of a finished recording: 16-bit mono at 8 kHz. */
function samplesOf(wav: Uint8Array): Float32Array {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  if (view.getUint32(40, true) !== wav.byteLength - HEADER_BYTES || view.getUint32(24, true) !== 8000)
    throw new Error('not a finished recording of 8 kHz');
  const samples = new Float32Array((wav.byteLength - HEADER_BYTES) / 2);
  for (let at = 0; at < samples.length; at++) samples[at] = view.getInt16(HEADER_BYTES + at * 2, true) / 32_768;
  return samples;
}

/** The longest run of zeros: where it begins and how long it is, in samples. */
function longestSilence(samples: Float32Array): { at: number; length: number } {
  let best = { at: 0, length: 0 };
  let from = 0;
  for (let at = 0; at <= samples.length; at++) {
    if (samples[at] === 0) continue;
    if (at - from > best.length) best = { at: from, length: at - from };
    from = at + 1;
  }
  return best;
}

/**
 * How `part` differs from `whole`, which began earlier and heard the same: one span of it is silent in `part`, or is
 * left out of it. Throws where anything else differs by a single sample.
 */
function spanMissing(whole: Float32Array, part: Float32Array): { length: number; silent: boolean } {
  const head = part.subarray(0, 1600);
  const isAt = (at: number) => head.every((sample, index) => sample === whole[at + index]);
  let offset = 0;
  while (!isAt(offset) && offset < whole.length) offset += 160;
  let from = 0;
  while (part[from] === whole[offset + from] && from < part.length) from++;
  from -= from % 160;
  let silentUntil = from;
  while (part[silentUntil] === 0) silentUntil++;
  const silent = silentUntil - from > 160;
  const length = silent
    ? Math.floor(silentUntil / 160) * 160 - from
    : leftOut(whole.subarray(offset + from), part.subarray(from));
  const shift = offset + (silent ? 0 : length);
  const until = Math.min(part.length, whole.length - shift);
  for (let at = silent ? from + length : from; at < until; at++) {
    if (part[at] !== whole[shift + at]) throw new Error(`differs at ${at} of ${part.length}, the span is ${from} + ${length}`);
  }
  return { length, silent };
}

/** The number of samples of `whole` after which that of `part` begins again. */
function leftOut(whole: Float32Array, part: Float32Array): number {
  const head = part.subarray(0, 1600);
  for (let at = 160; at < whole.length; at += 160) if (head.every((sample, index) => sample === whole[at + index])) return at;
  throw new Error('nothing of it is found again');
}

describe.skipIf(!sippInstalled)('a recording', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(OURS_HZ, 10)) });

  beforeAll(async () => {
    platform = await Platform.start({ RECORDING_LIVENESS_SEC: '1' });
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
  const hangUp = (...callers: Caller[]) => endCalls(stage(), ...callers);
  const on = ({ sessionUuid }: Pick<Caller, 'sessionUuid'>, rest = '') => `/v1/sessions/${sessionUuid}/recordings${rest}`;
  const record = async (caller: Pick<Caller, 'sessionUuid'>, more: Record<string, unknown> = {}): Promise<string> => {
    const made = await api('POST', on(caller), { ...BOTH, ...more });
    expect(made).toMatchObject({ status: 202, body: { status: 'in_progress' } });
    return String(made.body.recording_uuid);
  };
  const order = async (caller: Pick<Caller, 'sessionUuid'>, recordingUuid: string, what: string) =>
    expect((await api('POST', on(caller, `/${recordingUuid}/${what}`), {})).status).toBe(202);
  /** The event of a recording, once it has come. */
  const told = async (event: string, recordingUuid: string) => {
    const find = () => receiver.events.find((each) => each.event === event && each.body.recording_uuid === recordingUuid);
    await receiver.until(() => find() !== undefined, `${event} of ${recordingUuid}`);
    return find()?.body ?? {};
  };
  const file = async (recordingUuid: string) =>
    samplesOf(await readFile(joinPath(platform.dataDir, 'recordings', `${recordingUuid}.wav`)));

  test('holds both directions; masked in the middle it is silent there to the sample or shorter by it, and the one beside it is whole', async () => {
    const caller = await call(440);
    await api('POST', `/v1/sessions/${caller.sessionUuid}/playback/play`, { type: 'files', urls: [media.url.href], loop: 0 });
    await receiver.event('playback.started', caller.sessionUuid);
    const whole = await record(caller);
    const gapped = await record(caller, { include_gaps: true });
    const short = await record(caller, { include_gaps: false });
    const available = await Promise.all([whole, gapped, short].map((each) => told('recording.became_available', each)));
    await caller.ear.drained();
    const recording = caller.ear.packets.length;
    for (const each of available) {
      expect(each).toEqual({
        aud: app.appUuid,
        event: 'recording.became_available',
        timestamp: expect.any(String),
        session_uuid: caller.sessionUuid,
        recording_uuid: expect.stringMatching(/^rec_/),
        operation_uuid: expect.any(String),
        pull_url: expect.stringContaining('/pull?'),
        live_url: expect.stringContaining('/live?'),
        expires_at: expect.stringMatching(/Z$/),
      });
    }
    /** Frames that the platform has said so far. */
    const said = async (): Promise<number> => {
      await caller.ear.drained();
      return caller.ear.packets.length;
    };
    const heard = async (frames: number) => {
      const from = await said();
      await caller.ear.until(() => caller.ear.packets.length >= from + frames, `${frames} frames`);
    };
    await caller.speaker.steady(30);
    await heard(25);
    const masking = await said();
    for (const each of [gapped, short]) await order(caller, each, 'mask');
    const masked = await said();
    const listed = await api('GET', on(caller));
    expect(listed.body).toMatchObject({
      recordings: [
        { recording_uuid: whole, masked: false, state: 'active', available: true, include_gaps: false },
        { recording_uuid: gapped, masked: true, include_gaps: true },
        { recording_uuid: short, masked: true, include_gaps: false },
      ],
    });
    await heard(100);
    const unmasking = await said();
    for (const each of [gapped, short]) await order(caller, each, 'unmask');
    const unmasked = await said();
    await caller.speaker.steady(30);
    await heard(25);
    const inspected = await api('GET', on(caller, `/${whole}`));
    expect(inspected.body).toEqual({
      recording_uuid: whole,
      session_uuid: caller.sessionUuid,
      state: 'active',
      masked: false,
      ...BOTH,
      include_gaps: false,
      enable_voice_activity_events: false,
      available: true,
      created_at: expect.stringMatching(/Z$/),
      duration: expect.any(Number),
      media_url: expect.stringContaining(`/v1/media/${whole}/pull?`),
      live_url: expect.stringContaining(`/v1/media/${whole}/live?`),
      expires_at: expect.stringMatching(/Z$/),
    });
    expect(Number(inspected.body.duration)).toBeGreaterThanOrEqual(2);
    await order(caller, whole, 'stop');
    const ended = await told('recording.ended', whole);
    expect((await api('GET', on(caller, `/${whole}`))).status).toBe(404);
    await hangUp(caller);
    const hungUp = caller.ear.packets.length;
    await receiver.event('session.ended', caller.sessionUuid);

    const [all, withGap, without] = await Promise.all([whole, gapped, short].map(file));
    if (all === undefined || withGap === undefined || without === undefined) throw new Error('no file');
    expect(ended).toEqual({
      aud: app.appUuid,
      event: 'recording.ended',
      timestamp: expect.any(String),
      session_uuid: caller.sessionUuid,
      recording_uuid: whole,
      operation_uuid: available[0]?.operation_uuid,
      pull_url: expect.stringContaining(`/v1/media/${whole}/pull?`),
      expires_at: expect.stringMatching(/Z$/),
      duration: Math.floor(all.length / 8000),
    });
    for (const samples of [all, withGap, without]) {
      // Before the mask and behind it both tones are heard, the caller's and ours.
      const before = samples.subarray(0, (masking - recording) * 160);
      const behind = samples.subarray((unmasked - hungUp) * 160);
      for (const half of [before, behind]) {
        const part = bestPart(half, [440, OURS_HZ], 3200);
        expect(level(part, 440)).toBeGreaterThan(-20);
        expect(level(part, OURS_HZ)).toBeGreaterThan(-20);
      }
    }
    expect(longestSilence(all).length).toBeLessThan(160);
    expect(longestSilence(without).length).toBeLessThan(160);
    // What is not masked is the same sample for sample, the gap a whole number of frames: those between the orders, and
    // some of those that were said while an order was under way. What the caller has heard is counted when it is read:
    // on a busy machine up to seven frames later.
    const least = (unmasking - masked - COUNTED_LATE_FRAMES) * 160;
    const most = (unmasked - masking + COUNTED_LATE_FRAMES) * 160;
    const kept = spanMissing(all, withGap);
    expect(kept).toMatchObject({ silent: true });
    expect(kept.length % 160).toBe(0);
    expect(kept.length).toBeGreaterThanOrEqual(least);
    expect(kept.length).toBeLessThanOrEqual(most);
    const cut = spanMissing(all, without);
    expect(cut).toMatchObject({ silent: false });
    expect(cut.length % 160).toBe(0);
    expect(cut.length).toBeGreaterThanOrEqual(least);
    expect(cut.length).toBeLessThanOrEqual(most);
  }, 30_000);

  test('ends with the call, before it is told as ended; one that was stopped is not ended twice', async () => {
    const caller = await call(440);
    const stopped = await record(caller);
    const live = [await record(caller), await record(caller)];
    for (const each of [stopped, ...live]) await told('recording.became_available', each);
    await order(caller, stopped, 'stop');
    await order(caller, stopped, 'stop').catch(() => {}); // 404 once it is over
    await told('recording.ended', stopped);
    await hangUp(caller);
    await receiver.event('session.ended', caller.sessionUuid);
    const events = receiver.of(caller.sessionUuid);
    const ends = events.filter(({ event }) => event === 'recording.ended');
    expect(ends.map(({ body }) => body.recording_uuid).sort()).toEqual([stopped, ...live].sort());
    expect(events.at(-1)?.event).toBe('session.ended');
    for (const each of live) expect((await file(each)).length).toBeGreaterThan(44);
  }, 30_000);

  test('tells of speech by its own rule, with the silence before it; not without being asked, and not after its stop', async () => {
    const caller = await call(440);
    caller.speaker.amplitude = 0;
    const config = { sensitivity: 0.5, speech_duration_ms: 60, silence_duration_ms: 200 };
    const silent = await record(caller);
    const speech = await record(caller, { enable_voice_activity_events: true, voice_activity_config: config });
    await told('recording.became_available', speech);
    caller.speaker.amplitude = 8000;
    const first = await told('recording.speech.started', speech);
    caller.speaker.amplitude = 0;
    const over = await told('recording.speech.ended', speech);
    await caller.ear.until(() => caller.ear.packets.length > 0, 'audio');
    caller.speaker.amplitude = 8000;
    const count = () => receiver.of(caller.sessionUuid).filter(({ event }) => event === 'recording.speech.started').length;
    await receiver.until(() => count() === 2, 'the second speech');
    const second = receiver.of(caller.sessionUuid).findLast(({ event }) => event === 'recording.speech.started')?.body;
    const about = { aud: app.appUuid, timestamp: expect.any(String), session_uuid: caller.sessionUuid, recording_uuid: speech };
    const { operation_uuid } = first;
    expect(first).toEqual({ ...about, event: 'recording.speech.started', operation_uuid });
    expect(over).toEqual({ ...about, event: 'recording.speech.ended', operation_uuid });
    expect(second).toEqual({
      ...about,
      event: 'recording.speech.started',
      operation_uuid,
      preceding_silence_duration_ms: expect.any(Number),
    });
    expect(Number(second?.preceding_silence_duration_ms)).toBeGreaterThanOrEqual(200);
    await order(caller, speech, 'stop');
    caller.speaker.amplitude = 0;
    await told('recording.ended', speech);
    await hangUp(caller);
    await receiver.event('session.ended', caller.sessionUuid);
    const names = receiver.of(caller.sessionUuid).map(({ event, body }) => `${event} ${body.recording_uuid}`);
    expect(names.filter((name) => name.includes('speech'))).toHaveLength(3);
    expect(names.some((name) => name.includes('speech') && name.includes(silent))).toBe(false);
  }, 30_000);

  test('of a call on hold is told as failed, stays live, and still ends when it is stopped', async () => {
    const known = receiver.count('session.created');
    const peer = await sipp({ scenario: 'caller-is-held', to: platform.sipUdp, keys: { rtp_port: '9' } });
    await receiver.until(() => receiver.count('session.created') > known, 'a call');
    const sessionUuid = String(receiver.events.findLast(({ event }) => event === 'session.created')?.body.session_uuid);
    await api('POST', `/v1/sessions/${sessionUuid}/answer`);
    await receiver.event('session.answered', sessionUuid);
    const lost = await record({ sessionUuid });
    const failed = await told('recording.failed', lost);
    expect(failed).toEqual({
      aud: app.appUuid,
      event: 'recording.failed',
      timestamp: expect.any(String),
      session_uuid: sessionUuid,
      recording_uuid: lost,
      operation_uuid: expect.any(String),
      error: 'recording unavailable',
      pull_url: '',
    });
    expect((await api('GET', on({ sessionUuid }, `/${lost}`))).body).toMatchObject({
      state: 'active',
      available: false,
      media_url: '',
      live_url: '',
      expires_at: '',
      duration: 0,
    });
    await order({ sessionUuid }, lost, 'stop');
    expect(await told('recording.ended', lost)).toMatchObject({ duration: 0, operation_uuid: failed.operation_uuid });
    await api('DELETE', `/v1/sessions/${sessionUuid}`);
    await peer.done;
    expect(receiver.of(sessionUuid).some(({ event }) => event === 'recording.became_available')).toBe(false);
  }, 30_000);

  test('is refused where it cannot be: each 400, 404 and 409, and the fifth at once', async () => {
    const caller = await call(440);
    const create = (body: unknown, to = on(caller)) => api('POST', to, body);
    for (const [body, message] of [
      [{ channels: 'mono' }, 'direction: is required'],
      [{ direction: 'both' }, 'channels: is required'],
      [{ direction: 'session_in', channels: 'mono' }, 'direction: must be both; the other directions are unsupported'],
      [{ direction: 'both', channels: 'stereo' }, 'channels: must be mono; stereo is unsupported'],
      [{ direction: 'session_out', channels: 'stereo' }, 'direction: must be both; the other directions are unsupported'],
      [{ ...BOTH, include_gaps: 'yes' }, 'include_gaps: must be false or true'],
      [{ ...BOTH, enable_voice_activity_events: 1 }, 'enable_voice_activity_events: must be false or true'],
      [{ ...BOTH, format: 'mp3' }, 'format: is not a known field here'],
      [{ ...BOTH, voice_activity_config: { sensitivity: 2 } }, 'voice_activity_config.sensitivity: must be at most 1'],
      [
        { ...BOTH, voice_activity_config: { speech_duration_ms: 19 } },
        'voice_activity_config.speech_duration_ms: must be at least 20',
      ],
      [
        { ...BOTH, voice_activity_config: { silence_duration_ms: 19 } },
        'voice_activity_config.silence_duration_ms: must be at least 20',
      ],
      [
        { ...BOTH, voice_activity_config: { silence_duration_ms: 3_600_001 } },
        'voice_activity_config.silence_duration_ms: must be at most 3600000',
      ],
    ] as const) {
      const refused = await create(body);
      expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_request', message } });
    }
    const nowhere = '/v1/sessions/6a1f6f4e-58a5-4d0e-9a3c-2f9c8f6e0000/recordings';
    expect(await create(BOTH, nowhere)).toMatchObject({ status: 404, body: { message: 'Session not found' } });
    expect(await api('GET', nowhere)).toMatchObject({ status: 404, body: { message: 'Session not found' } });
    const other = await platform.application(receiver.url, '+15550077');
    expect((await platform.api(other, 'POST', on(caller), BOTH)).status).toBe(404);
    const recordingUuid = await record(caller);
    for (const what of ['stop', 'mask', 'unmask']) {
      expect((await platform.api(other, 'POST', on(caller, `/${recordingUuid}/${what}`), {})).status).toBe(404);
      expect(await api('POST', on(caller, `/rec_x/${what}`), {})).toMatchObject({
        status: 404,
        body: { message: 'Recording not found' },
      });
    }
    expect((await platform.api(other, 'GET', on(caller))).status).toBe(404);
    await order(caller, recordingUuid, 'unmask'); // harmless when it is not masked
    for (let more = 0; more < 3; more++) await record(caller);
    const fifth = await create(BOTH);
    expect(fifth).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    expect(fifth.headers.get('retry-after')).toBe('1');
    await hangUp(caller);
    await receiver.event('session.ended', caller.sessionUuid);
    expect((await create(BOTH)).status).toBe(404);
    expect(await api('POST', on(caller, `/${recordingUuid}/unmask`), {})).toMatchObject({ status: 404 });
  }, 30_000);

  test('of a Room holds everyone, one at a time, and ends by its stop or with the Room', async () => {
    const a = await call(440);
    const b = await call(700);
    const roomId = await createRoom(stage());
    const room = (path: string, body: unknown = {}) => api('POST', `/api/v1/rooms/${roomId}/playback/${path}`, body);
    expect(await room('record/stop')).toMatchObject({ status: 409, body: { code: 'recording_not_active' } });
    for (const caller of [a, b]) await joinRoom(stage(), roomId, caller.sessionUuid);
    const started = await room('record');
    expect(started).toMatchObject({ status: 202, body: { room_id: roomId, status: 'in_progress' } });
    const { recording_uuid, operation_uuid } = started.body;
    expect(await room('record')).toMatchObject({ status: 409, body: { code: 'conflict' } });
    const available = await told('recording.became_available', String(recording_uuid));
    expect(available).toMatchObject({ room_id: roomId, operation_uuid, live_url: expect.stringContaining('/live?') });
    expect('session_uuid' in available).toBe(false);
    const heard = a.ear.packets.length;
    await a.ear.until(() => a.ear.packets.length >= heard + 50, 'a second');
    expect((await room('record/stop')).status).toBe(202);
    const again = await room('record/stop');
    expect(again.status).toBe(409);
    const ended = await told('recording.ended', String(recording_uuid));
    expect(ended).toMatchObject({ room_id: roomId, operation_uuid });
    const samples = await file(String(recording_uuid));
    const part = bestPart(samples, [440, 700], 4000);
    for (const hz of [440, 700]) expect(level(part, hz)).toBeGreaterThan(-20);

    const second = String((await room('record')).body.recording_uuid);
    await told('recording.became_available', second);
    expect((await api('DELETE', `/api/v1/rooms/${roomId}`)).status).toBe(202);
    await receiver.until(
      () => receiver.events.some(({ event, body }) => event === 'room.deleted' && body.room_id === roomId),
      'the end',
    );
    const names = receiver.events.filter(({ body }) => body.room_id === roomId).map(({ event }) => event);
    expect(names.filter((name) => name === 'recording.ended')).toHaveLength(2);
    expect(names.at(-1)).toBe('room.deleted');
    await hangUp(a, b);
  }, 30_000);
});
