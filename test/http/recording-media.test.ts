import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHash, randomBytes } from 'node:crypto';
import { rmSync, symlinkSync, truncateSync } from 'node:fs';
import type { PeerStreams } from '../../src/call/ports/peer-streams.ts';
import type { RecordingMedia } from '../../src/call/ports/recordings.ts';
import { systemClock } from '../../src/clock.ts';
import { RecordingMediaDoor } from '../../src/http/route/recording-media.ts';
import { FILE_READER_SHARES, LISTENERS_OF_ONE_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { problems } from '../../src/problem.ts';
import { localFile } from '../../src/recording-storage/file/local-file.ts';
import type { StoredFile } from '../../src/recording-storage/storage.ts';
import { type MediaServer, newRecordingUuid, openMediaServer, until, untilSteady } from './media-server.ts';
import { RawHttp, type RawResponse, rawRequest } from './raw-http.ts';

const MIB = 1024 * 1024;
let server: MediaServer;
beforeAll(async () => {
  server = await openMediaServer();
}, 60_000);
afterAll(() => server.close(), 60_000);

const ask = async (method: string, target: string, headers: Record<string, string> = {}): Promise<RawResponse> => {
  const response = await rawRequest(server.port, method, target, headers);
  if (response === undefined) throw new Error('the connection was closed');
  return response;
};
const get = (target: string, headers: Record<string, string> = {}) => ask('GET', target, headers);
const json = ({ body }: RawResponse) => JSON.parse(Buffer.from(body).toString());
const equal = (one: Uint8Array | undefined, other: Uint8Array) => one !== undefined && Buffer.compare(one, other) === 0;
/** A reader that has the header already. */
async function listening(target: string) {
  const connection = new RawHttp(server.port);
  connection.send('GET', target);
  const head = await connection.head();
  return { connection, head, first: await connection.chunk() };
}
/** A finished recording that no local file holds, as in an object store. */
function elsewhere(
  { bytes, read }: Pick<StoredFile, 'bytes' | 'read'>,
  local: StoredFile['local'] = async () => undefined,
): string {
  const uuid = newRecordingUuid();
  server.media.set(uuid, { state: 'finished', appUuid: 'app', file: { bytes, etag: 'elsewhere', read, local } });
  return uuid;
}

describe('who may fetch', () => {
  test('a URL that is not signed is forbidden, whatever it names, with the usual problem', async () => {
    for (const target of ['/v1/media/', '/v1/media/x', `/v1/media/${newRecordingUuid()}/pull`, '/v1/media/a/b/c?d=e']) {
      const response = await get(target);
      expect(response.status).toBe(403);
      expect(json(response)).toEqual({ code: 'forbidden', message: 'Forbidden' });
      expect(response.headers.get('traceparent')).toMatch(/^00-/);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
  });

  test('a URL expires at its second, and fetching does not put that off', async () => {
    const { uuid } = await server.finished(randomBytes(1000));
    const { pull, expiresAt } = server.targets(uuid);
    try {
      server.skewMs = expiresAt - Date.now() - 2000;
      expect((await get(pull)).status).toBe(200);
      server.skewMs = expiresAt - Date.now() + 1;
      expect((await get(pull)).status).toBe(403);
    } finally {
      server.skewMs = 0;
    }
  });

  test('what is wrong is told in order: signature, recording, retention, store', async () => {
    const unknown = newRecordingUuid();
    const absent = await get(server.targets(unknown).pull);
    expect([absent.status, json(absent)]).toEqual([404, { code: 'not_found', message: 'Recording not found' }]);
    server.media.set(unknown, { state: 'removed' });
    const removed = await get(server.targets(unknown).live);
    expect([removed.status, json(removed)]).toEqual([410, { code: 'not_found', message: 'Recording was removed' }]);
    expect((await get(`${server.targets(unknown).pull}0`)).status).toBe(403);
    server.media.set(unknown, new Error('away'));
    const away = await get(server.targets(unknown).pull);
    expect([away.status, json(away).code, away.headers.get('retry-after')]).toEqual([503, 'unavailable', '5']);
  });

  test('anything but GET and HEAD is refused by its method', async () => {
    const { pull } = server.targets(newRecordingUuid());
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const response = await ask(method, pull, { 'content-length': '0' });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
  });

  test('another path is unknown, unless it ends as a signed URL does', async () => {
    const { pull } = server.targets(newRecordingUuid());
    expect((await get('/v1/medio/x')).status).toBe(404);
    expect((await get(pull.replace('media', 'medio'))).status).toBe(403);
    expect((await get(`${pull.replace('media', 'medio')}0`)).status).toBe(404);
  });

  test('pages of any origin may play it and read its headers', async () => {
    const { uuid } = await server.finished(randomBytes(1000));
    for (const target of [server.targets(uuid).pull, '/v1/media/x']) {
      const { headers } = await get(target, { origin: 'https://elsewhere.example' });
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('access-control-expose-headers')).toContain('Content-Range');
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  test('the reference has both URLs, which need no key', async () => {
    const { paths } = json(await get('/openapi.json'));
    for (const kind of ['pull', 'live']) {
      const { security, parameters } = paths[`/v1/media/{recording_uuid}/${kind}`].get;
      expect(security).toEqual([]);
      expect(
        parameters.filter((each: { required: boolean }) => each.required).map((each: { name: string }) => each.name),
      ).toEqual(['recording_uuid', 'expires', 'signature']);
    }
  });

  test('with recording off every URL is forbidden', async () => {
    const { uuid } = await server.finished(randomBytes(1000));
    const media: RecordingMedia = { state: 'removed' };
    const recordings = { media: async () => media };
    const off = new RecordingMediaDoor({ recordings, clock: systemClock(), log: silentLog, metrics: { request() {} } });
    expect((await off.answer(new Request(`http://x${server.targets(uuid).pull}`))).status).toBe(403);
  });
});

/** What a request target may consist of on the wire: anything else is no HTTP, and refused before there is a path. */
const isVisible = (text: string) => /^[\x21-\x7e]+$/.test(text);

describe('a signed URL of which a byte was changed', () => {
  test.each(['pull', 'live'] as const)('is forbidden, whichever bit of whichever byte: %s', async (kind) => {
    const { uuid, wav } = server.growing();
    wav.begin().append(randomBytes(1000));
    wav.finish();
    server.media.set(uuid, kind === 'live' ? { state: 'growing', appUuid: 'app', path: wav.path, over: () => false } : wav);
    const target = server.targets(uuid)[kind];
    const connection = new RawHttp(server.port);
    let asked = 0;
    const answered: string[] = [];
    // The slash that begins the path belongs to the origin too.
    for (let at = 1; at < target.length; at++) {
      for (let bit = 0; bit < 7; bit++) {
        const flipped = String.fromCharCode(target.charCodeAt(at) ^ (1 << bit));
        if (!isVisible(flipped)) continue;
        const changed = target.slice(0, at) + flipped + target.slice(at + 1);
        connection.send('GET', changed);
        const response = await connection.response();
        asked++;
        const body = Buffer.from(response?.body ?? '').toString();
        if (response?.status !== 403 || body !== '{"code":"forbidden","message":"Forbidden"}')
          answered.push(`${changed} ${response?.status}`);
      }
    }
    connection.close();
    expect(answered).toEqual([]);
    expect(asked).toBeGreaterThan(800);
  });

  test('is never answered with audio, even where it is no HTTP any more', async () => {
    const { uuid } = await server.finished(randomBytes(1000));
    const { pull } = server.targets(uuid);
    const places = [
      0,
      1,
      4,
      9,
      10,
      14,
      30,
      pull.indexOf('/pull'),
      pull.indexOf('?'),
      pull.indexOf('&'),
      pull.length - 64,
      pull.length - 1,
    ];
    const wrong: string[] = [];
    await Promise.all(
      places.map(async (at) => {
        for (let byte = 0; byte < 256; byte++) {
          const changed = pull.slice(0, at) + String.fromCharCode(byte) + pull.slice(at + 1);
          // A space ends the target, a line feed the request line.
          if (changed === pull || byte === 0x0a || byte === 0x0d) continue;
          const status = (await rawRequest(server.port, 'GET', changed, { connection: 'close' }))?.status;
          if (status !== undefined && status < 400) wrong.push(`${JSON.stringify(changed)}: ${status}`);
        }
      }),
    );
    expect(wrong).toEqual([]);
  });
});

describe('a finished recording', () => {
  const bytes = randomBytes(300_044);

  test('comes whole, with its length, tag and name', async () => {
    const { uuid, file } = await server.finished(bytes);
    const response = await get(server.targets(uuid).pull);
    expect(response.status).toBe(200);
    expect(equal(response.body, bytes)).toBe(true);
    const named = [
      'content-type',
      'content-length',
      'etag',
      'accept-ranges',
      'content-disposition',
      'cache-control',
      'transfer-encoding',
    ];
    expect(named.map((name) => response.headers.get(name))).toEqual([
      'audio/wav',
      '300044',
      `"${file.etag}"`,
      'bytes',
      `inline; filename="${uuid}.wav"`,
      'private, no-cache',
      undefined,
    ]);
  });

  test('tells the same by HEAD, where a range is not asked', async () => {
    const { uuid, path } = await server.finished(bytes);
    const { pull } = server.targets(uuid);
    const without = ({ headers }: RawResponse) =>
      [...headers].filter(([name]) => name !== 'date' && name !== 'traceparent').sort();
    const whole = await get(pull);
    // The server closes what it has sent a moment after the client has it; HEAD then opens nothing.
    await until(() => server.descriptors(path) === 0, 'the descriptor of the GET is closed');
    for (const range of ['', 'bytes=5-9', 'bytes=999999-']) {
      const head = await ask('HEAD', pull, { range });
      expect(head.status).toBe(200);
      expect(without(head)).toEqual(without(whole));
      expect(server.descriptors(path)).toBe(0);
    }
  });

  test.each([
    ['bytes=0-0', 0, 1],
    ['bytes=0-', 0, 300_044],
    ['bytes=44-1043', 44, 1044],
    ['bytes=300000-', 300_000, 300_044],
    ['bytes=300043-999999999999999999999', 300_043, 300_044],
    ['bytes=-10', 300_034, 300_044],
    ['bytes=-999999999', 0, 300_044],
    ['BYTES=1-2', 1, 3],
    ['bytes=, 1-2 ,', 1, 3],
  ])('answers %s with that part', async (range, start, end) => {
    const { uuid } = await server.finished(bytes);
    for (const target of [server.targets(uuid).pull, server.targets(elsewhere((await server.finished(bytes)).file)).pull]) {
      const response = await get(target, { range });
      expect(response.status).toBe(206);
      expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/300044`);
      expect(equal(response.body, bytes.subarray(start, end))).toBe(true);
    }
    expect((await get(server.targets(uuid).pull, { range })).headers.get('content-length')).toBe(String(end - start));
  });

  test.each(['bytes=300044-', 'bytes=999999999999999999999-', 'bytes=-0'])('cannot satisfy %s', async (range) => {
    const { uuid } = await server.finished(bytes);
    const response = await get(server.targets(uuid).pull, { range });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe('bytes */300044');
    expect(json(response).code).toBe('invalid_request');
  });

  test.each([
    'bytes=0-1,5-6',
    'bytes=9-5',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes 0-1',
    'items=0-1',
    'bytes=0-1-2',
    'bytes=0x1-2',
  ])('comes whole where the range is %s', async (range) => {
    const { uuid } = await server.finished(bytes);
    const response = await get(server.targets(uuid).pull, { range });
    expect([response.status, response.headers.get('content-length'), response.headers.get('content-range')]).toEqual([
      200,
      '300044',
      undefined,
    ]);
    expect(equal(response.body, bytes)).toBe(true);
  });

  test('honours If-Range by its strong tag alone', async () => {
    const { uuid, file } = await server.finished(bytes);
    const { pull } = server.targets(uuid);
    const statusOf = async (condition: string) => (await get(pull, { range: 'bytes=5-9', 'if-range': condition })).status;
    expect(await statusOf(`"${file.etag}"`)).toBe(206);
    for (const other of ['"other"', `W/"${file.etag}"`, file.etag, 'Fri, 20 Nov 2026 13:00:00 GMT'])
      expect(await statusOf(other)).toBe(200);
    expect((await get(pull, { range: 'bytes=999999-', 'if-range': '"other"' })).status).toBe(200);
  });

  test('is not sent again to who has it', async () => {
    const { uuid, file } = await server.finished(bytes);
    const { pull } = server.targets(uuid);
    for (const condition of [`"${file.etag}"`, `W/"${file.etag}"`, `"a", "${file.etag}"`, '*']) {
      const response = await get(pull, { 'if-none-match': condition, range: 'bytes=1-2' });
      expect([response.status, response.headers.get('etag')]).toEqual([304, `"${file.etag}"`]);
      expect((await ask('HEAD', pull, { 'if-none-match': condition })).status).toBe(304);
    }
    for (const condition of ['"other"', file.etag, ''])
      expect((await get(pull, { 'if-none-match': condition })).status).toBe(200);
  });

  test('is not live', async () => {
    const { uuid } = await server.finished(bytes);
    const response = await get(server.targets(uuid).live);
    expect([response.status, json(response)]).toEqual([404, { code: 'not_found', message: 'Recording is not live' }]);
  });

  test('whose file cannot be opened any more is 503, with the fields of every answer, and takes no place', async () => {
    const { uuid, path } = await server.finished(bytes);
    const { pull } = server.targets(uuid);
    for (const spoil of [() => {}, () => symlinkSync(path, path)]) {
      rmSync(path, { force: true });
      spoil();
      const response = await get(pull);
      expect([response.status, json(response).message]).toEqual([503, expect.stringContaining('Recording cannot be read now')]);
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
    }
  });

  test('comes whole from an object store too, a part as short as a slice with its length', async () => {
    const { file } = await server.finished(bytes);
    const { pull } = server.targets(elsewhere(file));
    expect(equal((await get(pull)).body, bytes)).toBe(true);
    const failing = server.targets(elsewhere(file, () => Promise.reject(new Error('the disk')))).pull;
    expect(equal((await get(failing)).body, bytes)).toBe(true);
    expect((await ask('HEAD', pull)).headers.get('content-length')).toBe('300044');
    const probe = await get(pull, { range: 'bytes=0-1' });
    expect([probe.status, probe.headers.get('content-length')]).toEqual([206, '2']);
  });

  test('breaks off where its store does, and is 503 where that comes first', async () => {
    const broken =
      (after: number): StoredFile['read'] =>
      () => {
        let sent = 0;
        return new ReadableStream<Uint8Array>(
          {
            pull(controller) {
              if (sent === after) throw new Error('the store is gone');
              sent++;
              controller.enqueue(new Uint8Array(65_536));
            },
          },
          { highWaterMark: 0 },
        );
      };
    const early = await get(server.targets(elsewhere({ bytes: MIB, read: broken(0) })).pull);
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await rawRequest(server.port, 'GET', server.targets(elsewhere({ bytes: MIB, read: broken(5) })).pull)).toBeUndefined();
    // Shorter or longer than was told.
    const { file } = await server.finished(bytes);
    for (const off of [-1, 1]) {
      const uuid = elsewhere({ bytes: bytes.length + off, read: () => file.read(0, bytes.length) });
      expect(await rawRequest(server.port, 'GET', server.targets(uuid).pull)).toBeUndefined();
    }
  });
});

describe('a growing recording', () => {
  test('comes from byte zero, as it grows, to its end', async () => {
    const { uuid, wav } = server.growing();
    const samples = randomBytes(400_000);
    const asked = rawRequest(server.port, 'GET', server.targets(uuid).pull, { range: 'bytes=5-9' });
    wav.begin();
    const joined = await listening(server.targets(uuid).pull);
    for (let at = 0; at < samples.length; at += 40_000) {
      wav.append(samples.subarray(at, at + 40_000));
      // Not before the other has heard it.
      if (at === 200_000) {
        let heard = 0;
        while (heard < 240_000) heard += (await joined.connection.chunk())?.length ?? Number.POSITIVE_INFINITY;
        joined.connection.close();
      }
    }
    wav.finish();
    const response = await asked;
    expect(response?.status).toBe(200);
    const named = [
      'content-type',
      'transfer-encoding',
      'content-length',
      'accept-ranges',
      'cache-control',
      'etag',
      'content-range',
    ];
    expect(named.map((name) => response?.headers.get(name))).toEqual([
      'audio/wav',
      'chunked',
      undefined,
      'none',
      'no-store',
      undefined,
      undefined,
    ]);
    expect(equal(response?.body.subarray(44), samples)).toBe(true);
    const header = Buffer.from(response?.body.subarray(0, 44) ?? []);
    expect([header.toString('latin1', 0, 4), header.readUInt32LE(4), header.readUInt32LE(40)]).toEqual([
      'RIFF',
      0xffffffff,
      0xffffffff,
    ]);
    expect(equal(joined.first, header)).toBe(true);
    await until(() => server.descriptors(wav.path) === 0, 'its descriptor is closed');
  });

  test('tells its headers by HEAD, without a length and without opening it', async () => {
    const { uuid, wav } = server.growing();
    for (const target of [server.targets(uuid).pull, server.targets(uuid).live]) {
      const { status, headers } = await ask('HEAD', target);
      expect([status, headers.get('content-type'), headers.get('accept-ranges')]).toEqual([200, 'audio/wav', 'none']);
      expect([headers.get('content-length'), headers.get('transfer-encoding')]).toEqual([undefined, 'chunked']);
    }
    expect(server.descriptors(wav.path)).toBe(0);
  });

  test('is joined live at a whole sample, behind a header', async () => {
    const { uuid, wav } = server.growing();
    wav.begin().append(randomBytes(16_001));
    const { connection, head, first } = await listening(server.targets(uuid).live);
    expect([head?.status, head?.headers.get('accept-ranges'), first?.length]).toEqual([200, 'none', 44]);
    const next = randomBytes(1001);
    wav.append(next);
    wav.finish();
    const parts: Uint8Array[] = [];
    for (let part = await connection.chunk(); part?.length; part = await connection.chunk()) parts.push(part);
    connection.close();
    const heard = Buffer.concat(parts);
    // The odd byte that was there belongs to the first sample that comes.
    expect(heard.length).toBe(1002);
    expect(equal(heard.subarray(1), next)).toBe(true);
  });

  test('that is over is not live, and still comes whole', async () => {
    const { uuid, wav } = server.growing();
    const samples = randomBytes(1000);
    wav.begin().append(samples);
    wav.finish();
    expect((await get(server.targets(uuid).live)).status).toBe(404);
    expect(equal((await get(server.targets(uuid).pull)).body.subarray(44), samples)).toBe(true);
  });

  test('that ended without a file is not found, and takes no place', async () => {
    const { uuid, wav } = server.growing();
    server.media.set(uuid, { state: 'growing', appUuid: 'app', path: wav.path, over: () => true });
    for (let turn = 0; turn <= LISTENERS_OF_ONE_MAX; turn++) expect((await get(server.targets(uuid).pull)).status).toBe(404);
  });

  test('that cannot be read is 503, and takes no place', async () => {
    const { uuid, wav } = server.growing();
    // A link to itself.
    symlinkSync(wav.path, wav.path);
    for (let turn = 0; turn <= LISTENERS_OF_ONE_MAX; turn++)
      expect(json(await get(server.targets(uuid).pull)).message).toStartWith('Recording cannot be read now');
    rmSync(wav.path);
  });

  test('is heard to its end by who listens, although its name is gone', async () => {
    const { uuid, wav } = server.growing();
    const samples = randomBytes(100_000);
    wav.begin().append(samples.subarray(0, 50_000));
    const { connection } = await listening(server.targets(uuid).pull);
    rmSync(wav.path);
    wav.append(samples.subarray(50_000));
    wav.finish();
    const parts: Uint8Array[] = [];
    for (let part = await connection.chunk(); part?.length; part = await connection.chunk()) parts.push(part);
    connection.close();
    expect(equal(Buffer.concat(parts), samples)).toBe(true);
  });

  test('a listener that reads nothing is given no more than its socket holds, and harms nobody', async () => {
    const { uuid, wav } = server.growing();
    wav.begin();
    const { pull } = server.targets(uuid);
    const slow = await listening(pull);
    slow.connection.socket.pause();
    const quick = await listening(pull);
    const written = createHash('sha256');
    const heard = createHash('sha256');
    const part = randomBytes(MIB);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    for (let count = 0; count < 100; count++) {
      part.writeUInt32LE(count, 0);
      written.update(part);
      wav.append(part);
    }
    wav.finish();
    for (let next = await quick.connection.chunk(); next?.length; next = await quick.connection.chunk()) heard.update(next);
    quick.connection.close();
    expect(heard.digest('hex')).toBe(written.digest('hex'));
    Bun.gc(true);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * MIB);
    // The slow one's, which has heard a few MiB of it, is left.
    await until(() => server.descriptors(wav.path) === 1, 'the other one is closed');
    slow.connection.close();
    await until(() => server.descriptors(wav.path) === 0, 'its descriptor is closed');
  });

  test('who leaves frees its descriptor at once, whatever it was waiting for', async () => {
    const { uuid, wav } = server.growing();
    wav.begin().append(randomBytes(1000));
    const itsWriters = 1;
    for (const kind of ['pull', 'live'] as const) {
      const one = await listening(server.targets(uuid)[kind]);
      const other = await listening(server.targets(uuid)[kind]);
      expect(server.descriptors(wav.path)).toBe(itsWriters + 1);
      one.connection.close();
      other.connection.close();
      await until(() => server.descriptors(wav.path) === itsWriters, 'its descriptor is closed');
    }
    wav.finish();
  });

  test('has so many listeners and no more, and a place is free as soon as one leaves', async () => {
    const { uuid, wav } = server.growing();
    wav.begin();
    const { pull } = server.targets(uuid);
    const all = await Promise.all(Array.from({ length: LISTENERS_OF_ONE_MAX }, () => listening(pull)));
    expect(all.every(({ head }) => head?.status === 200)).toBe(true);
    const refused = await get(pull);
    expect([refused.status, json(refused).code, refused.headers.get('retry-after')]).toEqual([503, 'unavailable', '5']);
    const { uuid: another, wav: itsWav } = server.growing();
    itsWav.begin();
    itsWav.finish();
    expect((await get(server.targets(another).pull)).status).toBe(200);
    all[0]?.connection.close();
    let status: number | undefined;
    while (status !== 200) {
      const { connection, head } = await listening(pull);
      status = head?.status;
      connection.close();
    }
    for (const { connection } of all) connection.close();
    wav.finish();
    await until(() => server.descriptors(wav.path) === 0, 'its descriptor is closed');
  });

  test('of one application, slow readers of finished recordings keep out no other, and nobody who listens', async () => {
    const { uuid, file } = await server.finished(randomBytes(1000));
    const growing = server.growing();
    growing.wav.begin();
    let isReading = true;
    const door = new RecordingMediaDoor({
      recordings: {
        media: async (asked) =>
          asked === growing.uuid ? growing.wav : { state: 'finished', appUuid: asked === uuid ? 'app' : 'other', file },
      },
      recordingUrls: server.urls,
      clock: systemClock(),
      log: silentLog,
      metrics: { request() {} },
      peer: () => (isReading ? { address: '127.0.0.1', port: 1 } : undefined),
    });
    const status = async (recordingUuid: string, kind: 'pull' | 'live' = 'pull', method = 'GET') => {
      const answer = await door.answer(new Request(`http://own${server.targets(recordingUuid)[kind]}`, { method }));
      await answer.body?.cancel();
      return answer.status;
    };
    for (let readers = 0; readers < FILE_READER_SHARES.ofApp; readers++) expect(await status(uuid)).toBe(200);
    expect(await status(uuid)).toBe(503);
    expect(await status(uuid, 'pull', 'HEAD')).toBe(200);
    expect(await status(newRecordingUuid())).toBe(200);
    expect(await status(growing.uuid, 'live')).toBe(200);
    isReading = false;
    let last = 503;
    while (last === 503) last = await status(uuid);
    expect(last).toBe(200);
    growing.wav.finish();
  });
});

describe('a client that never reads', () => {
  const size = 200 * MIB;

  test('of a file costs no memory, and frees it when it leaves', async () => {
    const { uuid, path } = await server.finished(new Uint8Array(44));
    truncateSync(path, size);
    const large = await localFile(uuid, path);
    if (large === undefined) throw new Error('no file');
    server.media.set(uuid, { state: 'finished', appUuid: 'app', file: large });
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    const connection = new RawHttp(server.port);
    connection.send('GET', server.targets(uuid).pull);
    expect((await connection.head())?.headers.get('content-length')).toBe(String(size));
    connection.socket.pause();
    await untilSteady(() => connection.socket.bytesRead, 200);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * MIB);
    expect(server.descriptors(path)).toBe(1);
    connection.close();
    await until(() => server.descriptors(path) === 0, 'its descriptor is closed');
  });

  test('of an object is given only what its socket holds, and stops the reading when it leaves', async () => {
    let read = 0;
    let cancelled = false;
    const uuid = elsewhere({
      bytes: size,
      read: () =>
        new ReadableStream<Uint8Array>(
          {
            async pull(controller) {
              await new Promise<void>((resolve) => setTimeout(resolve, 0));
              read += 65_536;
              controller.enqueue(new Uint8Array(65_536));
            },
            cancel() {
              cancelled = true;
            },
          },
          { highWaterMark: 0 },
        ),
    });
    const connection = new RawHttp(server.port);
    connection.send('GET', server.targets(uuid).pull);
    await connection.head();
    connection.socket.pause();
    expect(await untilSteady(() => read, 200)).toBeLessThan(16 * MIB);
    connection.close();
    await until(() => cancelled, 'the reading is given up');
  });
});

describe('a recording of another node', () => {
  /** The recordings that are on the other node, whose door this one asks. */
  const there = new Map<string, RecordingMedia>();
  let away = false;
  const other = new RecordingMediaDoor({
    recordings: { media: async (uuid) => there.get(uuid) },
    clock: systemClock(),
    log: silentLog,
    metrics: { request() {} },
  });
  const streams: PeerStreams = {
    nodeOfIngest: () => undefined,
    nodeOfVolume: () => 'other',
    send: async () => problems.nodeAway('this call'),
    redeem: () => undefined,
    async get(_node, object, headers) {
      if (away || object.kind !== 'media') return undefined;
      const asked = new Request('http://other/', { headers });
      const response = await other.answerPeer(asked, object.recordingUuid, object.as);
      const reader = response.body?.getReader();
      return {
        status: response.status,
        headers: response.headers,
        next: async () => (await reader?.read())?.value,
        close: () => void reader?.cancel().catch(() => {}),
      };
    },
  };
  let own: MediaServer;
  beforeAll(async () => {
    own = await openMediaServer({ streams });
  });
  afterAll(() => own.close());

  test('answers HEAD as its own node does, whatever range is asked, and of one that grows without a length', async () => {
    const { uuid, file } = await own.finished(randomBytes(1000));
    there.set(uuid, { state: 'finished', appUuid: 'app', file });
    own.media.set(uuid, { state: 'elsewhere', appUuid: 'app', volumeId: 'volume' });
    for (const range of ['bytes=0-9', 'bytes=5000-']) {
      const response = await rawRequest(own.port, 'HEAD', own.targets(uuid).pull, { range });
      expect([response?.status, response?.headers.get('content-length')]).toEqual([200, '1000']);
    }
    const part = await rawRequest(own.port, 'GET', own.targets(uuid).pull, { range: 'bytes=0-9' });
    expect([part?.status, part?.body.length]).toEqual([206, 10]);
    expect(part?.headers.get('content-disposition')).toBe(`inline; filename="${uuid}.wav"`);
    // A refusal is no file.
    const gone = newRecordingUuid();
    own.media.set(gone, { state: 'elsewhere', appUuid: 'app', volumeId: 'volume' });
    const refused = await rawRequest(own.port, 'GET', own.targets(gone).pull);
    expect([refused?.status, refused?.headers.get('content-disposition') ?? '']).toEqual([404, '']);
    // What the reader has already is sent by nobody, and takes no place.
    const known = { 'if-none-match': part?.headers.get('etag') ?? '' };
    for (let turn = 0; turn <= LISTENERS_OF_ONE_MAX; turn++)
      expect((await rawRequest(own.port, 'GET', own.targets(uuid).pull, known))?.status).toBe(304);
    const growing = own.growing();
    growing.wav.begin();
    there.set(growing.uuid, growing.wav);
    own.media.set(growing.uuid, { state: 'elsewhere', appUuid: 'app', volumeId: 'volume' });
    const head = await rawRequest(own.port, 'HEAD', own.targets(growing.uuid).pull);
    expect([head?.status, head?.headers.has('content-length')]).toEqual([200, false]);
    await until(() => other.listeners === 0, 'nobody listens there');
    growing.wav.finish();
  });

  test('that cannot be reached leaves no place taken', async () => {
    const uuid = newRecordingUuid();
    own.media.set(uuid, { state: 'elsewhere', appUuid: 'app', volumeId: 'volume' });
    away = true;
    for (let turn = 0; turn <= LISTENERS_OF_ONE_MAX; turn++) {
      const response = await rawRequest(own.port, 'GET', own.targets(uuid).pull);
      expect(response && json(response).message).toContain('cannot be read now');
    }
    away = false;
  });
});
