/** A call's recording under its signed URLs, while it is made and afterwards. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { call, hangUp } from '../support/room-call.ts';
import { sippInstalled } from '../support/sipp.ts';

const HEADER_BYTES = 44;
const BYTES_PER_SEC = 16_000;

/** What has been heard of a response so far. */
class Listener {
  readonly response: Response;
  readonly over: Promise<void>;
  bytes = Buffer.alloc(0);
  #wake: () => void = () => {};

  constructor(response: Response) {
    this.response = response;
    this.over = this.#hear();
  }

  async #hear(): Promise<void> {
    for await (const part of this.response.body ?? []) {
      this.bytes = Buffer.concat([this.bytes, part]);
      this.#wake();
    }
    this.#wake();
  }

  async until(count: number): Promise<void> {
    while (this.bytes.length < count)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}

describe.skipIf(!sippInstalled)('the URLs of a recording', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start({ RECORDING_LIVENESS_SEC: '1' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  /** The URL as it was handed out. */
  const fetched = (url: unknown, headers: Record<string, string> = {}) => fetch(String(url), { headers });

  test('lead to the call as it is heard, from its beginning or from now, and then to the whole file', async () => {
    const caller = await call({ platform, receiver, app }, 440);
    const path = `/v1/sessions/${caller.sessionUuid}/recordings`;
    const made = await platform.api(app, 'POST', path, { direction: 'both', channels: 'mono' });
    const uuid = String(made.body.recording_uuid);
    await receiver.event('recording.became_available', caller.sessionUuid);
    const available = receiver.of(caller.sessionUuid).find(({ event }) => event === 'recording.became_available')?.body;

    const pull = new Listener(await fetched(available?.pull_url));
    await pull.until(HEADER_BYTES + BYTES_PER_SEC * 1.5);
    const asked = performance.now();
    const live = new Listener(await fetched(available?.live_url));
    await live.until(HEADER_BYTES + 1);
    expect(performance.now() - asked).toBeLessThan(1000);
    await live.until(HEADER_BYTES + BYTES_PER_SEC);
    for (const { response } of [pull, live]) {
      const named = ['content-type', 'accept-ranges', 'content-length'].map((name) => response.headers.get(name));
      expect([response.status, ...named]).toEqual([200, 'audio/wav', 'none', null]);
    }
    await platform.api(app, 'POST', `${path}/${uuid}/stop`, {});
    await Promise.all([pull.over, live.over]);
    await receiver.event('recording.ended', caller.sessionUuid);
    const ended = receiver.of(caller.sessionUuid).find(({ event }) => event === 'recording.ended')?.body;
    await hangUp({ platform, receiver, app }, caller);

    const file = await readFile(join(platform.dataDir, 'recordings', `${uuid}.wav`));
    expect(Buffer.compare(pull.bytes.subarray(HEADER_BYTES), file.subarray(HEADER_BYTES))).toBe(0);
    expect(pull.bytes.readUInt32LE(40)).toBe(0xffffffff);
    // From where it was: the end of the file is heard, not its beginning.
    const heard = live.bytes.subarray(HEADER_BYTES);
    expect(heard.length).toBeLessThan(file.length - HEADER_BYTES - BYTES_PER_SEC);
    expect(Buffer.compare(heard, file.subarray(file.length - heard.length))).toBe(0);

    const whole = await fetched(ended?.pull_url);
    expect([whole.status, whole.headers.get('content-length')]).toEqual([200, String(file.length)]);
    expect(Buffer.compare(Buffer.from(await whole.arrayBuffer()), file)).toBe(0);
    // The URL of the beginning is good still, and leads to what it is now.
    const part = await fetched(available?.pull_url, { range: 'bytes=-100' });
    expect([part.status, part.headers.get('content-length')]).toEqual([206, '100']);
    expect(Buffer.compare(Buffer.from(await part.arrayBuffer()), file.subarray(-100))).toBe(0);
    expect((await fetched(available?.live_url)).status).toBe(404);
    expect((await fetched(`${ended?.pull_url}0`)).status).toBe(403);
  }, 30_000);

  test('are had anew by the name of the recording, by its own application alone, until it removes it', async () => {
    const other = await platform.application(receiver.url, '+15550003');
    const caller = await call({ platform, receiver, app }, 440);
    const path = `/v1/sessions/${caller.sessionUuid}/recordings`;
    const made = await platform.api(app, 'POST', path, { direction: 'both', channels: 'mono' });
    const uuid = String(made.body.recording_uuid);
    const named = (method: string, by = app, name = uuid) => platform.api(by, method, `/v1/recordings/${name}`);
    await receiver.event('recording.became_available', caller.sessionUuid);
    const active = await named('GET');
    expect(active.body).toMatchObject({ recording_uuid: uuid, session_uuid: caller.sessionUuid, state: 'active', ended_at: '' });
    expect(active.body).not.toHaveProperty('duration');
    const growing = new Listener(await fetched(active.body.media_url));
    await growing.until(HEADER_BYTES + 1.1 * BYTES_PER_SEC);
    expect((await named('DELETE')).status).toBe(409);
    await hangUp({ platform, receiver, app }, caller);
    await growing.over;
    await receiver.event('recording.ended', caller.sessionUuid);

    const ended = await named('GET');
    const { duration } = receiver.of(caller.sessionUuid).find(({ event }) => event === 'recording.ended')?.body ?? {};
    expect(ended.body).toMatchObject({ state: 'ended', duration, expires_at: expect.stringMatching(/Z$/) });
    const whole = await fetched(ended.body.media_url);
    expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, growing.bytes.length]);
    for (const method of ['GET', 'DELETE']) {
      expect((await named(method, other)).body).toMatchObject({ code: 'not_found', message: 'Recording not found' });
      for (const name of [`rec_${crypto.randomUUID()}`, 'rec_', uuid.toUpperCase()])
        expect((await named(method, app, name)).status).toBe(404);
    }

    const listed = async (query = '', by = app) => {
      const { recordings, after } = (await platform.api(by, 'GET', `/v1/recordings${query}`)).body;
      return { recordings: Array.isArray(recordings) ? recordings : [], after };
    };
    const ofCall = await listed(`?session_uuid=${caller.sessionUuid}`);
    expect(ofCall).toMatchObject({ recordings: [{ recording_uuid: uuid, state: 'ended', duration }], after: '' });
    expect((await fetched(ofCall.recordings[0].media_url)).status).toBe(200);
    const [newest, older] = (await listed()).recordings;
    const page = await listed('?limit=1');
    expect(page.recordings).toMatchObject([{ recording_uuid: newest.recording_uuid }]);
    expect((await listed(`?limit=1&after=${page.after}`)).recordings).toMatchObject([{ recording_uuid: older.recording_uuid }]);
    expect(await listed('', other)).toEqual({ recordings: [], after: '' });

    expect((await named('DELETE')).status).toBe(204);
    expect(await listed(`?session_uuid=${caller.sessionUuid}`)).toEqual({ recordings: [], after: '' });
    const removed = { state: 'removed', duration, media_url: '', expires_at: '' };
    expect((await named('GET')).body).toMatchObject(removed);
    expect((await fetched(ended.body.media_url)).status).toBe(410);
    await expect(readFile(join(platform.dataDir, 'recordings', `${uuid}.wav`))).rejects.toThrow('ENOENT');
    expect((await named('DELETE')).status).toBe(204);
  }, 30_000);
});
