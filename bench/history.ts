/**
 * What the timeline of a call costs: CPU of the platform and of its database for a call that is dialled, answered,
 * given digits and hung up, with `CALL_HISTORY_DAYS=30` beside 0. Two platforms, rounds of calls in turn, the median of
 * each. `bun bench/history.ts [ROUNDS] [CALLS]`
 *
 * Goal: under 10 % more.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Credentials, Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';

const ROUNDS = Number(process.argv[2] ?? 7);
const CALLS = Number(process.argv[3] ?? 60);
const NUMBER = '+15550001';
const TICKS_A_SECOND = 100;

interface Side {
  readonly platform: Platform;
  readonly receiver: Receiver;
  readonly app: Credentials;
  /** Milliseconds of CPU a call, of the platform and of its database. */
  readonly platformMs: number[];
  readonly databaseMs: number[];
}

async function side(days: string, ports: string): Promise<Side> {
  const receiver = new Receiver();
  const platform = await Platform.start({ CALL_HISTORY_DAYS: days, RTP_PORTS: ports });
  const app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  receiver.misbehave = ({ event, type, session_uuid: uuid }) => {
    const path = `/v1/sessions/${uuid}`;
    if (event === 'session.created' && type === 'phone_in') void platform.api(app, 'POST', `${path}/answer`);
    if (event === 'session.answered') void platform.api(app, 'POST', `${path}/dtmf/send`, { digits: '12' });
    if (event === 'dtmf.sent') void platform.api(app, 'DELETE', path);
    return undefined;
  };
  return { platform, receiver, app, platformMs: [], databaseMs: [] };
}

const sides = [await side('30', '30000-31999'), await side('0', '32000-33999')] as const;
try {
  // The first round warms both up.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const each of round % 2 === 0 ? sides : [...sides].reverse()) {
      const before = cpu(each.platform);
      await calls(each);
      const after = cpu(each.platform);
      if (round === 0) continue;
      each.platformMs.push((after.platform - before.platform) / CALLS);
      each.databaseMs.push((after.database - before.database) / CALLS);
    }
  }
  const [kept, none] = sides;
  for (const what of ['platformMs', 'databaseMs'] as const) {
    const [more, less] = [median(kept[what]), median(none[what])];
    const share = (100 * (more / less - 1)).toFixed(1);
    console.log(
      `${what.slice(0, -2).padEnd(9)} ${more.toFixed(2)} ms a call with timelines, ${less.toFixed(2)} without: ${share} % more`,
    );
  }
  const [whole, bare] = [kept, none].map((each) => median(each.platformMs) + median(each.databaseMs));
  console.log(`together  ${(100 * ((whole ?? 0) / (bare ?? 1) - 1)).toFixed(1)} % more`);
} finally {
  for (const { platform, receiver } of sides) {
    await platform.stop();
    await receiver.stop();
  }
}

/** A round of calls, ten at a time, until both ends of each are told to be over and their timelines are written. */
async function calls({ platform, receiver, app }: Side): Promise<void> {
  const before = receiver.count('session.ended');
  for (let n = 0; n < CALLS; n += 1) {
    await receiver.until(() => 2 * n - (receiver.count('session.ended') - before) < 20, 'earlier calls', 60_000);
    const { status } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: NUMBER, trunk: 'loop' });
    if (status !== 202) throw new Error(`dial: ${status}`);
  }
  await receiver.until(() => receiver.count('session.ended') - before === 2 * CALLS, 'the end of all calls', 60_000);
  // A timeline is written within ten seconds of its call's end.
  await Bun.sleep(3_000);
}

/** CPU so far, in milliseconds, of the platform's process, and of its database's with all that are gone. */
function cpu({ pid, dataDir }: Platform): { readonly platform: number; readonly database: number } {
  const postmaster = Number(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
  let database = 0;
  for (const name of readdirSync('/proc')) {
    const fields = /^[0-9]+$/.test(name) ? statOf(name) : undefined;
    if (fields === undefined) continue;
    const isOwn = Number(name) === postmaster || Number(fields[1]) === postmaster;
    if (isOwn) database += ticks(fields, Number(name) === postmaster ? [11, 12, 13, 14] : [11, 12]);
  }
  return { platform: ticks(statOf(String(pid)) ?? [], [11, 12]), database };
}

/** The fields of `/proc/PID/stat` after the command's name; undefined when the process is gone. */
function statOf(pid: string): readonly string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
  } catch {
    return undefined;
  }
}

function ticks(fields: readonly string[], of: readonly number[]): number {
  return of.reduce((sum, field) => sum + (Number(fields[field] ?? 0) * 1000) / TICKS_A_SECOND, 0);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
