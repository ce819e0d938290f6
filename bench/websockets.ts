/**
 * WebSocket Sessions: `npm run bench -- websockets [pairs] [alone]`. Pairs (100) of a SIPp phone and a bot in a Room of
 * their own: the time from an RTP packet with a sound to the WebSocket frame that has it, and from a WebSocket message
 * to the RTP packet. Then Sessions without a phone (500) at 16 kHz both ways: CPU a Session and whether frames keep
 * their pace.
 */
import { createSocket } from 'node:dgram';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { sipp } from '../test/support/sipp.ts';
import { encodeMulaw } from '../test/support/speaker.ts';
import { pastRateLimit } from './support/calls.ts';
import { cpuNs } from './support/usage.ts';

const peers: Awaited<ReturnType<typeof sipp>>[] = [];
const pairs = Number(process.argv[2] ?? 100);
const alone = Number(process.argv[3] ?? 500);
const receiver = new Receiver();
const platform = await Platform.start({ RTP_PORTS: '20000-29999', MEDIA_TIMEOUT_SEC: '600', ORPHAN_TIMEOUT_SEC: '600' });
// An application may connect ten times a second.
const apps = await Promise.all(Array.from({ length: 10 }, (_, at) => platform.application(receiver.url, `+155500${20 + at}`)));
await platform.trunk('127.0.0.1:9');
function never(): never {
  throw new Error('missing');
}

const patient = (as: (typeof apps)[number], method: string, path: string, body?: unknown) =>
  pastRateLimit(() => platform.api(as, method, path, body));

const percentile = (values: number[], share: number) =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
const cpuMs = () => cpuNs(platform.pid) / 1e6;
const PCM16 = { encoding: 'pcm_s16le', sample_rate: 16_000 };
const loud16 = new Uint8Array(Int16Array.from({ length: 320 }, (_, at) => 9000 * Math.sin(at / 3)).buffer);
const isLoud16 = (bytes: Uint8Array) =>
  new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1).some((sample) => Math.abs(sample) > 1500);

interface Bot {
  readonly socket: Bun.ServerWebSocket<undefined>;
  frames: number;
  /** When a sound was last sent by the phone, and whether it has been heard. */
  asked: number;
  heard: boolean;
}
const bots = new Map<string, Bot>();
const toBot: number[] = [];
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request, own) => {
    waiting.push(request.headers.get('x-session-uuid') ?? '');
    return own.upgrade(request, { data: undefined }) ? undefined : new Response(null, { status: 400 });
  },
  websocket: {
    open(socket) {
      const sessionUuid = waiting.shift() ?? '';
      const bot: Bot = { socket, frames: 0, asked: 0, heard: true };
      bots.set(sessionUuid, bot);
      owners.set(socket, bot);
    },
    message(socket, message) {
      const bot = owners.get(socket);
      if (bot === undefined || typeof message === 'string') return;
      bot.frames++;
      if (!bot.heard && isLoud16(new Uint8Array(message))) {
        toBot.push(performance.now() - bot.asked);
        bot.heard = true;
      }
    },
  },
});
const waiting: string[] = [];
const owners = new Map<Bun.ServerWebSocket<undefined>, Bot>();
const connect = async (at: number) =>
  String(
    (
      await patient(apps[at % apps.length] ?? never(), 'POST', '/v1/sessions:connectWebsocket', {
        websocket: { url: `ws://127.0.0.1:${server.port}/` },
        media_format: { from_session: PCM16, to_session: PCM16 },
      })
    ).body.session_uuid,
  );

// The phones: one socket, a port of the platform each.
const socket = createSocket({ type: 'udp4', recvBufferSize: 8 << 20 });
await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
interface Phone {
  sequence: number;
  loud: boolean;
  asked: number;
  heard: boolean;
}
const phones = new Map<number, Phone>();
const toPhone: number[] = [];
socket.on('message', (data, from) => {
  const phone = phones.get(from.port);
  if (phone === undefined) phones.set(from.port, { sequence: 0, loud: false, asked: 0, heard: true });
  else if (!phone.heard && data.length === 172 && data.subarray(12).some((byte) => (byte & 0x7f) < 0x40)) {
    toPhone.push(performance.now() - phone.asked);
    phone.heard = true;
  }
});
const tone = Uint8Array.from({ length: 160 }, (_, at) => encodeMulaw(9000 * Math.sin(at / 2)));
let tick = 0;
const began = performance.now();
const timer = setInterval(() => {
  for (; tick * 20 <= performance.now() - began; tick++) {
    for (const [port, phone] of phones) {
      const packet = Buffer.alloc(172, 0xff);
      packet[0] = 0x80;
      packet[1] = 0;
      packet.writeUInt16BE(phone.sequence & 0xffff, 2);
      packet.writeUInt32BE((phone.sequence * 160) >>> 0, 4);
      packet.writeUInt32BE(port, 8);
      if (phone.loud) packet.set(tone, 12);
      if (phone.loud) onLoud(port);
      phone.loud = false;
      phone.sequence++;
      socket.send(packet, port, '127.0.0.1');
    }
  }
}, 2);
const roomOf = new Map<number, Bot>();
const onLoud = (port: number) => {
  const bot = roomOf.get(port);
  if (bot !== undefined) {
    bot.asked = performance.now();
    bot.heard = false;
  }
};

if (pairs > 0) {
  receiver.misbehave = (event) => {
    const as = apps.find(({ appUuid }) => appUuid === event.aud);
    if (event.event === 'session.created' && as !== undefined)
      void platform.api(as, 'POST', `/v1/sessions/${event.session_uuid}/answer`);
    return undefined;
  };
  let known = new Set<number>();
  for (const [group, as] of apps.entries()) {
    const calls = Math.ceil(pairs / apps.length);
    const before = receiver.count('session.answered');
    // One a second, so that the new port that speaks is the new call's.
    peers.push(
      await sipp({
        scenario: 'caller-waits',
        to: platform.sipUdp,
        timeoutSec: 600,
        calls,
        number: `+155500${20 + group}`,
        keys: { rtp_port: String(socket.address().port) },
      }),
    );
    for (let at = 0; at < calls; at++) {
      await receiver.until(() => receiver.count('session.answered') > before + at, 'a call');
      const phoneUuid = String(
        receiver.events.filter((event) => event.event === 'session.answered')[before + at]?.body.session_uuid,
      );
      while ([...phones.keys()].every((port) => known.has(port))) await Bun.sleep(2);
      const port = [...phones.keys()].find((each) => !known.has(each)) ?? never();
      known = new Set(phones.keys());
      const botUuid = await connect(group);
      await receiver.event('websocket.connected', botUuid);
      const roomId = String((await patient(as, 'POST', '/api/v1/rooms', {})).body.room_id);
      for (const session_uuid of [phoneUuid, botUuid])
        await patient(as, 'POST', `/api/v1/rooms/${roomId}/members`, { session_uuid });
      roomOf.set(port, bots.get(botUuid) ?? never());
    }
  }
  await Bun.sleep(1000);
  for (let round = 0; round < 10; round++) {
    for (const [port, bot] of roomOf) {
      const phone = phones.get(port);
      if (phone === undefined) continue;
      phone.loud = true;
      await Bun.sleep(Math.random() * 4);
      // The other way, a little later, so that neither hears the other's.
      setTimeout(
        () => {
          phone.asked = performance.now();
          phone.heard = false;
          bot.socket.sendBinary(loud16);
        },
        150 + Math.random() * 100,
      );
    }
    await Bun.sleep(500);
  }
  const line = (name: string, values: number[]) =>
    `${name}: ${values.length} sounds, median ${percentile(values, 0.5).toFixed(1)} ms, p99 ${percentile(values, 0.99).toFixed(1)} ms`;
  console.log(`${roomOf.size} pairs; ${line('RTP in to WebSocket out', toBot)}; ${line('WebSocket in to RTP out', toPhone)}`);
}
clearInterval(timer);
for (const peer of peers) peer.stop();

if (alone > 0) {
  const before = bots.size;
  for (let at = 0; at < alone; at += 50) {
    await Promise.all(Array.from({ length: Math.min(50, alone - at) }, (_, one) => connect(at + one)));
  }
  while (bots.size < before + alone) await Bun.sleep(20);
  const mine = [...bots.values()].slice(before);
  const sender = setInterval(() => {
    for (const bot of mine) bot.socket.sendBinary(loud16);
  }, 20);
  await Bun.sleep(2000);
  const counts = mine.map((bot) => bot.frames);
  const cpu = cpuMs();
  const from = performance.now();
  await Bun.sleep(10_000);
  const seconds = (performance.now() - from) / 1000;
  const rates = mine.map((bot, at) => (bot.frames - (counts[at] ?? 0)) / seconds);
  clearInterval(sender);
  console.log(
    `${alone} Sessions at 16 kHz both ways: ${((cpuMs() - cpu) / seconds / alone).toFixed(2)} ms of CPU a Session and second; frames a second: ` +
      `min ${Math.min(...rates).toFixed(2)}, median ${percentile(rates, 0.5).toFixed(2)}`,
  );
}
await platform.kill();
await platform.stop();
await receiver.stop();
await server.stop(true);
socket.close();
