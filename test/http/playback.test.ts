/** The shapes of playback, its rate buckets, and the ingest of a push, through the real app. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test';
import type { PeerStreams } from '../../src/call/ports/peer-streams.ts';
import { buckets } from '../../src/call/rate/buckets.ts';
import type { OpenIngest } from '../../src/call/session/ingests.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import { BODY_PIECES_MAX, HTTP_IDLE_TIMEOUT_SEC } from '../../src/limits.ts';
import { OpenPush } from '../../src/media/playback/push.ts';
import { openPlatform, type Platform } from './platform.ts';

const OPERATION = newUuid();
let platform: Platform;
let app: AppSecrets;
/** What was done to the server's idle timeout: lifted, or set to so many seconds. */
const idle: ('lifted' | number)[] = [];
/** A push of another node, and what went on there. */
const elsewhere = newUuid();
const wentOn: unknown[] = [];
const streams: PeerStreams = {
  nodeOfIngest: (name) => (name === elsewhere ? 'node-b' : undefined),
  nodeOfVolume: () => undefined,
  send: async (nodeId, object, request) => {
    wentOn.push([nodeId, object, [...idle], await request.text()]);
    return { status: 200, body: { operation_uuid: OPERATION, bytes_received: 7 } };
  },
  ...{ get: async () => undefined, redeem: () => undefined },
};
beforeAll(async () => {
  platform = await openPlatform({
    streams,
    disableIdleTimeout: () => void idle.push('lifted'),
    setIdleTimeout: (_, seconds) => void idle.push(seconds),
  });
  app = await platform.testStore.store.apps.create({ name: 'a' });
}, 60_000);
afterAll(() => platform.close());

const last = () => platform.sessions.commands.at(-1)?.command;

describe('play', () => {
  test('has four kinds, each with its own fields and defaults', async () => {
    const rows: readonly (readonly [object, object])[] = [
      [
        { type: 'files', urls: ['http://a/1'] },
        { type: 'play', urls: ['http://a/1'], loop: 1, volume: 100 },
      ],
      [
        { type: 'files', urls: ['http://a/1'], loop: 0, volume: 0 },
        { type: 'play', urls: ['http://a/1'], loop: 0, volume: 0 },
      ],
      [
        { type: 'stream', url: 'https://a/live' },
        { type: 'play_stream', url: 'https://a/live', volume: 100 },
      ],
      [{ type: 'silence' }, { type: 'play_silence' }],
      [
        { type: 'push', media_format: { encoding: 'mulaw', sample_rate: 8000 }, volume: 50 },
        { type: 'play_push', format: { encoding: 'mulaw', sample_rate: 8000 }, volume: 50 },
      ],
    ];
    for (const [body, command] of rows) {
      const uuid = platform.session(app);
      expect((await platform.call(app, 'POST', `/v1/sessions/${uuid}/playback/play`, body)).status).toBe(202);
      expect(last()).toEqual(command as never);
    }
  });

  test('refuses what is none of them', async () => {
    const uuid = platform.session(app);
    for (const body of [
      {},
      { type: 'tape' },
      { type: 'files' },
      { type: 'files', urls: [] },
      { type: 'files', urls: ['ftp://a/1'] },
      { type: 'stream', url: 'http://a', media_format: { encoding: 'mulaw', sample_rate: 8000 } },
      { type: 'stream', urls: ['http://a'] },
      { type: 'silence', seconds: 3 },
      { type: 'push' },
      { type: 'push', media_format: { encoding: 'mulaw', sample_rate: 16000 } },
      { type: 'push', media_format: { encoding: 'pcm_s16le', sample_rate: 44100 } },
      { type: 'push', media_format: { encoding: 'pcm_s16le', sample_rate: '8000' } },
    ]) {
      expect([body, (await platform.call(app, 'POST', `/v1/sessions/${uuid}/playback/play`, body)).status]).toEqual([body, 400]);
    }
  });
});

describe('what plays', () => {
  test('is paused, resumed, restarted and moved, with or without an empty body', async () => {
    const uuid = platform.session(app);
    const post = (path: string, body?: unknown) => platform.call(app, 'POST', `/v1/sessions/${uuid}/playback/${path}`, body);
    for (const type of ['pause', 'resume', 'restart']) {
      for (const body of [undefined, {}]) expect((await post(type, body)).status).toBe(202);
      expect(last()).toEqual({ type: 'control_playback', control: { type } } as never);
      expect((await post(type, { now: true })).status).toBe(400);
    }
    for (const [body, place] of [
      [{ position_ms: 0 }, { positionMs: 0 }],
      [{ offset_ms: -5_000 }, { offsetMs: -5_000 }],
    ] as const) {
      expect((await post('seek', body)).status).toBe(202);
      expect(last()).toEqual({ type: 'control_playback', control: { type: 'seek', place } });
    }
    for (const body of [
      undefined,
      {},
      { position_ms: -1 },
      { position_ms: 0, offset_ms: 0 },
      { offset_ms: 0.5 },
      { position_ms: '1' },
    ]) {
      expect([body, (await post('seek', body)).status]).toEqual([body, 400]);
    }
  });

  test('has the buckets of the interface: 20 each, play 8', async () => {
    const rows = [
      ['pause', {}, 20],
      ['resume', {}, 20],
      ['restart', {}, 20],
      ['stop', {}, 20],
      ['seek', { position_ms: 1 }, 20],
      ['play', { type: 'silence' }, 8],
    ] as const;
    const still = platform.now();
    const running = platform.now;
    platform.now = () => still;
    try {
      for (const [command, body, capacity] of rows) {
        const uuid = platform.session(app);
        const statuses: number[] = [];
        for (let i = 0; i <= capacity; i++) {
          statuses.push((await platform.call(app, 'POST', `/v1/sessions/${uuid}/playback/${command}`, body)).status);
        }
        expect([command, statuses.filter((status) => status === 202).length, statuses.at(-1)]).toEqual([command, capacity, 429]);
      }
    } finally {
      platform.now = running;
    }
  });
});

describe('the ingest of a push', () => {
  const open = (more: Partial<OpenIngest> = {}): { name: string; push: OpenPush } => {
    const push = new OpenPush({ encoding: 'mulaw', sample_rate: 8000 });
    const name = newUuid();
    const entry: OpenIngest = {
      appUuid: app.appUuid,
      operationUuid: OPERATION,
      ingest: push,
      expiresAt: platform.now() + 60_000,
      used: false,
      ...more,
    };
    platform.sessions.ingest = (appUuid, asked) => (appUuid === app.appUuid && asked === name ? entry : undefined);
    return { name, push };
  };
  const send = (name: string, body: BodyInit, as = app, headers: Record<string, string> = {}) =>
    platform.raw(`/v1/ingest/${name}`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${as.appUuid}:${as.apiKey}`, ...headers },
    });

  test('takes one body of any media type and tells how much it was', async () => {
    const { name, push } = open();
    const answer = await send(name, new Uint8Array(1_000), app, { 'content-type': 'audio/basic' });
    expect([answer.status, answer.body]).toEqual([200, { operation_uuid: OPERATION, bytes_received: 1_000 }]);
    const { now } = platform;
    for (const later of [0, 61_000]) {
      platform.now = () => now() + later;
      const again = await send(name, 'again');
      expect([again.status, again.body.message]).toEqual([409, 'The ingest URL was already used']);
    }
    platform.now = now;
    push.release();
  });

  test('refuses a compressed body with 415 instead of playing it as noise, and takes the next one', async () => {
    const { name, push } = open();
    const packed = await send(name, Bun.gzipSync(new Uint8Array(1_000)), app, { 'content-encoding': 'gzip' });
    expect([packed.status, packed.body.code]).toEqual([415, 'invalid_request']);
    expect((await send(name, new Uint8Array(1_000), app, { 'content-encoding': 'identity' })).status).toBe(200);
    push.release();
  });

  test('is 404 for another application and for no name, 403 once it has expired, 409 once the playback is over, 401 without the key', async () => {
    const { name, push } = open();
    const stranger = await platform.testStore.store.apps.create({ name: 'b' });
    expect((await send(name, 'x', stranger)).status).toBe(404);
    expect((await send(newUuid(), 'x')).status).toBe(404);
    expect((await send('nonsense', 'x')).status).toBe(404);
    expect((await send(name, 'x', { ...app, apiKey: 'wrong' })).status).toBe(401);
    push.release();
    const over = await send(name, 'x');
    expect([over.status, over.body.message]).toEqual([409, 'The playback is over']);
    const late = open({ expiresAt: platform.now() - 1 });
    expect((await send(late.name, 'x')).status).toBe(403);
    late.push.release();
  });

  test('has no idle timeout while its body is taken, and the usual one afterwards, however it ends', async () => {
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    for (const [body, status, ends, failures] of [
      ['samples', 200, 1, 0],
      [broken, 400, 0, 1],
    ] as const) {
      const { name, push } = open();
      const [end, fail] = [spyOn(push, 'end'), spyOn(push, 'fail')];
      idle.length = 0;
      expect((await send(name, body)).status).toBe(status);
      expect([idle, end.mock.calls.length, fail.mock.calls.length]).toEqual([['lifted', HTTP_IDLE_TIMEOUT_SEC], ends, failures]);
      push.release();
    }
  });

  test('goes on to the node that made the push, where that is another one, without an idle timeout meanwhile', async () => {
    platform.sessions.ingest = () => undefined;
    idle.length = 0;
    expect((await send(elsewhere, 'samples')).body).toEqual({ operation_uuid: OPERATION, bytes_received: 7 });
    const object = { kind: 'ingest', appUuid: app.appUuid, ingestUuid: elsewhere };
    expect([wentOn, idle]).toEqual([[['node-b', object, ['lifted'], 'samples']], ['lifted', HTTP_IDLE_TIMEOUT_SEC]]);
    expect((await send(newUuid(), 'samples')).status).toBe(404);
  });

  test('that goes on to another node and is refused for its rate leaves the idle timeout of its connection', async () => {
    const other = await platform.testStore.store.apps.create({ name: 'b' });
    platform.sessions.ingest = () => undefined;
    const { now } = platform;
    const at = now();
    platform.now = () => at;
    idle.length = 0;
    const asked = Array.from({ length: buckets.ingest.capacity + 5 }, () => send(elsewhere, 'samples', other));
    const refused = (await Promise.all(asked)).filter(({ status }) => status === 429).length;
    platform.now = now;
    const lifted = idle.filter((each) => each === 'lifted').length;
    expect([refused, lifted]).toEqual([5, buckets.ingest.capacity]);
  });

  test('has failed, and is refused, where its body comes in more small pieces than it has samples to tell', async () => {
    const inPieces = (count: number) => {
      let left = count;
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
        left-- > 0 ? controller.enqueue(new Uint8Array(1)) : controller.close();
      return new ReadableStream({ pull }, { highWaterMark: 0 });
    };
    for (const [count, told, failures] of [
      [BODY_PIECES_MAX * 2, [400, { code: 'invalid_request', message: 'body: must not come in so many small chunks' }], 1],
      [BODY_PIECES_MAX, [200, { operation_uuid: OPERATION, bytes_received: BODY_PIECES_MAX }], 0],
    ] as const) {
      const { name, push } = open();
      const fail = spyOn(push, 'fail');
      const answer = await send(name, inPieces(count));
      expect([answer.status, answer.body]).toEqual([...told]);
      expect(fail).toHaveBeenCalledTimes(failures);
      push.release();
    }
  });

  test('ends when the playback does, in the middle of the body', async () => {
    const { name, push } = open();
    const answer = send(name, new Uint8Array(100_000)); // more than is taken ahead
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    push.release();
    expect((await answer).status).toBe(409);
  });

  test('ends when the playback does, while the sender says nothing', async () => {
    const { name, push } = open();
    const asked = Promise.withResolvers<void>();
    const silent = new ReadableStream(
      {
        pull() {
          asked.resolve();
          return new Promise(() => {});
        },
      },
      // It is asked when somebody reads it, and not before.
      { highWaterMark: 0 },
    );
    const answer = send(name, silent);
    await asked.promise;
    push.release();
    expect(await answer).toMatchObject({ status: 409, body: { message: 'The playback takes no more audio' } });
  });
});
