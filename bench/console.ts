/**
 * The console over a full history: what each of its pages asks of the server, and how soon a new call is on the page.
 * `bun bench/console.ts [CALLS]` puts that many ended calls with events and timelines into the database (10,000) and
 * 200 live ones beside them, all of them real, over a loopback trunk.
 *
 * Goals: 300 ms a request, 1 s until a call is on the page.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { chromiumInstalled, launchChromium } from '../test/browser/chromium.ts';
import { type Credentials, Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';

const CALLS = Number(process.argv[2] ?? 10_000);
const DIALS = 100;
const ROUNDS = 30;
const NEW_CALLS = 10;
const NUMBER = '+15550001';

const receiver = new Receiver();
const platform = await Platform.start({ RTP_PORTS: '30000-32999' });
const app = await platform.application(receiver.url, NUMBER);
await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
receiver.misbehave = ({ event, type, session_uuid: uuid }) => {
  if (event === 'session.created' && type === 'phone_in') void platform.api(app, 'POST', `/v1/sessions/${uuid}/answer`);
  return undefined;
};
try {
  await fill(platform, app, CALLS);
  for (let n = 0; n < DIALS; n += 1) await dial();
  await receiver.until(
    () => receiver.events.filter(({ event }) => event === 'session.answered').length >= 2 * DIALS,
    'answers',
    60_000,
  );
  await requests();
  if (chromiumInstalled) await newCalls();
} finally {
  await platform.stop();
  await receiver.stop();
}

/** Dials through the application's API, within its rate limit. */
async function dial(): Promise<void> {
  for (;;) {
    const body = { from: NUMBER, to: NUMBER, trunk: 'loop' };
    const { status, headers } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, body);
    if (status === 202) return;
    if (status !== 529 && status !== 429) throw new Error(`dial: ${status}`);
    await Bun.sleep(1000 * Number(headers.get('retry-after') ?? 1));
  }
}

/** Writes ended calls of the last days: eight events with an attempt each, and a timeline of forty entries. */
async function fill({ dataDir }: Platform, { appUuid }: Credentials, calls: number): Promise<void> {
  const sql = postgres({ host: join(dataDir, 'postgres-socket'), username: 'sidetone', database: 'postgres' });
  const entries = JSON.stringify(
    Array.from({ length: 40 }, (_, n) => ({
      kind: 'sip',
      direction: n % 2 === 0 ? 'in' : 'out',
      transport: 'udp',
      peer: '192.0.2.1:5060',
      first_line: 'SIP/2.0 180 Ringing',
      call_id: 'call',
      cseq: `${n} INVITE`,
      text: 'Via: SIP/2.0/UDP 192.0.2.1\r\n'.repeat(20),
      at: Date.now(),
    })),
  );
  const summary = JSON.stringify({ answered: true, duration_seconds: 60, hangup_cause: 'completed', hangup_by: 'caller' });
  const body = JSON.stringify({ aud: appUuid, event: 'playback.ended', timestamp: '2026-01-01T00:00:00.000Z' });
  await sql`INSERT INTO sessions (session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, trunk,
      created_at, answered_at, ended_at, summary)
    SELECT gen_random_uuid(), ${appUuid}, 'bench', 'phone_in', 'ended', '+1555' || lpad((n % 1000)::text, 7, '0'), '+15550001', true, '',
      'carrier', at, at + 2000, at + 62000, ${summary}
    FROM (SELECT n, ${Date.now() - 70_000}::bigint - n * 20000::bigint AS at FROM generate_series(1, ${calls}::int) AS n) AS t`;
  await sql`INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at, status, attempts)
    SELECT 'evt_' || gen_random_uuid(), app_uuid, 'playback.ended', session_uuid::text, ARRAY['s:' || session_uuid], ${body}, '',
      created_at + k * 1000, 'delivered',
      jsonb_build_array(jsonb_build_object('at', created_at, 'status', 204, 'error', '', 'duration_ms', 3, 'retry_at', null))
    FROM sessions, generate_series(1, 8) AS k WHERE node_id = 'bench' ORDER BY created_at`;
  await sql`INSERT INTO timelines (session_uuid, since, entries)
    SELECT session_uuid, created_at, ${entries} FROM sessions WHERE node_id = 'bench'`;
  await sql`ANALYZE`;
  await sql.end();
}

/** Asks everything that a page asks for, one request at a time, and tells how long the server took. */
async function requests(): Promise<void> {
  const { sessions, after } = (await platform.operator('GET', '/sessions?limit=100')).body;
  const { sessions: ended } = (await platform.operator('GET', '/sessions?state=ended&limit=1')).body;
  const live = uuidOf(sessions);
  const past = uuidOf(ended);
  const number = encodeURIComponent('+15550000777');
  const latest = 'before=999999999999999&limit=100';
  const asked: readonly (readonly [page: string, path: string])[] = [
    ['calls', '/sessions?limit=100'],
    ['calls, next page', `/sessions?limit=100&after=${after}`],
    ['calls, live', '/sessions?limit=100&state=live'],
    ['calls, of a number', `/sessions?limit=100&number=${number}`],
    ['calls, of no number', '/sessions?limit=100&number=none'],
    ['one call, live', `/sessions/${live}/timeline`],
    ['one call, ended', `/sessions/${past}/timeline`],
    ['its SIP', `/sessions/${past}/sip.txt`],
    ['Rooms', '/rooms'],
    ['messages', '/messages?limit=200'],
    ['applications', '/apps'],
    ['one application', `/apps/${app.appUuid}`],
    ['trunks', '/trunks'],
    ['refusals', '/refusals'],
    ['events', `/events?${latest}`],
    ['events, of one kind', `/events?${latest}&event=session.ended`],
    ['events, that failed', `/events?${latest}&status=dead`],
    ['events, of one call', `/events?${latest}&session_uuid=${past}`],
  ];
  console.log(`${CALLS} ended calls, ${2 * DIALS} live; ${ROUNDS} requests each, ms`);
  const token = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
  for (const [page, path] of asked) {
    const took: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const began = performance.now();
      const response = await fetch(`${platform.url}/operator/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
      took.push(performance.now() - began);
    }
    print(page, took);
  }
}

/** Dials, and waits until the call is on the page that shows the list. */
async function newCalls(): Promise<void> {
  const browser = await launchChromium();
  const page = await browser.newPage();
  const { body } = await platform.operator('POST', '/console-logins', {});
  await page.goto(String(body.url));
  await page.getByText('and more shown').waitFor();
  await page
    .getByRole('status')
    .filter({ hasText: /^live$/ })
    .waitFor();
  const took: number[] = [];
  for (let n = 0; n < NEW_CALLS; n += 1) {
    const began = performance.now();
    const placed = { from: NUMBER, to: NUMBER, trunk: 'loop' };
    const { body: dialled } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, placed);
    await page.locator(`a[href="/console/calls/${dialled.session_uuid}"]`).waitFor({ state: 'attached' });
    took.push(performance.now() - began);
  }
  print('a new call on the page', took);
  await browser.close();
}

function uuidOf(sessions: unknown): string {
  return Array.isArray(sessions) && sessions.length > 0 ? String(Object(sessions[0]).session_uuid) : '';
}

function print(what: string, took: number[]): void {
  took.sort((a, b) => a - b);
  const at = (share: number) => (took[Math.min(took.length - 1, Math.floor(share * took.length))] ?? 0).toFixed(1);
  console.log(`${what.padEnd(24)} median ${at(0.5).padStart(7)}   most ${at(1).padStart(7)}`);
}
