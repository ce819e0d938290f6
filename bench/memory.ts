/**
 * Memory of a call that is up: `npm run bench -- memory [calls] [more]`. The platform has 100 real calls in Rooms of
 * ten, then 900 more, and what it keeps resident more is theirs. All talk for three seconds and rest before a look.
 */
import { join } from 'node:path';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { answeredCalls } from './support/calls.ts';
import { buildReflector, meet } from './support/legs.ts';
import { REST_MS, rssKb } from './support/usage.ts';

const first = Number(process.argv[2] ?? 100);
const more = Number(process.argv[3] ?? 900);
const TALK_SEC = 3;
const FIRST_PORT = 26_000;
const PEER_PORT = 32_700;

buildReflector();
const receiver = new Receiver();
const platform = await Platform.start({
  RTP_PORTS: `${FIRST_PORT}-${FIRST_PORT + 4 * (first + more) - 1}`,
  MEDIA_TIMEOUT_SEC: '3600',
  ORPHAN_TIMEOUT_SEC: '3600',
});
const app = await platform.application(receiver.url, '+15550002');
await platform.trunk('127.0.0.1:9');
const callers: { stop(): void }[] = [];
const joined = new Set<string>();

/** So many calls more, in Rooms, that have talked and rested. Resolves with what is resident, in kB. */
async function up(calls: number): Promise<number> {
  const { sessions, caller } = await answeredCalls(
    { platform, app, receiver },
    { calls: joined.size + calls, new: calls, rate: 50, rtpPort: PEER_PORT, timeoutSec: 900 },
  );
  callers.push(caller);
  const fresh = sessions.filter((each) => !joined.has(each));
  await meet({ platform, app }, fresh);
  for (const each of fresh) joined.add(each);
  await receiver.until(() => receiver.count('room.member.joined') === joined.size, 'all members', 60_000);
  // A port that no call has answers with an ICMP error, which nobody minds.
  const ports = Array.from({ length: 2 * (first + more) }, (_, at) => `${FIRST_PORT + 2 * at}`);
  const talker = Bun.spawn([join(import.meta.dir, '../build/reflector'), 'talk', `${PEER_PORT}`, `${TALK_SEC}`, ...ports], {
    stdin: 'pipe',
    stdout: 'pipe',
  });
  talker.stdin.write('.');
  await talker.stdin.flush();
  await Bun.sleep((TALK_SEC + 1) * 1000);
  talker.kill();
  await Bun.sleep(REST_MS);
  return rssKb(platform.pid);
}

const few = await up(first);
console.log(`${first} calls: ${(few / 1024).toFixed(0)} MB resident`);
const many = await up(more);
console.log(`${first + more} calls: ${(many / 1024).toFixed(0)} MB resident: ${((many - few) / more).toFixed(1)} kB a call`);
for (const caller of callers) caller.stop();
await platform.stop();
await receiver.stop();
