/**
 * More calls than the platform carries: SIPp calls in at each rate for some seconds, over UDP or one TCP connection.
 * Each call is answered by an API command when its webhook comes. Says how many came about, how many were refused or
 * timed out, how long it took until all was over, and what a second look at the API took meanwhile.
 *
 *   npm run bench -- overload [udp|tcp] [SECONDS] [RATE,RATE…]     tcp, 8 seconds of 400, 800 and 1500 a second
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Credentials, Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { freePort } from '../test/support/sipp.ts';

const [transport = 'tcp', seconds = '8', rates = '400,800,1500'] = process.argv.slice(2);
const NUMBER = '+15550002';
/** A look at the API every so many milliseconds. */
const LOOK_EVERY_MS = 50;

const receiver = new Receiver();
const platform = await Platform.start({ RTP_PORTS: '10000-39999', MEDIA_WORKERS: '1' });
const app = await platform.application(receiver.url, NUMBER);
receiver.secrets.set(app.appUuid, app.webhookSecret);
await platform.trunk('127.0.0.1', transport === 'udp' ? 'udp' : 'tcp');
receiver.misbehave = (event) => {
  // A call that has ended meanwhile is no fault of this bench.
  if (event.event === 'session.created')
    platform.api(app, 'POST', `/v1/sessions/${event.session_uuid}/answer`).catch(() => undefined);
  return undefined;
};

/** Calls at that rate, and resolves with SIPp's own counts by their names. */
async function call(rate: number): Promise<ReadonlyMap<string, string>> {
  const directory = mkdtempSync(join(tmpdir(), 'overload-'));
  const scenario = join(import.meta.dir, '../test/whole/sipp/caller-hangs-up.xml');
  const to = transport === 'udp' ? platform.sipUdp : platform.sipTcp;
  const said = openSync(join(directory, 'said'), 'w');
  const caller = spawn(
    'sipp',
    [
      ...[to, '-sf', scenario, '-s', NUMBER, '-i', '127.0.0.1', '-p', String(await freePort())],
      ...['-t', transport === 'udp' ? 'u1' : 't1', '-r', String(rate), '-m', String(rate * Number(seconds)), '-l', '100000'],
      ...['-d', '1000', '-timeout', '120s', '-recv_timeout', '32000', '-nostdin', '-skip_rlimit', '-trace_stat', '-fd', '1'],
      ...['-key', 'rtp_port', '6000'],
    ],
    { cwd: directory, stdio: ['ignore', said, said] },
  );
  await new Promise((resolve) => caller.once('exit', resolve));
  closeSync(said);
  const counts = readdirSync(directory).find((name) => name.endsWith('.csv'));
  if (counts === undefined) throw new Error(`SIPp counted nothing: ${readFileSync(join(directory, 'said'), 'utf8').slice(-500)}`);
  const lines = readFileSync(join(directory, counts), 'utf8').trim().split('\n');
  rmSync(directory, { recursive: true });
  const last = lines.at(-1)?.split(';') ?? [];
  return new Map(lines[0]?.split(';').map((name, at) => [name, last[at] ?? '']));
}

/** Looks at the API until it is told to stop. Resolves with what each look took, in milliseconds, in order. */
async function look(as: Credentials, stopped: () => boolean): Promise<readonly number[]> {
  const took: number[] = [];
  while (!stopped()) {
    const began = performance.now();
    await platform.api(as, 'GET', '/v1/rooms');
    took.push(performance.now() - began);
    await Bun.sleep(LOOK_EVERY_MS);
  }
  return took.sort((a, b) => a - b);
}

const gauge = async (name: string): Promise<number> => {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  return Number(new RegExp(`^sidetone_${name} (\\S+)`, 'm').exec(text)?.[1]);
};

for (const rate of rates.split(',').map(Number)) {
  const began = performance.now();
  let isOver = false;
  const looks = look(app, () => isOver);
  const counts = await call(rate);
  isOver = true;
  const took = await looks;
  while ((await gauge('sessions')) > 0 && performance.now() - began < 300_000) await Bun.sleep(200);
  const at = (share: number) => took[Math.floor(took.length * share)]?.toFixed(0);
  console.log(
    `${transport}, ${rate} calls a second for ${seconds} s: ${counts.get('SuccessfulCall(C)')} came about, ` +
      `${counts.get('FailedUnexpectedMessage(C)')} refused, ${counts.get('FailedTimeoutOnRecv(C)')} timed out, ` +
      `${counts.get('Retransmissions(C)')} messages repeated; over after ${((performance.now() - began) / 1000).toFixed(1)} s; ` +
      `the API ${at(0.5)} ms at the median and ${at(0.99)} at p99`,
  );
}
await platform.stop();
await receiver.stop();
