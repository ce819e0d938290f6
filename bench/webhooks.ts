/**
 * Ordered signed webhooks a second, commit to delivered (goals: 20,000; p50 1 ms), and the floor beside it in the same
 * run: the same bodies posted by the same outbound without database, lanes or signatures. `bun bench/webhooks.ts
 * [events]`
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/clock.ts';
import { openStore } from '../src/database/store.ts';
import { newSessionUuid, newWebhookId } from '../src/id.ts';
import { silentLog } from '../src/log.ts';
import type { Outbound } from '../src/outbound/outbound.ts';
import { createRelay } from '../src/webhook/relay.ts';

const EVENTS = Number(process.argv[2] ?? 20_000);
const SESSIONS = 500;
const ROUNDS = 3;
const clock = systemClock();
const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-bench-'));
const child = Bun.spawn([process.execPath, join(import.meta.dir, 'webhook-receiver.ts')], { stdout: 'pipe' });
const { value } = await child.stdout.getReader().read();
const url = `http://127.0.0.1:${new TextDecoder().decode(value).trim()}/`;
const counts = async (): Promise<{ received: number; reordered: number; p50: number; p99: number }> =>
  await (await fetch(url)).json();

/** Posts by fetch: the floor is what this machine's HTTP client can do, whatever screens the address. */
const outbound: Outbound = {
  async fetch({ url: target, headers, body, signal }) {
    const response = await fetch(target, {
      method: 'POST',
      headers: { ...headers },
      body: body ?? null,
      redirect: 'manual',
      signal,
    });
    return { status: response.status, headers: response.headers, body: response.body ?? undefined };
  },
};

const store = await openStore(
  { dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey: new Uint8Array(32) },
  silentLog,
  clock,
);
const { appUuid } = await store.apps.create({ name: 'bench', webhookUrl: url });
const { outbox, apps, credentials } = store;
const relay = createRelay({ outbox, apps, credentials, outbound, clock, log: silentLog, timeoutSec: 10, retryScale: 1 });

const bodyOf = (session: string, step: number) =>
  JSON.stringify({
    aud: appUuid,
    event: 'session.held',
    timestamp: new Date().toISOString(),
    session_uuid: session,
    step,
    sent: clock.now(),
  });
const until = async (target: number) => {
  while ((await counts()).received < target) await new Promise((wake) => setTimeout(wake, 5));
};

async function floor(): Promise<number> {
  const before = (await counts()).received;
  const started = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < EVENTS) {
      next += 1;
      await outbound.fetch({
        url,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: bodyOf(`floor ${next}`, before),
        signal: new AbortController().signal,
      });
    }
  };
  await Promise.all(Array.from({ length: 64 }, worker));
  await until(before + EVENTS);
  return EVENTS / ((performance.now() - started) / 1000);
}

const commit = (session: string, step: number) =>
  store.journal.commit({
    events: [
      {
        webhookId: newWebhookId(),
        appUuid,
        name: 'session.held',
        sessionUuid: session,
        lanes: [`session:${session}`],
        body: bodyOf(session, step),
        traceparent: '',
        at: clock.now(),
      },
    ],
  });

async function whole(): Promise<number> {
  const before = (await counts()).received;
  const sessions = Array.from({ length: SESSIONS }, () => newSessionUuid());
  const started = performance.now();
  for (let step = 0; step * SESSIONS < EVENTS; step += 1) await Promise.all(sessions.map((session) => commit(session, step)));
  await until(before + Math.ceil(EVENTS / SESSIONS) * SESSIONS);
  return EVENTS / ((performance.now() - started) / 1000);
}

/**
 * At a quiet pace, one event at a time: what the commit takes, and what emission to receipt takes, the commit included.
 */
async function quiet(): Promise<{ commit: number; p50: number; p99: number }> {
  await fetch(`${url}?reset`);
  const session = newSessionUuid();
  const commits: number[] = [];
  for (let step = 0; step < 500; step += 1) {
    const started = performance.now();
    await commit(session, step);
    commits.push(performance.now() - started);
    await new Promise((wake) => setTimeout(wake, 6));
  }
  const { p50, p99 } = await counts();
  return { commit: commits.sort((a, b) => a - b)[250] ?? 0, p50, p99 };
}

relay.start();

while (!relay.load().leading) await new Promise((wake) => setTimeout(wake, 5));
for (let round = 0; round < ROUNDS; round += 1) {
  const [a, b] = [await floor(), await whole()];
  console.log(
    `round ${round + 1}: bare POSTs ${a.toFixed(0)}/s, commit to delivered ${b.toFixed(0)}/s (${((100 * b) / a).toFixed(0)} %)`,
  );
}
const { commit: alone, p50, p99 } = await quiet();
console.log(
  `one at a time: commit p50 ${alone.toFixed(2)} ms; emission to receipt p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
);
console.log(`reordered: ${(await counts()).reordered}`);
await relay.stop();
await store.close();
child.kill();
rmSync(dataDir, { recursive: true, force: true });
