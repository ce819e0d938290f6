/**
 * How late media ticks begin while the API is under full load: the whole product on its embedded database, 200 SIPp
 * calls in Rooms of ten, and 64 requests at a time beside. From `/metrics`; beside it timers that do nothing else
 * (native/bench/control.cc).
 *
 *   npm run bench -- tick-lateness [SECONDS] [CALLS]     40 s without load and 40 with it
 */
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { join } from 'node:path';
import { type Credentials, Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { encodeMulaw } from '../test/support/speaker.ts';
import { answeredCalls, pastRateLimit } from './support/calls.ts';

const SECONDS = Number(process.argv[2] ?? 40);
const CALLS = Number(process.argv[3] ?? 200);
const AT_A_TIME = 64;
/** The number of applications, so many that none meets its rate limit. */
const APPS = 400;
const root = join(import.meta.dir, '..');
if (spawnSync('make', ['-s', '-C', 'native', 'bench', 'addon'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);

const receiver = new Receiver();
const platform = await Platform.start({ RTP_PORTS: '24000-25999', MEDIA_WORKERS: '2', MEDIA_TIMEOUT_SEC: '3600' });
const app = await platform.application(receiver.url, '+15550002');
await platform.trunk('127.0.0.1:9');

// A tenth of the calls talks; who it is does not matter.
const socket = createSocket({ type: 'udp4', recvBufferSize: 8 << 20 });
await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
const ports = new Set<number>();
socket.on('message', (_, from) => ports.add(from.port));
const packet = Buffer.alloc(172);
for (let at = 0; at < 160; at++) packet[12 + at] = encodeMulaw(8000 * Math.sin((2 * Math.PI * 500 * at) / 8000));
packet.writeUInt8(0x80, 0);
packet.writeUInt32BE(4242, 8);
const started = performance.now();
let tick = 0;
const talking = setInterval(() => {
  for (; tick * 20 <= performance.now() - started; tick++) {
    packet.writeUInt16BE(tick & 0xffff, 2);
    packet.writeUInt32BE((tick * 160) >>> 0, 4);
    for (const port of [...ports].slice(0, CALLS / 10)) socket.send(packet, port, '127.0.0.1');
  }
}, 5);

const options = { calls: CALLS, rate: 40, rtpPort: socket.address().port, timeoutSec: 600 };
const { sessions, caller } = await answeredCalls({ platform, app, receiver }, options);
for (let at = 0; at < CALLS; at += 10) {
  const room = await platform.api(app, 'POST', '/api/v1/rooms', {});
  for (const session_uuid of sessions.slice(at, at + 10)) {
    await pastRateLimit(() => platform.api(app, 'POST', `/api/v1/rooms/${room.body.room_id}/members`, { session_uuid }));
  }
}
console.log(`${sessions.length} calls in Rooms of ten`);

interface Ticks {
  readonly all: number;
  readonly over2: number;
  readonly over5: number;
}

async function ticks(): Promise<Ticks> {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^sidetone_${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    all: read('media_ticks_total'),
    over2: read('media_ticks_late_2ms_total'),
    over5: read('media_ticks_late_total'),
  };
}

const apps: Credentials[] = [];
for (let n = 0; n < APPS; n++) {
  const { body } = await platform.operator('POST', '/apps', { name: `bench ${n}` });
  await platform.operator('PUT', `/apps/${body.app_uuid}/caller-ids/${encodeURIComponent(`+1555${1_000_000 + n}`)}`);
  apps.push({ appUuid: String(body.app_uuid), apiKey: String(body.api_key), webhookSecret: '' });
}

/**
 * Requests, 64 at a time, one in four a call to a carrier that is not there, until `until`; how many of each answer.
 */
async function load(until: number): Promise<Map<number, number>> {
  const answers = new Map<number, number>();
  let next = 0;
  const client = async () => {
    while (performance.now() < until) {
      const n = next++;
      const one = apps[n % APPS];
      if (one === undefined) return;
      const { status } =
        n % 4 === 0
          ? await platform.api(one, 'POST', '/v1/sessions:dial', {
              from: `+1555${1_000_000 + (n % APPS)}`,
              to: '+15550199',
              ring_timeout_sec: 30,
            })
          : await platform.api(one, 'GET', '/v1/sessions');
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, client));
  return answers;
}

for (const loaded of [false, true]) {
  await Bun.sleep(2_000);
  const control = Bun.spawn([join(root, 'build/control'), `${SECONDS}`], { stdout: 'pipe' });
  const before = await ticks();
  const until = performance.now() + SECONDS * 1000;
  const answers = loaded ? await load(until) : new Map<number, number>();
  if (!loaded) await Bun.sleep(SECONDS * 1000);
  const after = await ticks();
  const [all, over2, over5] = [after.all - before.all, after.over2 - before.over2, after.over5 - before.over5];
  const share = (count: number) => `${count} (${((count / all) * 100).toFixed(3)} %)`;
  const told = [...answers].map(([status, count]) => `${(count / SECONDS).toFixed(0)} a second of ${status}`).join(', ');
  console.log(
    `${loaded ? `API: ${told}` : 'no requests'}\n  of ${all} ticks of two workers began over 2 ms late ${share(over2)}, over 5 ms ${share(over5)}`,
  );
  console.log((await new Response(control.stdout).text()).trim().replace(/^/gm, '  '));
}

clearInterval(talking);
caller.stop();
await platform.stop();
await receiver.stop();
socket.close();
