/** Whole WebSocket Sessions: bots of ours as the application's servers, phones through SIPp in the same Room. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { keepsPace } from '../support/pace.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { call, createRoom, hangUp, join, level } from '../support/room-call.ts';
import { decodeMulaw, type RtpPacket } from '../support/rtp-peer.ts';
import { sippInstalled } from '../support/sipp.ts';

const PCM16 = { encoding: 'pcm_s16le', sample_rate: 16_000 };
const MULAW = { encoding: 'mulaw', sample_rate: 8000 };

/** A bot on a port of its own. */
class Bot {
  readonly #server;
  sockets: Bun.ServerWebSocket<undefined>[] = [];
  binary: { bytes: Uint8Array; at: number }[] = [];
  texts: Record<string, unknown>[] = [];
  headers: Headers | undefined;
  onBinary: (socket: Bun.ServerWebSocket<undefined>, bytes: Uint8Array) => void = () => {};
  #waiting: { ready: () => boolean; resolve: () => void }[] = [];

  constructor(answer?: () => Response, protocol?: string) {
    this.#server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request, server) => {
        this.headers = request.headers;
        if (answer !== undefined) return answer();
        const headers: Record<string, string> = protocol === undefined ? {} : { 'sec-websocket-protocol': protocol };
        return server.upgrade(request, { data: undefined, headers }) ? undefined : new Response(null, { status: 400 });
      },
      websocket: {
        maxPayloadLength: 64 << 20,
        open: (socket) => {
          this.sockets.push(socket);
          this.#check();
        },
        message: (socket, message) => {
          if (typeof message === 'string') this.texts.push(JSON.parse(message));
          else {
            const bytes = new Uint8Array(message);
            this.binary.push({ bytes, at: performance.now() });
            this.onBinary(socket, bytes);
          }
          this.#check();
        },
      },
    });
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#server.port}/bot`;
  }

  #check(): void {
    this.#waiting = this.#waiting.filter(({ ready, resolve }) => {
      if (!ready()) return true;
      resolve();
      return false;
    });
  }

  async until(ready: () => boolean, what: string): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => reject(new Error(`waited for ${what}: ${this.binary.length} frames, ${JSON.stringify(this.texts.slice(-5))}`)),
      15_000,
    );
    this.#waiting.push({ ready, resolve });
    await promise.finally(() => clearTimeout(timer));
  }

  send(message: Uint8Array | Record<string, unknown>): void {
    this.sockets[0]?.send(message instanceof Uint8Array ? message : JSON.stringify(message));
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }
}

function tone(hz: number, seconds: number, rate: number): Uint8Array {
  const samples = Int16Array.from(
    { length: Math.round(seconds * rate) },
    (_, at) => 8000 * Math.sin((2 * Math.PI * hz * at) / rate),
  );
  return new Uint8Array(samples.buffer);
}

const samplesOf = (bytes: Uint8Array): Float32Array =>
  Float32Array.from(new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1), (sample) => sample / 32_768);

describe.skipIf(!sippInstalled)('a WebSocket Session', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const bots: Bot[] = [];
  const bot = (...args: ConstructorParameters<typeof Bot>) => {
    const made = new Bot(...args);
    bots.push(made);
    return made;
  };

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2', RECORDING_LIVENESS_SEC: '3' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    for (const each of bots) await each.stop();
  });

  const stage = () => ({ platform, receiver, app });
  const connect = async (url: string, more: Record<string, unknown> = {}, formats: [object, object] = [PCM16, PCM16]) => {
    const answer = await platform.api(app, 'POST', '/v1/sessions:connectWebsocket', {
      websocket: { url, ...more },
      media_format: { from_session: formats[0], to_session: formats[1] },
      client_state: 'bot 7',
    });
    expect(answer).toMatchObject({ status: 202, body: { status: 'in_progress' } });
    return { sessionUuid: String(answer.body.session_uuid), operationUuid: answer.body.operation_uuid };
  };

  test('is answered when it is connected, sends a message each 20 ms, and ends with its connection', async () => {
    const server = bot();
    const { sessionUuid, operationUuid } = await connect(server.url, { headers: { 'X-Token': 'secret' } });
    const connected = await receiver.event('websocket.connected', sessionUuid);
    expect(connected.body).toMatchObject({ operation_uuid: operationUuid, client_state: 'bot 7' });
    expect(server.headers?.get('x-token')).toBe('secret');
    expect(server.headers?.get('x-session-uuid')).toBe(sessionUuid);
    expect(server.headers?.get('traceparent')).toMatch(/^00-/);
    const seen = await platform.api(app, 'GET', `/v1/sessions/${sessionUuid}`);
    expect(seen.body).toMatchObject({ type: 'websocket', status: 'answered', caller_id: '', did: '' });

    await server.until(() => server.binary.length >= 50, 'a second of frames');
    expect(server.binary.every(({ bytes }) => bytes.length === 640)).toBe(true);
    const stamps = () => server.binary.map(({ at }) => at);
    await server.until(() => keepsPace(stamps(), 20), 'a second with a frame each 20 ms');

    server.sockets[0]?.close(4000, 'done');
    const gone = await receiver.event('websocket.disconnected', sessionUuid);
    expect(gone.body).toMatchObject({ reason: 'remote_closed', close_code: 4000 });
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({ answered: true, hangup_cause: 'completed', client_state: 'bot 7' });
    expect(receiver.names(sessionUuid)).toEqual(['websocket.connected', 'websocket.disconnected', 'session.ended']);
  }, 30_000);

  test('is recorded at its own rate, to the end of its connection, which its last event waits for', async () => {
    const server = bot();
    const { sessionUuid } = await connect(server.url);
    await receiver.event('websocket.connected', sessionUuid);
    server.send(tone(700, 2, 16_000));
    const path = `/v1/sessions/${sessionUuid}/recordings`;
    const made = await platform.api(app, 'POST', path, { direction: 'both', channels: 'mono' });
    expect(made.status).toBe(202);
    const available = await receiver.event('recording.became_available', sessionUuid);
    expect(available.body).toMatchObject({ client_state: 'bot 7', recording_uuid: made.body.recording_uuid });
    const from = server.binary.length;
    await server.until(() => server.binary.length >= from + 25, 'half a second');
    server.sockets[0]?.close(1000);
    await receiver.event('session.ended', sessionUuid);
    expect(receiver.names(sessionUuid).slice(-3)).toEqual(['websocket.disconnected', 'recording.ended', 'session.ended']);
    const url = String((await receiver.event('recording.ended', sessionUuid)).body.pull_url);
    const wav = new Uint8Array(await (await fetch(url)).arrayBuffer());
    expect(new DataView(wav.buffer).getUint32(24, true)).toBe(16_000);
    expect(level(samplesOf(wav.subarray(44)).subarray(3_200, 9_600), 700, 16_000)).toBeGreaterThan(-20);
  }, 30_000);

  test('that says nothing has no audio to record, unless gaps are kept, until something is heard', async () => {
    const server = bot();
    const { sessionUuid } = await connect(server.url);
    await receiver.event('websocket.connected', sessionUuid);
    const path = `/v1/sessions/${sessionUuid}/recordings`;
    const record = async (include_gaps: boolean) =>
      (await platform.api(app, 'POST', path, { direction: 'both', channels: 'mono', include_gaps })).body.recording_uuid;
    const heard = await record(false);
    const whole = await record(true);
    const failed = await receiver.event('recording.failed', sessionUuid);
    expect(failed.body).toMatchObject({ recording_uuid: heard, error: 'recording unavailable', pull_url: '' });
    server.send(tone(700, 1, 16_000));
    await receiver.event('websocket.audio_playback_completed', sessionUuid);
    server.sockets[0]?.close(1000);
    await receiver.event('session.ended', sessionUuid);
    const of = (recording: unknown) => receiver.of(sessionUuid).filter(({ body }) => body.recording_uuid === recording);
    expect(of(heard).map(({ event }) => event)).toEqual(['recording.failed', 'recording.ended']);
    expect(of(heard).at(-1)?.body.duration).toBe(1);
    expect(of(whole).map(({ event }) => event)).toEqual(['recording.became_available', 'recording.ended']);
    expect(of(whole).at(-1)?.body.duration).toBeGreaterThanOrEqual(3);
  }, 30_000);

  test('echoes a phone in the same Room to itself, at other rates and encodings, and hears its keys', async () => {
    for (const format of [PCM16, MULAW, { encoding: 'pcm_s16le', sample_rate: 48_000 }]) {
      const server = bot(undefined, 'sidetone.v1');
      server.onBinary = (socket, bytes) => void socket.send(bytes);
      const { sessionUuid } = await connect(server.url, { subprotocol: 'sidetone.v1' }, [format, format]);
      await receiver.event('websocket.connected', sessionUuid);
      const caller = await call(stage(), 700);
      const roomId = await createRoom(stage());
      await join(stage(), roomId, sessionUuid);
      await join(stage(), roomId, caller.sessionUuid);
      const { ear } = caller;
      await ear.until(() => level(decodeMulaw(ear.packets.slice(-25)), 700) > -20, 'the echo');
      caller.speaker.press('7');
      await server.until(() => server.texts.some((text) => text.type === 'dtmf'), 'the key');
      expect(server.texts.filter((text) => text.type === 'dtmf')).toEqual([
        { type: 'dtmf', session_uuid: caller.sessionUuid, digit: '7', duration_ms: 80 },
      ]);
      expect((await receiver.event('dtmf.received', caller.sessionUuid)).body).toMatchObject({
        digit: '7',
        method: 'rfc4733',
        duration_ms: 80,
      });
      await hangUp(stage(), caller);
      await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
      const gone = await receiver.event('websocket.disconnected', sessionUuid);
      expect(gone.body).toMatchObject({ reason: 'local_closed', close_code: 1000 });
      expect(server.texts[0]).toMatchObject({ type: 'start', session_uuid: sessionUuid, media_format: { from_session: format } });
    }
  }, 60_000);

  test('plays a burst in real time, tells once when it has been heard, and clears it within a frame', async () => {
    const server = bot(undefined, 'sidetone.v1');
    const { sessionUuid } = await connect(server.url, { subprotocol: 'sidetone.v1' });
    await receiver.event('websocket.connected', sessionUuid);
    const caller = await call(stage(), 300);
    const roomId = await createRoom(stage());
    await join(stage(), roomId, sessionUuid);
    await join(stage(), roomId, caller.sessionUuid);
    const burst = tone(900, 3, 16_000);
    const started = performance.now();
    // Any size, odd bytes too.
    for (let at = 0; at < burst.length; at += 9999) server.send(burst.slice(at, at + 9999));
    server.send({ type: 'mark', name: 'end' });
    await server.until(() => server.texts.some((text) => text.type === 'mark_played'), 'the mark');
    expect(performance.now() - started).toBeGreaterThan(2900);
    const completed = await receiver.event('websocket.audio_playback_completed', sessionUuid);
    expect(Math.abs(Number(completed.body.duration_ms) - 3000)).toBeLessThanOrEqual(40);
    expect(receiver.of(sessionUuid).filter((event) => event.event === 'websocket.audio_playback_completed')).toHaveLength(1);

    const { ear } = caller;
    const before = ear.packets.length;
    server.send(tone(900, 20, 16_000));
    const isLoud = (packets: RtpPacket[]) => level(decodeMulaw(packets), 900) > -40;
    await ear.until(() => level(decodeMulaw(ear.packets.slice(-10)), 900) > -20, 'the second burst');
    server.send({ type: 'clear' });
    await ear.until(() => !isLoud(ear.packets.slice(-10)), 'silence');
    await receiver.until(
      () => receiver.of(sessionUuid).filter((event) => event.event === 'websocket.audio_playback_completed').length === 2,
      'the end of the second burst',
    );
    // What is told as played is what was heard, but for the ramp and what the network held.
    const told = Number(
      receiver.of(sessionUuid).findLast((event) => event.event === 'websocket.audio_playback_completed')?.body.duration_ms,
    );
    const heard = ear.packets.slice(before).filter((packet) => isLoud([packet])).length * 20;
    expect(told).toBeLessThan(15_000);
    expect(Math.abs(heard - told)).toBeLessThanOrEqual(80);
    await hangUp(stage(), caller);
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    await receiver.event('session.ended', sessionUuid);
  }, 60_000);

  test('speaks Twilio’s messages to a bot written for them', async () => {
    const server = bot();
    const { sessionUuid } = await connect(server.url, { subprotocol: 'twilio' }, [MULAW, MULAW]);
    await receiver.event('websocket.connected', sessionUuid);
    expect(server.headers?.get('sec-websocket-protocol')).toBeNull();
    await server.until(() => server.texts.filter((text) => text.event === 'media').length >= 5, 'media');
    expect(server.texts[0]).toEqual({ event: 'connected', protocol: 'Call', version: '1.0.0' });
    expect(server.texts[1]).toMatchObject({
      event: 'start',
      start: { callSid: sessionUuid, mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000 } },
    });
    const media = server.texts[2] as { media: { payload: string; timestamp: string }; streamSid: string };
    expect(Buffer.from(media.media.payload, 'base64')).toHaveLength(160);
    const payload = Buffer.alloc(800, 0x20).toString('base64');
    server.send({ event: 'media', streamSid: media.streamSid, media: { payload } });
    server.send({ event: 'mark', streamSid: media.streamSid, mark: { name: 'said' } });
    await server.until(() => server.texts.some((text) => text.event === 'mark'), 'the mark');
    const completed = await receiver.event('websocket.audio_playback_completed', sessionUuid);
    expect(completed.body.duration_ms).toBe(100);
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    await server.until(() => server.texts.some((text) => text.event === 'stop'), 'the stop');
    await receiver.event('session.ended', sessionUuid);
  }, 30_000);

  test('that cannot be connected tells why, then ends', async () => {
    const cases: [string, string, string][] = [
      [bot(() => new Response(null, { status: 401 })).url, 'handshake_rejected', 'http_4xx'],
      [bot(() => new Response(null, { status: 500 })).url, 'handshake_rejected', 'http_5xx'],
      ['ws://127.0.0.1:1/', 'connection_refused', 'network'],
      ['ws://10.20.30.40/', 'connection_precondition_failed', 'policy'],
      [bot(() => new Response('hello')).url.replace('ws:', 'wss:'), 'tls_failed', 'tls'],
    ];
    for (const [url, reason, error] of cases) {
      const { sessionUuid, operationUuid } = await connect(url);
      const failed = await receiver.event('websocket.failed', sessionUuid);
      expect(failed.body).toMatchObject({ reason, error, operation_uuid: operationUuid });
      const end = await receiver.event('session.ended', sessionUuid);
      expect(end.body).toMatchObject({ answered: false, duration_seconds: 0 });
      expect(receiver.names(sessionUuid)).toEqual(['websocket.failed', 'session.ended']);
    }
  }, 30_000);

  test('whose server dies leaves the Room, which goes on', async () => {
    const server = bot();
    const { sessionUuid } = await connect(server.url);
    await receiver.event('websocket.connected', sessionUuid);
    const caller = await call(stage(), 440);
    const roomId = await createRoom(stage());
    await join(stage(), roomId, sessionUuid);
    await join(stage(), roomId, caller.sessionUuid);
    await server.until(() => level(samplesOf(server.binary.at(-1)?.bytes ?? new Uint8Array(2)), 440, 16_000) > -25, 'the caller');
    server.sockets[0]?.terminate();
    await receiver.event('session.ended', sessionUuid);
    expect(receiver.names(sessionUuid).slice(-3)).toEqual(['websocket.disconnected', 'room.member.left', 'session.ended']);
    expect(receiver.of(sessionUuid).at(-2)?.body.reason).toBe('hangup');
    expect((await platform.api(app, 'GET', `/api/v1/rooms/${roomId}`)).body.member_count).toBe(1);
    await hangUp(stage(), caller);
  }, 30_000);

  test('is refused before it is tried where the request is wrong', async () => {
    const wrong: Record<string, unknown>[] = [
      { url: 'http://a/' },
      { url: 'ws://u:p@a/' },
      { url: 'ws://a/', headers: { Host: 'b' } },
      { url: 'ws://a/', headers: { 'X-A': 'b\r\nc: d' } },
      { url: 'ws://a/', connect_timeout_sec: 31 },
      { url: 'ws://a/', subprotocol: 'a b' },
    ];
    for (const websocket of wrong) {
      const answer = await platform.api(app, 'POST', '/v1/sessions:connectWebsocket', {
        websocket,
        media_format: { from_session: PCM16, to_session: PCM16 },
      });
      expect([websocket, answer.status, answer.body.code]).toEqual([websocket, 400, 'invalid_request']);
    }
  });
});
