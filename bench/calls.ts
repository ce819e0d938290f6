/**
 * Many calls through SIPp: `npm run bench -- calls [calls] [rate] [rounds]` (2000 at 50 a second). Inbound and
 * outbound, over UDP with 5 % of the packets lost and over TCP; each call is answered by an API command and told of in
 * signed webhooks. Says what failed, what was doubled, what is missing, and what is left behind of memory, file
 * descriptors and ports. Below each result stands what the embedded PostgreSQL used.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { freePort, sipp } from '../test/support/sipp.ts';
import { cpuNs, databaseCpuNs } from './support/usage.ts';

const calls = Number(process.argv[2] ?? 2000);
const rate = Number(process.argv[3] ?? 50);
const NUMBER = '+15550002';

const receiver = new Receiver();
const platform = await Platform.start({
  ...(process.env.CALL_HISTORY_DAYS === undefined ? {} : { CALL_HISTORY_DAYS: process.env.CALL_HISTORY_DAYS }),
  RTP_PORTS: '20000-39999',
  MEDIA_WORKERS: '1',
});
// An application may dial ten times a second: enough of them for the rate.
const apps = await Promise.all(
  Array.from({ length: Math.ceil(rate / 10) }, (_, at) => platform.application(receiver.url, `${NUMBER}${at === 0 ? '' : at}`)),
);
for (const each of apps) receiver.secrets.set(each.appUuid, each.webhookSecret);
const port = await freePort();

const pages = () => Number(readFileSync(`/proc/${platform.pid}/statm`, 'utf8').split(' ')[1]) * 4;
const descriptors = () => readdirSync(`/proc/${platform.pid}/fd`).length;
const cpuMs = () => cpuNs(platform.pid) / 1e6;
const gauge = async (name: string) => {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  return Number(new RegExp(`^sidetone_${name} (\\S+)`, 'm').exec(text)?.[1]);
};

function none(): never {
  throw new Error('no application');
}

interface Round {
  readonly direction: 'inbound' | 'outbound';
  readonly transport: 'udp' | 'tcp';
  readonly lossPercent?: number;
}

/** What came of the calls of a round: whether SIPp saw none fail, and how many commands were not answered with 202. */
interface Outcome {
  readonly ok: boolean;
  refused(): number;
}

/** SIPp calls; each call is answered by an API command when its webhook comes. */
async function callIn({ transport, lossPercent }: Round): Promise<Outcome> {
  let refused = 0;
  receiver.misbehave = (event) => {
    if (event.event !== 'session.created') return undefined;
    platform.api(apps[0] ?? none(), 'POST', `/v1/sessions/${event.session_uuid}/answer`).then(({ status }) => {
      if (status !== 202) refused++;
    });
    return undefined;
  };
  const caller = await sipp({
    scenario: 'caller-hangs-up',
    to: transport === 'udp' ? platform.sipUdp : platform.sipTcp,
    transport,
    calls,
    rate,
    pauseMs: 1000,
    timeoutSec: 60 + calls / rate,
    ...(lossPercent === undefined ? {} : { lossPercent }),
  });
  const ok = await caller.done;
  if (!ok) console.log(caller.errors().slice(0, 3000));
  return { ok, refused: () => refused };
}

/** The applications dial SIPp in turn, so many a second from `started` (ms, as performance.now tells it). */
async function callOut({ transport, lossPercent }: Round, started: number): Promise<Outcome> {
  let refused = 0;
  receiver.misbehave = undefined;
  const callee = await sipp({
    scenario: 'callee-hangs-up',
    port,
    transport,
    calls,
    pauseMs: 1000,
    timeoutSec: 60 + calls / rate,
    ...(lossPercent === undefined ? {} : { lossPercent }),
  });
  await Bun.sleep(300);
  for (let placed = 0; placed < calls; placed++) {
    const due = started + (placed * 1000) / rate;
    if (due > performance.now()) await Bun.sleep(due - performance.now());
    const at = placed % apps.length;
    const from = `${NUMBER}${at === 0 ? '' : at}`;
    const dial = platform.api(apps[at] ?? none(), 'POST', '/v1/sessions:dial', { from, to: '+15550100', ring_timeout_sec: 60 });
    dial.then(({ status }) => {
      if (status !== 202) refused++;
    });
  }
  const ok = await callee.done;
  if (!ok) console.log(callee.errors().slice(0, 3000));
  return { ok, refused: () => refused };
}

async function round(each: Round): Promise<void> {
  const { direction, transport, lossPercent } = each;
  await platform.trunk(`127.0.0.1:${port}`, transport);
  const ended = receiver.count('session.ended');
  const created = receiver.count('session.created');
  const cpu = cpuMs();
  const databaseCpu = databaseCpuNs(platform.dataDir);
  const started = performance.now();
  const { ok, refused } = await (direction === 'inbound' ? callIn(each) : callOut(each, started));
  await receiver
    .until(() => receiver.count('session.ended') - ended >= calls, `${calls} ends`, 120_000)
    .catch((error) => console.log(String(error).slice(0, 300)));
  const seconds = (performance.now() - started) / 1000;
  const events = receiver.events.filter((event) => event.event === 'session.ended').slice(ended);
  const sessions = new Set(events.map((event) => event.body.session_uuid));
  const causes = Object.entries(
    Object.groupBy(events, (event) => `${event.body.answered ? 'answered' : 'unanswered'} ${event.body.hangup_cause}`),
  );
  console.log(
    `${direction} ${transport}${lossPercent ? ` ${lossPercent} % lost` : ''}: ${calls} calls in ${seconds.toFixed(1)} s, SIPp ${ok ? 'saw none fail' : 'SAW FAILURES'}, ` +
      `${sessions.size} Sessions ended (${events.length - sessions.size} doubled), ${direction === 'inbound' ? `${receiver.count('session.created') - created} created, ` : ''}` +
      `${refused()} commands refused; ${causes.map(([cause, of]) => `${cause}: ${of?.length}`).join(', ')}; ` +
      `CPU ${((cpuMs() - cpu) / calls).toFixed(2)} ms a call; RSS ${Math.round(pages() / 1024)} MB, ${descriptors()} fds, ` +
      `${await gauge('sessions')} sessions, ${await gauge('media_legs')} legs, ${await gauge('sip_dialogs')} dialogs, ${await gauge('sip_transactions')} transactions`,
  );
  console.log(`  PostgreSQL: ${((databaseCpuNs(platform.dataDir) - databaseCpu) / 1e6 / calls).toFixed(2)} ms of CPU a call`);
}

console.log(`before: RSS ${Math.round(pages() / 1024)} MB, ${descriptors()} fds`);
const rounds: readonly Round[] = [
  { direction: 'inbound', transport: 'udp', lossPercent: 5 },
  { direction: 'outbound', transport: 'udp', lossPercent: 5 },
  { direction: 'inbound', transport: 'tcp' },
  { direction: 'outbound', transport: 'tcp' },
];
const only = process.argv[4]?.split(',').map(Number);
for (const [at, each] of rounds.entries()) if (only === undefined || only.includes(at)) await round(each);
await Bun.sleep(35_000);
console.log(
  `35 s later: RSS ${Math.round(pages() / 1024)} MB, ${descriptors()} fds, ${await gauge('sip_dialogs')} dialogs, ` +
    `${await gauge('sip_transactions')} transactions, ${await gauge('media_legs')} legs; bad signatures ${receiver.badSignatures}`,
);
await platform.stop();
await receiver.stop();
