/** A browser, a phone and a bot in one Room: each says a tone of its own, and hears those of the other two. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { type Caller, call, createRoom, hangUp, join, level } from '../support/room-call.ts';
import { decodeMulaw } from '../support/rtp-peer.ts';
import { sippInstalled } from '../support/sipp.ts';
import { mulawTone, tokenOf, WebrtcPeer } from '../support/webrtc-peer.ts';

const BROWSER_HZ = 440;
const PHONE_HZ = 660;
const BOT_HZ = 880;
const BOT_RATE = 16_000;
const BOT_SECONDS = 40;

/** A bot that says its tone in one burst, which the platform plays in real time, and keeps what it hears. */
class Bot {
  readonly frames: Int16Array[] = [];
  readonly texts: Record<string, unknown>[] = [];
  #waiting: { ready: () => boolean; resolve: () => void }[] = [];
  readonly server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) =>
      server.upgrade(request, { data: undefined, headers: { 'sec-websocket-protocol': 'sidetone.v1' } })
        ? undefined
        : new Response(null, { status: 400 }),
    websocket: {
      open: (socket) => {
        const samples = Int16Array.from(
          { length: BOT_SECONDS * BOT_RATE },
          (_, at) => 8_000 * Math.sin((2 * Math.PI * BOT_HZ * at) / BOT_RATE),
        );
        socket.send(new Uint8Array(samples.buffer));
      },
      message: (_, message) => {
        if (typeof message === 'string') this.texts.push(JSON.parse(message));
        else this.frames.push(new Int16Array(new Uint8Array(message).buffer));
        this.#waiting = this.#waiting.filter(({ ready, resolve }) => {
          if (!ready()) return true;
          resolve();
          return false;
        });
      },
    },
  });

  /** The last half second that it heard. */
  heard(): Float32Array {
    return Float32Array.from(
      this.frames.slice(-25).flatMap((frame) => [...frame]),
      (sample) => sample / 32_768,
    );
  }

  async until(ready: () => boolean, what: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`the bot waited for ${what}: ${JSON.stringify(this.texts)}`)), 15_000);
    this.#waiting.push({ ready, resolve });
    await promise.finally(() => clearTimeout(timer));
  }
}

/** Whether just these tones are heard, of those that are said in the Room. */
const hearsJust = (samples: Float32Array, tones: readonly number[], rate = 8_000): boolean =>
  [BROWSER_HZ, PHONE_HZ, BOT_HZ].every((hz) =>
    tones.includes(hz) ? level(samples, hz, rate) > -25 : level(samples, hz, rate) < -45,
  );

describe.skipIf(!sippInstalled)('a browser, a phone and a bot in a Room', () => {
  let platform: Platform;
  let app: Credentials;
  let peer: WebrtcPeer;
  let phone: Caller;
  let botSession: string;
  const bot = new Bot();
  const receiver = new Receiver();
  const stage = () => ({ platform, receiver, app });
  const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);

  beforeAll(async () => {
    platform = await Platform.start({ MEDIA_WORKERS: '2' });
    app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
    const roomId = await createRoom(stage());
    ({ peer } = await WebrtcPeer.call(tokenOf(await api('POST', '/v1/webrtc-tokens', {}))));
    await receiver.event('session.created', peer.sessionUuid);
    await api('POST', `/v1/sessions/${peer.sessionUuid}/answer`, {});
    await receiver.event('session.answered', peer.sessionUuid);
    peer.say(mulawTone(BROWSER_HZ));
    phone = await call(stage(), PHONE_HZ);
    const format = { encoding: 'pcm_s16le', sample_rate: BOT_RATE };
    const connected = await api('POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: `ws://127.0.0.1:${bot.server.port}/`, subprotocol: 'sidetone.v1' },
      media_format: { from_session: format, to_session: format },
      room_id: roomId,
    });
    botSession = String(connected.body.session_uuid);
    await receiver.event('room.member.joined', botSession);
    for (const { sessionUuid } of [peer, phone]) await join(stage(), roomId, sessionUuid);
  }, 60_000);

  afterAll(async () => {
    peer?.close();
    await platform?.stop();
    await receiver.stop();
    await bot.server.stop(true);
  }, 20_000);

  test('each hears the other two and not itself, and the bot is told of the browser’s keys', async () => {
    await peer.until(() => hearsJust(peer.heard(-25), [PHONE_HZ, BOT_HZ]), 'the phone and the bot');
    await phone.ear.until(() => hearsJust(decodeMulaw(phone.ear.packets.slice(-25)), [BROWSER_HZ, BOT_HZ]), 'browser and bot');
    await bot.until(() => hearsJust(bot.heard(), [BROWSER_HZ, PHONE_HZ], BOT_RATE), 'the browser and the phone');
    peer.press(5);
    await bot.until(() => bot.texts.some(({ type }) => type === 'dtmf'), 'the key');
    expect(bot.texts.find(({ type }) => type === 'dtmf')).toMatchObject({ session_uuid: peer.sessionUuid, digit: '5' });
  }, 30_000);

  test('the browser hangs up: the bot is told, and phone and bot go on', async () => {
    await peer.hangUp();
    const ended = await receiver.event('session.ended', peer.sessionUuid);
    expect(ended.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'caller' });
    expect((await receiver.event('room.member.left', peer.sessionUuid)).body).toMatchObject({ reason: 'hangup' });
    await bot.until(() => hearsJust(bot.heard(), [PHONE_HZ], BOT_RATE), 'the phone alone');
    expect(bot.texts).toContainEqual(expect.objectContaining({ type: 'member_left', session_uuid: peer.sessionUuid }));
    await phone.ear.until(() => hearsJust(decodeMulaw(phone.ear.packets.slice(-25)), [BOT_HZ]), 'the bot alone');
    await hangUp(stage(), phone);
    await api('DELETE', `/v1/sessions/${botSession}`);
    await receiver.event('session.ended', botSession);
  }, 30_000);
});
