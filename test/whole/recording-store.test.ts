/**
 * Whole recordings in an object store: from a call's sound to the bucket, past a store that is away and a process that
 * is killed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { Bucket, CREDENTIALS } from '../recording-storage/bucket.ts';
import { spooled, until } from '../recording-storage/harness.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Caller, hangUp, call as placeCall } from '../support/room-call.ts';
import { sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';

describe.skipIf(!sippInstalled)('a recording in an object store', () => {
  let bucket: Bucket;
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();

  beforeAll(async () => {
    bucket = await Bucket.start();
    platform = await Platform.start({
      RECORDINGS: 's3://calls/of/us',
      S3_ENDPOINT: bucket.endpoint,
      S3_REGION: CREDENTIALS.region,
      S3_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      S3_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
      RECORDING_LIVENESS_SEC: '1',
      ORPHAN_TIMEOUT_SEC: '1',
    });
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await bucket?.stop();
  });

  const spool = () => joinPath(platform.dataDir, 'recordings');
  const record = async ({ sessionUuid }: Caller): Promise<string> => {
    const body = { direction: 'both', channels: 'mono' };
    const made = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/recordings`, body);
    expect(made.status).toBe(202);
    const uuid = String(made.body.recording_uuid);
    await told('recording.became_available', uuid);
    return uuid;
  };
  const told = async (event: string, recordingUuid: string) => {
    const find = () => receiver.events.find((each) => each.event === event && each.body.recording_uuid === recordingUuid);
    await receiver.until(() => find() !== undefined, `${event} of ${recordingUuid}`);
    return find()?.body ?? {};
  };
  /** Fetches a URL of before from the platform as it runs now. */
  const fetched = async (url: unknown, headers: Record<string, string> = {}) => {
    const { pathname, search } = new URL(String(url));
    const response = await fetch(`${platform.url}${pathname}${search}`, { headers });
    const { status } = response;
    const [etag, length] = ['etag', 'content-length'].map((name) => response.headers.get(name));
    return { status, etag, length, bytes: Buffer.from(await response.arrayBuffer()) };
  };
  const stored = (uuid: string) => bucket.object(`of/us/${uuid}.wav`);

  test('is in the bucket after the call, and its URL serves it from there, whole and in part', async () => {
    const caller = await placeCall({ platform, receiver, app }, 440);
    const uuid = await record(caller);
    await hangUp({ platform, receiver, app }, caller);
    const { pull_url } = await told('recording.ended', uuid);
    await until(async () => (await spooled(platform.dataDir)).length === 0);
    const object = await stored(uuid);
    const served = await fetched(pull_url);
    expect(served.status).toBe(200);
    expect(object?.equals(served.bytes)).toBe(true);
    expect(served.bytes.readUInt32LE(40)).toBe(served.bytes.length - 44);
    expect(served.length).toBe(String(served.bytes.length));
    const part = await fetched(pull_url, { range: 'bytes=44-1043' });
    expect([part.status, part.length]).toEqual([206, '1000']);
    expect(part.bytes.equals(served.bytes.subarray(44, 1_044))).toBe(true);
    // It was kept here; without that it is fetched, and comes the same.
    expect(bucket.asked(/get/)).toEqual([]);
    for (const name of await readdir(joinPath(spool(), 'cache'))) await rm(joinPath(spool(), 'cache', name));
    expect(await fetched(pull_url)).toEqual(served);
    expect(bucket.asked(/get/)).not.toEqual([]);
  }, 30_000);

  test('stays here while the store is away, also over kill -9, and is the same there when the store is back', async () => {
    bucket.misbehave = () => 'reset';
    const [over, cut] = [await placeCall({ platform, receiver, app }, 440), await placeCall({ platform, receiver, app }, 620)];
    const [finished, growing] = [await record(over), await record(cut)];
    await hangUp({ platform, receiver, app }, over);
    const { pull_url } = await told('recording.ended', finished);
    await bucket.until(() => bucket.asked(/put/).length > 1);
    const before = await fetched(pull_url);
    expect(before.bytes.equals(await readFile(joinPath(spool(), `${finished}.wav`)))).toBe(true);

    await platform.kill();
    bucket.clear();
    await platform.start();
    const { pull_url: cutUrl, duration } = await told('recording.ended', growing);
    await until(async () => (await spooled(platform.dataDir)).length === 0);
    const after = await fetched(pull_url);
    expect(after.bytes.equals(before.bytes)).toBe(true);
    expect(after.etag).toBe(before.etag ?? 'none');
    expect([before.length, after.length]).toEqual([String(before.bytes.length), String(before.bytes.length)]);
    expect((await stored(finished))?.equals(before.bytes)).toBe(true);
    const mended = await fetched(cutUrl);
    expect((await stored(growing))?.equals(mended.bytes)).toBe(true);
    expect(Math.floor((mended.bytes.length - 44) / 16_000)).toBe(Number(duration));
    expect(platform.output).not.toContain(CREDENTIALS.secretAccessKey);
    cut.speaker.stop();
    cut.ear.close();
    cut.sipp.stop();
  }, 60_000);
});
