/** What one application may keep in recordings, on the running platform: with a call, a Room, and over `kill -9`. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../recording-storage/harness.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { call, createRoom, hangUp, join, type Stage } from '../support/room-call.ts';
import { sippInstalled } from '../support/sipp.ts';

describe.skipIf(!sippInstalled)('an application that keeps as much in recordings as it may', () => {
  let platform: Platform;
  let stage: Stage;
  let other: Credentials;
  const receiver = new Receiver();

  beforeAll(async () => {
    // A second and a quarter of sound.
    platform = await Platform.start({ APP_RECORDING_MAX_GB: '0.00002', ORPHAN_TIMEOUT_SEC: '1' });
    const app = await platform.application(receiver.url, '+15550002');
    other = await platform.application(receiver.url, '+15550003');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    stage = { platform, receiver, app };
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  const record = (sessionUuid: string) =>
    platform.api(stage.app, 'POST', `/v1/sessions/${sessionUuid}/recordings`, { direction: 'both', channels: 'mono' });
  const use = async (app: Credentials) => (await platform.api(app, 'GET', '/api/v1/app')).body.recording_store;

  test('is refused with 503 for calls and Rooms, sees why, and what runs goes on', async () => {
    const caller = await call(stage, 440);
    const [first, second] = [await record(caller.sessionUuid), await record(caller.sessionUuid)];
    expect([first.status, second.status]).toEqual([202, 202]);
    const path = `/v1/sessions/${caller.sessionUuid}/recordings`;
    const list = () => platform.api(stage.app, 'GET', path);
    const size = ({ body }: { body: Readonly<Record<string, unknown>> }) =>
      Bun.file(`${platform.dataDir}/recordings/${String(body.recording_uuid)}.wav`).size;
    await until(async () => size(first) > 20_000);
    await platform.api(stage.app, 'POST', `${path}/${first.body.recording_uuid}/stop`);
    await receiver.event('recording.ended', caller.sessionUuid);
    const refused = await record(caller.sessionUuid);
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '30']);
    expect(refused.body.message).toContain('keeps as much in recordings as it may');
    const roomId = await createRoom(stage);
    await join(stage, roomId, caller.sessionUuid);
    expect((await platform.api(stage.app, 'POST', `/api/v1/rooms/${roomId}/playback/record`)).status).toBe(503);
    expect((await list()).body.recordings).toMatchObject([{ recording_uuid: second.body.recording_uuid, state: 'active' }]);
    expect(await use(stage.app)).toEqual({ kept_bytes: expect.any(Number), max_bytes: 20_000 });
    expect(await use(other)).toEqual({ kept_bytes: 0, max_bytes: 20_000 });
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    expect(metrics).toContain('sidetone_recording_apps_full 1');
    expect(metrics).toContain('sidetone_recordings_refused_total 2');

    await platform.kill();
    await platform.start();
    const kept = await use(stage.app);
    expect(kept).toEqual({ kept_bytes: size(first) + size(second), max_bytes: 20_000 });
    const next = await call(stage, 440);
    expect((await record(next.sessionUuid)).status).toBe(503);
    await hangUp(stage, next);
    caller.speaker.stop();
    caller.ear.close();
    caller.sipp.stop();
  }, 60_000);
});
