/**
 * Rooms on real calls: `npm run bench -- rooms [calls]`. 300 SIPp calls whose audio is one socket of ours; a Room of
 * 250 (300 joins at the cap), 100 creates at a cap of 100, 25 Rooms of ten at once, and the time from a join's request
 * to the first mixed audio at the member.
 */
import { createSocket } from 'node:dgram';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { encodeMulaw } from '../test/support/speaker.ts';
import { answeredCalls, pastRateLimit } from './support/calls.ts';

const CALLS = Number(process.argv[2] ?? 300);
/** More calls than one Room takes: only Rooms of ten, in which a tenth of the calls talks. */
const crowd = CALLS > 300;
const receiver = new Receiver();
const platform = await Platform.start({ RTP_PORTS: '20000-29999', MEDIA_TIMEOUT_SEC: '600', ORPHAN_TIMEOUT_SEC: '600' });
const app = await platform.application(receiver.url, '+15550002');
await platform.trunk('127.0.0.1:9');
const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);

const patient = (method: string, path: string, body?: unknown) => pastRateLimit(() => api(method, path, body));

// One socket for every call's audio: who is who is told by the port a packet comes from.
const socket = createSocket({ type: 'udp4', recvBufferSize: 8 << 20 });
await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
const firstSound = new Map<number, number>();
const packets = new Map<number, number>();
socket.on('message', (data, from) => {
  packets.set(from.port, (packets.get(from.port) ?? 0) + 1);
  if (data.length === 172 && !firstSound.has(from.port) && data.subarray(12).some((byte) => (byte & 0x7f) < 0x70)) {
    firstSound.set(from.port, performance.now());
  }
});
const talkers = new Set<number>();
let tick = 0;
const started = performance.now();
const timer = setInterval(() => {
  for (; tick * 20 <= performance.now() - started; tick++) {
    const packet = Buffer.alloc(172);
    packet.writeUInt8(0x80, 0);
    packet.writeUInt16BE(tick & 0xffff, 2);
    packet.writeUInt32BE((tick * 160) >>> 0, 4);
    packet.writeUInt32BE(4242, 8);
    for (let at = 0; at < 160; at++)
      packet[12 + at] = encodeMulaw(8000 * Math.sin((2 * Math.PI * 500 * (tick * 160 + at)) / 8000));
    for (const port of talkers) socket.send(packet, port, '127.0.0.1');
  }
}, 5);

// Calls one after another, so that each Session's port is known: the new port that speaks after its answer.
const options = { calls: CALLS, rate: 60, rtpPort: socket.address().port, timeoutSec: 300 };
const { sessions, caller } = await answeredCalls({ platform, app, receiver }, options);
console.log(`${sessions.length} calls up, ${packets.size} ports speak`);

const percentile = (values: number[], share: number) =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
const joined = (roomId: string) =>
  receiver.events.filter((event) => event.event === 'room.member.joined' && event.body.room_id === roomId).length;
const create = async () => String((await patient('POST', '/api/v1/rooms', {})).body.room_id);

/**
 * 1. 300 joins at a cap of 250. Which port is whose does not matter: one member talks, the others' first sound is what
 * is timed.
 */
async function capOfARoom(): Promise<void> {
  const big = await create();
  const [talker = '', ...others] = sessions;
  await patient('POST', `/api/v1/rooms/${big}/members`, { session_uuid: talker });
  await receiver.until(() => joined(big) === 1, 'the talker');
  for (const port of packets.keys()) talkers.add(port);
  const outcomes = await Promise.all(
    others.map((session_uuid) => patient('POST', `/api/v1/rooms/${big}/members`, { session_uuid })),
  );
  await receiver
    .until(() => joined(big) >= 250, 'the members', 30_000)
    .catch((error) => console.log(String(error).slice(0, 200)));
  const full = outcomes.filter((answer) => answer.body.code === 'room_full').length;
  const { body: room } = await api('GET', `/api/v1/rooms/${big}`);
  console.log(
    `a Room of 250, all 300 calls talking: ${room.member_count} members, ${full} room_full, ${outcomes.filter(({ status }) => status >= 500).length} errors`,
  );
  const before = new Map(packets);
  const from = performance.now();
  await Bun.sleep(5000);
  const seconds = (performance.now() - from) / 1000;
  const rates = [...packets].map(([port, count]) => (count - (before.get(port) ?? 0)) / seconds);
  console.log(
    `packets a second to each of ${rates.length} legs over ${seconds.toFixed(1)} s: min ${Math.min(...rates).toFixed(2)}, median ${percentile(rates, 0.5).toFixed(2)}`,
  );
  const gone = api('DELETE', `/api/v1/rooms/${big}`);
  await gone;
  await receiver.event('room.deleted', undefined, 20_000);
  const last = receiver.events.filter((event) => event.body.room_id === big);
  console.log(
    `deleted: ${last.filter((event) => event.event === 'room.member.left').length} left before ${last.at(-1)?.event} (${last.at(-1)?.body.reason})`,
  );
}

/** 2. Rooms of ten, and join to first mixed audio: nobody talks but one member a Room. */
async function roomsOfTen(): Promise<void> {
  talkers.clear();
  await Bun.sleep(1000);
  firstSound.clear();
  const ports = [...packets.keys()];
  const times: number[] = [];
  const rooms: string[] = [];
  for (let at = 0; at < 25; at++) rooms.push(await create());
  // Every leg talks; a joiner hears its first sound when it is mixed.
  for (const port of ports) talkers.add(port);
  for (let member = 0; member < 10; member++) {
    for (const [at, roomId] of rooms.entries()) {
      const session_uuid = sessions[at * 10 + member] ?? '';
      const known = firstSound.size;
      const asked = performance.now();
      await patient('POST', `/api/v1/rooms/${roomId}/members`, { session_uuid });
      if (member === 0) continue;
      while (firstSound.size === known && performance.now() - asked < 500) await Bun.sleep(1);
      const heard = Math.max(...firstSound.values());
      if (firstSound.size > known) times.push(heard - asked);
    }
  }
  await receiver.until(() => rooms.every((roomId) => joined(roomId) === 10), 'the joins', 5_000).catch(() => {});
  const tens = rooms.map(joined);
  console.log(
    `25 Rooms of ten: ${tens.filter((count) => count === 10).length} full; join request to first mixed audio, ${times.length} joins: median ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`,
  );
}

/** 3. The cap of an application: 26 Rooms were made, one is gone. */
async function capOfAnApplication(): Promise<void> {
  const made = await Promise.all(Array.from({ length: 125 }, () => patient('POST', '/api/v1/rooms', {})));
  console.log(
    `125 more creates at a cap of 100: ${made.filter(({ status }) => status === 201).length} made, ${made.filter(({ status }) => status === 403).length} refused`,
  );
}

/** Rooms of ten with every call in one: whether each leg gets its packets. */
async function everyoneInRoomsOfTen(): Promise<void> {
  const rooms: string[] = [];
  for (let at = 0; at < CALLS / 10; at++) rooms.push(await create());
  const asked = rooms.flatMap((roomId, at) =>
    sessions
      .slice(at * 10, at * 10 + 10)
      .map((session_uuid) => patient('POST', `/api/v1/rooms/${roomId}/members`, { session_uuid })),
  );
  await Promise.all(asked);
  await receiver.until(() => rooms.every((roomId) => joined(roomId) === 10), 'the joins', 60_000);
  for (const port of [...packets.keys()].filter((_, at) => at % 10 === 0)) talkers.add(port);
  await Bun.sleep(2000);
  const before = new Map(packets);
  const from = performance.now();
  await Bun.sleep(20_000);
  const seconds = (performance.now() - from) / 1000;
  const rates = [...packets].map(([port, count]) => (count - (before.get(port) ?? 0)) / seconds);
  console.log(
    `${rooms.length} Rooms of ten, ${rates.length} legs over ${seconds.toFixed(1)} s: packets a second min ${Math.min(...rates).toFixed(2)}, median ${percentile(rates, 0.5).toFixed(2)}`,
  );
}

if (crowd) await everyoneInRoomsOfTen();
else {
  await capOfARoom();
  await roomsOfTen();
  await capOfAnApplication();
}

clearInterval(timer);
caller.stop();
await platform.stop();
await receiver.stop();
socket.close();
