/**
 * Sides of a comparison of legs: the whole product with real calls, and the bare reflector; and the load that all get.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Platform } from '../../test/support/platform.ts';
import { Receiver } from '../../test/support/receiver.ts';
import type { Stage } from '../../test/support/room-call.ts';
import { answeredCalls, pastRateLimit } from './calls.ts';
import { cpuNs, median, REST_MS } from './usage.ts';

const ROOM = 10;
const root = join(import.meta.dir, '../..');
const reflector = join(root, 'build/reflector');

/** One side: a process whose legs are reached at `ports`, and send to `peerPort`. */
export interface Side {
  readonly name: string;
  readonly pid: number;
  readonly ports: readonly number[];
  readonly peerPort: number;
  stop(): Promise<void>;
}

/** Builds the reflector, and ends the process where that fails. */
export function buildReflector(): void {
  const done = spawnSync('make', ['-s', '-C', 'native', '../build/reflector'], { cwd: root, stdio: 'inherit' });
  if (done.status !== 0) process.exit(1);
}

const PORTS_MS = 60_000;

/** The UDP ports of this machine that are bound, over IPv4 (proc(5), `/proc/net/udp`). */
function boundUdp(): ReadonlySet<number> {
  const rows = readFileSync('/proc/net/udp', 'utf8').split('\n').slice(1);
  return new Set(rows.map((row) => Number.parseInt(row.trim().split(/[\s:]+/)[2] ?? '', 16)));
}

/**
 * The ports of so many legs, once all of them are bound: the even ones from `firstPort` on, as the kernel lists them.
 */
export async function boundPorts(legs: number, firstPort: number): Promise<readonly number[]> {
  for (const end = performance.now() + PORTS_MS; ; await Bun.sleep(200)) {
    const ports = [...boundUdp()].filter((port) => port % 2 === 0 && port >= firstPort && port < firstPort + 4 * legs);
    if (ports.length >= legs) return ports.slice(0, legs);
    if (performance.now() > end) throw new Error(`${ports.length} of ${legs} legs have a port within ${PORTS_MS / 1000} s`);
  }
}

const evenPorts = (count: number, first: number): number[] => Array.from({ length: count }, (_, at) => first + 2 * at);

/** Puts Sessions into Rooms of ten. */
export async function meet({ platform, app }: Pick<Stage, 'platform' | 'app'>, sessions: readonly string[]): Promise<void> {
  const post = (path: string, body: object) => pastRateLimit(() => platform.api(app, 'POST', path, body));
  for (let at = 0; at < sessions.length; at += ROOM) {
    const { body: room } = await post('/api/v1/rooms', {});
    for (const session_uuid of sessions.slice(at, at + ROOM))
      await post(`/api/v1/rooms/${room.room_id}/members`, { session_uuid });
  }
}

/**
 * The platform with so many answered calls, in Rooms of ten, at rest after they were set up.
 */
export async function product(legs: number, firstPort: number, peerPort: number): Promise<Side> {
  const receiver = new Receiver();
  // There is a port for each call and none besides, so the load reaches all of them, whichever they draw.
  const platform = await Platform.start({
    RTP_PORTS: `${firstPort}-${firstPort + 2 * legs - 1}`,
    MEDIA_TIMEOUT_SEC: '3600',
    ORPHAN_TIMEOUT_SEC: '3600',
  });
  const app = await platform.application(receiver.url, '+15550002');
  await platform.trunk('127.0.0.1:9');
  const calls = { calls: legs, rate: 50, rtpPort: peerPort, timeoutSec: 900 };
  const { sessions, caller } = await answeredCalls({ platform, app, receiver }, calls);
  await meet({ platform, app }, sessions);
  await receiver.until(() => receiver.count('room.member.joined') === legs, 'all members', 60_000);
  await Bun.sleep(REST_MS);
  return {
    name: 'product',
    pid: platform.pid,
    ports: evenPorts(legs, firstPort),
    peerPort,
    async stop() {
      caller.stop();
      await platform.stop();
      await receiver.stop();
    },
  };
}

/** A bare reflector with so many sockets. */
export async function floor(legs: number, firstPort: number, peerPort: number): Promise<Side> {
  const bare = Bun.spawn([reflector, 'floor', `${legs}`, `${firstPort}`, `${peerPort}`], { stdout: 'pipe' });
  let ready = false;
  for await (const chunk of bare.stdout) {
    ready = new TextDecoder().decode(chunk).includes('ready');
    if (ready) break;
  }
  if (!ready) throw new Error(`the reflector did not start: a port from ${firstPort} on may be taken`);
  return {
    name: 'floor',
    pid: bare.pid,
    ports: evenPorts(legs, firstPort),
    peerPort,
    async stop() {
      bare.kill();
      await bare.exited;
    },
  };
}

/**
 * Loads each side in turn, `rounds` times, and returns the median of what a leg cost in each, in µs a second. A round
 * with under 99 % of its packets is thrown away.
 */
export async function interleaved(sides: readonly Side[], rounds: number, seconds: number): Promise<Map<string, number>> {
  const costs = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  const loads = sides.map((side) => ({ side, talker: talkerOf(side, seconds) }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { side, talker } of loads) {
      const { us, delivered } = await loaded(side, talker, seconds);
      const counts = delivered >= 0.99;
      if (counts) costs.get(side.name)?.push(us);
      console.log(
        `${side.name.padEnd(10)} ${us.toFixed(1)} us a leg and second, ${(delivered * 100).toFixed(1)} % delivered${counts ? '' : ' (thrown away)'}`,
      );
    }
  }
  for (const { talker } of loads) talker.kill();
  return new Map([...costs].map(([name, values]) => [name, median(values)]));
}

/** The far ends of a side, which talk for so many seconds each time that they are told to. */
const talkerOf = ({ ports, peerPort }: Side, seconds: number) =>
  Bun.spawn([reflector, 'talk', `${peerPort}`, `${seconds}`, ...ports.map(String)], { stdin: 'pipe', stdout: 'pipe' });

async function loaded(
  { pid, ports }: Side,
  talker: ReturnType<typeof talkerOf>,
  seconds: number,
): Promise<{ us: number; delivered: number }> {
  talker.stdin.write('.');
  talker.stdin.flush();
  await Bun.sleep(500);
  const before = cpuNs(pid);
  const from = performance.now();
  await Bun.sleep((seconds - 1) * 1_000);
  const us = (cpuNs(pid) - before) / ports.length / (performance.now() - from);
  const reader = talker.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  const [sent = 0, received = 0] = new TextDecoder().decode(value).trim().split(' ').map(Number);
  return { us, delivered: Math.min(sent, received) / (ports.length * 50 * seconds) };
}
