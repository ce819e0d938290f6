/** Recordings of calls that move between Rooms on two media workers, of those Rooms, and of one that nobody is in. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Admitted, admission, checkNothingOpen, checkRecordings } from '../support/recording-check.ts';
import { type Caller, call, createRoom, hangUp, join, level } from '../support/room-call.ts';
import { sippInstalled } from '../support/sipp.ts';

const FRAME_SAMPLES = 160;
const MOVES = 6;
/** Frames by which a recording and what the peer heard may differ: what is on its way, and the edges of each. */
const SLACK = 12;
const TONES_HZ = [440, 700] as const;

describe.skipIf(!sippInstalled)('recordings of what moves', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const stage = () => ({ platform, receiver, app });
  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2', RECORDING_LIVENESS_SEC: '1' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  test('a call is recorded without a break through each move; the Rooms hold whoever is in them, and an empty one nothing', async () => {
    const [mover, stayer] = [await call(stage(), TONES_HZ[0]), await call(stage(), TONES_HZ[1])];
    const [here, there, empty, silent] = await Promise.all(Array.from({ length: 4 }, () => createRoom(stage())));
    if (here === undefined || there === undefined || empty === undefined || silent === undefined) throw new Error('no Room');
    for (const caller of [mover, stayer]) await join(stage(), here, caller.sessionUuid);

    const admitted: Admitted[] = [];
    const record = async (owner: Admitted['owner'], include_gaps: boolean): Promise<Admitted> => {
      const made =
        'room_id' in owner
          ? await api('POST', `/api/v1/rooms/${owner.room_id}/playback/record`, { include_gaps })
          : await api('POST', `/v1/sessions/${owner.session_uuid}/recordings`, {
              direction: 'both',
              channels: 'mono',
              include_gaps,
            });
      expect(made.status).toBe(202);
      const given = admission(owner, made.body);
      admitted.push(given);
      return given;
    };
    /** Frames that the platform has said to the one that stays: its own clock. */
    const now = async (): Promise<number> => {
      await stayer.ear.drained();
      const { packets } = stayer.ear;
      return (((packets.at(-1)?.timestamp ?? 0) - (packets[0]?.timestamp ?? 0)) >>> 0) / FRAME_SAMPLES;
    };
    const asked = await now();
    const ofMover = await record({ session_uuid: mover.sessionUuid }, true);
    const ofMoverWithoutGaps = await record({ session_uuid: mover.sessionUuid }, false);
    const ofStayer = await record({ session_uuid: stayer.sessionUuid }, true);
    const ofHere = await record({ room_id: here }, true);
    const ofThere = await record({ room_id: there }, true);
    const ofEmpty = await record({ room_id: empty }, false);
    const ofSilent = await record({ room_id: silent }, true);
    const begun = await now();
    const heard = async ({ ear, speaker }: Caller, frames: number) => {
      const from = ear.packets.length;
      await Promise.all([ear.until(() => ear.packets.length >= from + frames, `${frames} frames`), speaker.steady(frames)]);
    };
    await heard(mover, 20);
    /** Frames that all moves took, in which the mover may be in neither Room. */
    let moving = 0;
    for (let moved = 0; moved < MOVES; moved++) {
      const from = await now();
      await join(stage(), moved % 2 === 0 ? there : here, mover.sessionUuid);
      moving += (await now()) - from;
      await heard(mover, 10);
    }
    const stopping = await now();
    for (const { owner, recordingUuid } of admitted) {
      const path =
        'room_id' in owner
          ? `/api/v1/rooms/${owner.room_id}/playback/record`
          : `/v1/sessions/${owner.session_uuid}/recordings/${recordingUuid}`;
      expect((await api('POST', `${path}/stop`, {})).status).toBe(202);
    }
    await receiver.until(() => receiver.count('recording.ended') === admitted.length, 'the ends');
    const stopped = await now();
    /** Frames that each recording holds at least, and at most. */
    const [least, most] = [stopping - begun - SLACK, stopped - asked + SLACK];
    const lengths = await checkRecordings(platform, receiver, admitted);
    await checkNothingOpen(platform);

    const framesOf = async ({ recordingUuid }: Admitted) => {
      const wav = await readFile(joinPath(platform.dataDir, 'recordings', `${recordingUuid}.wav`));
      const samples = Float32Array.from({ length: (wav.length - 44) / 2 }, (_, at) => wav.readInt16LE(44 + 2 * at) / 32_768);
      return Array.from({ length: Math.floor(samples.length / FRAME_SAMPLES) }, (_, at) =>
        samples.subarray(at * FRAME_SAMPLES, (at + 1) * FRAME_SAMPLES),
      );
    };
    const audible = async (of: Admitted, hz: number) => (await framesOf(of)).filter((frame) => level(frame, hz) > -25).length;
    const missing = async (of: Admitted, hz: number) => (await framesOf(of)).length - (await audible(of, hz));
    // Both are spoken by this process: where it is late, it is late for both, by a frame more or less each time.
    const silentOfStayer = await missing(ofStayer, TONES_HZ[1]);
    expect(await missing(ofMover, TONES_HZ[0])).toBeLessThanOrEqual(silentOfStayer + 1 + mover.speaker.stalls);
    const lengthOf = ({ recordingUuid }: Admitted) => (lengths.get(recordingUuid) ?? Number.NaN) / 20;
    for (const each of [ofMover, ofStayer, ofHere, ofThere, ofSilent]) {
      expect(lengthOf(each)).toBeGreaterThanOrEqual(least);
      expect(lengthOf(each)).toBeLessThanOrEqual(most);
    }
    expect(lengthOf(ofMoverWithoutGaps)).toBeGreaterThanOrEqual(least - silentOfStayer);
    // It was in one of the two Rooms at any time, but for what each move took.
    const together = (await audible(ofHere, TONES_HZ[0])) + (await audible(ofThere, TONES_HZ[0]));
    expect(Math.abs((await audible(ofMover, TONES_HZ[0])) - together)).toBeLessThanOrEqual(moving + most - least);
    expect(await audible(ofThere, TONES_HZ[0])).toBeGreaterThanOrEqual((MOVES / 2) * 8);
    expect(await audible(ofThere, TONES_HZ[1])).toBe(0);
    expect(lengthOf(ofEmpty)).toBe(0);
    for (const frame of await framesOf(ofSilent)) expect(frame.every((sample) => sample === 0)).toBe(true);
    const { recordingUuid } = ofEmpty;
    expect(receiver.events.filter(({ body }) => body.recording_uuid === recordingUuid).map(({ event }) => event)).toEqual([
      'recording.ended',
    ]);
    await hangUp(stage(), mover, stayer);
  }, 60_000);
});
