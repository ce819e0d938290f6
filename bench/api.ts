/**
 * API read and durable write, requests a second, against Drizzle as usual in the same run (goals: 5 times both). Both
 * sides are Hono apps called in process, 64 requests at a time, on one PostgreSQL; interleaved rounds, the median of
 * each side. `bun bench/api.ts`
 *
 *   read   ours: authentication, rate limit, Session by uuid       theirs: one select by primary key, nothing else
 *   write  ours: all of admission, then Session + event in one commit   theirs: one transaction of the same three
 *   inserts, nothing else
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { Hono } from 'hono';
import postgres from 'postgres';
import { accepted, type Sessions } from '../src/call/ports/sessions.ts';
import { systemClock } from '../src/clock.ts';
import type { AppSecrets } from '../src/database/app/apps.ts';
import type { SessionRow } from '../src/database/journal/journal.ts';
import * as schema from '../src/database/schema.ts';
import { openStore } from '../src/database/store.ts';
import { createHttpApp } from '../src/http/app.ts';
import { newUuid, newWebhookId } from '../src/id.ts';
import { silentLog } from '../src/log.ts';
import { sessionRow } from '../test/database/rows.ts';
import { httpDeps, storedSessions } from '../test/support/http-deps.ts';

const APPS = 300;
const READS_PER_APP = 40;
const WRITES_PER_APP = 12;
const CONCURRENCY = 64;
const ROUNDS = 5;

// The rate limits stay on; the clock runs fast enough that every round starts with full buckets.
const wall = systemClock();
let ahead = 0;
const clock = { ...wall, now: () => wall.now() + ahead };
const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-bench-'));
const store = await openStore(
  { dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey: new Uint8Array(32) },
  silentLog,
  clock,
);
const apps: AppSecrets[] = [];
for (let n = 0; n < APPS; n += 1) apps.push(await store.apps.create({ name: `bench ${n}` }));

const row = (appUuid: string): SessionRow =>
  sessionRow({
    appUuid,
    nodeId: 'bench',
    type: 'phone_out',
    callerId: '+15550100',
    did: '+15550199',
    createdAt: Math.floor(clock.now()),
  });
const eventOf = (session: SessionRow) => ({
  webhookId: newWebhookId(),
  appUuid: session.appUuid,
  name: 'session.created',
  sessionUuid: session.sessionUuid,
  lanes: [`session:${session.sessionUuid}`],
  body: JSON.stringify({ aud: session.appUuid, event: 'session.created', session_uuid: session.sessionUuid }),
  traceparent: '',
  at: Math.floor(clock.now()),
});
const sessions: Sessions = {
  ...storedSessions(store),
  async dial(_request, context) {
    const session = row(context.appUuid);
    const answer = accepted(context.operationUuid, { session_uuid: session.sessionUuid });
    const key = context.idempotencyKey;
    await store.journal.commit({
      session,
      events: [eventOf(session)],
      ...(key === undefined ? {} : { answer: { appUuid: context.appUuid, key, status: answer.status, body: answer.body } }),
    });
    return answer;
  },
};
const ours = createHttpApp({ ...httpDeps(store, clock), sessions });

// Each side has its tables for itself, on one server: what one inserts is not in the other's indexes.
const server = `${dataDir}/postgres-socket`;
const connect = (database: string) => postgres({ path: `${server}/.s.PGSQL.5432`, user: 'sidetone', database, max: 10 });
const first = connect('postgres');
await first`CREATE DATABASE usual`;
await first.end();
const databaseUrl = `postgres://sidetone@localhost/usual?host=${server}`;
const masterKey = new Uint8Array(32);
await (await openStore({ dataDir, databaseUrl, databaseDriver: 'postgres', masterKey }, silentLog, clock)).close();
const db = drizzle(connect('usual'));
const usual = new Hono();
usual.get('/v1/sessions/:uuid', async (context) => {
  const [found] = await db
    .select()
    .from(schema.sessions)
    .where(eq(schema.sessions.sessionUuid, context.req.param('uuid')));
  return found === undefined ? context.json({ code: 'not_found' }, 404) : context.json(found);
});
usual.post('/v1/sessions:dial', async (context) => {
  await context.req.json();
  const session = { ...row(apps[0]?.appUuid ?? ''), sessionUuid: newUuid() };
  await db.transaction(async (tx) => {
    await tx.insert(schema.sessions).values({ ...session, endedAt: null });
    const { appUuid, name, sessionUuid, lanes, body, traceparent, at } = eventOf(session);
    const webhookId = `evt_${newUuid()}`;
    const [event] = await tx
      .insert(schema.events)
      .values({ webhookId, appUuid, name, sessionUuid, lanes, body, traceparent, at })
      .returning();
    await tx.insert(schema.outbox).values({ eventId: event?.eventId ?? 0, appUuid });
  });
  return context.json({ session_uuid: session.sessionUuid }, 202);
});

const targets: { app: AppSecrets; uuid: string }[] = [];
for (const app of apps) {
  const session = row(app.appUuid);
  await store.journal.commit({ session, events: [] });
  await db.insert(schema.sessions).values({ ...session, endedAt: null });
  targets.push({ app, uuid: session.sessionUuid });
}
const dial = JSON.stringify({ from: '+15550100', to: '+15550199', ring_timeout_sec: 30 });
const headers = (app: AppSecrets) => ({
  authorization: `Bearer ${app.appUuid}:${app.apiKey}`,
  'content-type': 'application/json',
});
const read = (n: number) => {
  const target = targets[n % APPS] ?? { app: { appUuid: '', apiKey: '', webhookSecret: '' }, uuid: '' };
  return new Request(`http://127.0.0.1/v1/sessions/${target.uuid}`, { headers: headers(target.app) });
};
const write = (keyed: boolean) => (n: number) => {
  const app = apps[n % APPS] ?? { appUuid: '', apiKey: '', webhookSecret: '' };
  // As every HTTP client sends it: without a length the body would be read as a stream.
  const length = { 'content-length': `${dial.length}` };
  const more: Record<string, string> = keyed ? { ...length, 'idempotency-key': newUuid() } : length;
  return new Request('http://127.0.0.1/v1/sessions:dial', { method: 'POST', headers: { ...headers(app), ...more }, body: dial });
};

async function rate(
  fetch: (request: Request) => Response | Promise<Response>,
  request: (n: number) => Request,
  count: number,
  status: number,
) {
  const started = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const response = await fetch(request(next++));
      if (response.status !== status) throw new Error(`${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  ahead += 60_000;
  return count / ((performance.now() - started) / 1000);
}

const READS = APPS * READS_PER_APP;
const WRITES = APPS * WRITES_PER_APP;
const figures: Record<string, number[]> = {
  'read, ours': [],
  'read, Drizzle as usual': [],
  'write, ours': [],
  'write with Idempotency-Key, ours': [],
  'write, Drizzle as usual': [],
};
for (let round = 0; round <= ROUNDS; round += 1) {
  const made = [
    await rate(ours.fetch, read, READS, 200),
    await rate((request) => usual.fetch(request), read, READS, 200),
    await rate(ours.fetch, write(false), WRITES, 202),
    await rate(ours.fetch, write(true), WRITES, 202),
    await rate((request) => usual.fetch(request), write(false), WRITES, 202),
  ];
  // The first round warms up both.
  if (round > 0) for (const [at, list] of Object.values(figures).entries()) list.push(made[at] ?? 0);
}
for (const [name, list] of Object.entries(figures)) {
  const sorted = [...list].sort((a, b) => a - b);
  console.log(
    `${name.padEnd(32)} ${sorted[sorted.length >> 1]?.toFixed(0)}/s  (${sorted.map((each) => each.toFixed(0)).join(' ')})`,
  );
}
await db.$client.end();
await store.close();
rmSync(dataDir, { recursive: true, force: true });
