/**
 * Programs of docs/examples to which the answers or the events of the platform come late: an event of a Session may be
 * there before the answer to the request that made it, and a caller may hang up in between.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Webhook } from 'standardwebhooks';
import { Example } from '../support/example.ts';
import { CALLED, LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const COLLEAGUE = '+15550003';

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
let colleague: Credentials;
const desk = new Receiver();
/** A bot of whatever protocol, which says nothing. */
const bot = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request, server) => (server.upgrade(request) ? undefined : new Response(null, { status: 400 })),
  websocket: { message: () => {} },
});

beforeAll(async () => {
  calls = await LoopbackCalls.start();
  ({ platform, caller, called } = calls);
  colleague = await platform.application(desk.url, COLLEAGUE);
  platform.answerEveryCall(colleague, desk);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
  await bot.stop(true);
  await desk.stop();
}, 20_000);

/** The platform behind a proxy that keeps the answers to one path back until they are released. */
function lateAnswers(path: string) {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = request.method === 'POST' ? await request.text() : undefined;
      const answer = await fetch(platform.url + pathname, { method: request.method, headers: request.headers, body });
      if (pathname === path) {
        asked.resolve();
        await released.promise;
      }
      return answer;
    },
  });
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    asked: asked.promise,
    release: () => released.resolve(),
    [Symbol.dispose]: () => void proxy.stop(true),
  };
}

const BOTS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['echo-bot.mjs', {}],
  ['pipecat-bot.mjs', { PIPECAT_URL: `ws://127.0.0.1:${bot.port}/` }],
  ['openai-realtime-bot.mjs', { OPENAI_API_KEY: 'none', OPENAI_URL: `ws://127.0.0.1:${bot.port}/` }],
];

test.each(BOTS)(
  '%s leaves no bot and no Room when the caller hangs up before the bot is known.',
  async (name, environment) => {
    using late = lateAnswers('/v1/sessions:connectWebsocket');
    using example = await Example.start(name, platform, called, { SIDETONE_URL: late.url, ...environment });
    const session = await calls.dial();
    await late.asked;
    await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
    await example.prints(/session\.ended/);
    late.release();
    await example.prints(/session\.ended[\s\S]*session\.ended/);
    await example.prints(/room\.deleted/);
  },
  40_000,
);

test('warm-transfer.mjs knows its colleague, who answers before the dial is answered.', async () => {
  using late = lateAnswers('/v1/sessions:dial');
  using example = await Example.start('warm-transfer.mjs', platform, called, { SIDETONE_URL: late.url, FROM: CALLED, COLLEAGUE });
  const session = await calls.dial();
  await example.prints(/session\.answered[\s\S]*session\.answered/);
  const other = String(desk.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid);
  await platform.api(colleague, 'POST', `/v1/sessions/${other}/dtmf/send`, { digits: 'W1' });
  await example.prints(/both talk/);
  late.release();
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await desk.event('session.ended', other);
  await example.prints(/room\.deleted/);
  expect(desk.count('session.created')).toBe(1);
}, 40_000);

test('warm-transfer.mjs hangs the colleague up when the caller hangs up before the dial is answered.', async () => {
  using late = lateAnswers('/v1/sessions:dial');
  using example = await Example.start('warm-transfer.mjs', platform, called, { SIDETONE_URL: late.url, FROM: CALLED, COLLEAGUE });
  const before = desk.count('session.ended');
  const session = await calls.dial();
  await late.asked;
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await example.prints(/session\.ended/);
  late.release();
  await desk.until(() => desk.count('session.ended') > before, 'the end of the call to the colleague');
  await example.prints(/room\.deleted/);
}, 40_000);

test('call-queue.mjs takes a message when an agent is known to be away before the dial is answered.', async () => {
  using late = lateAnswers('/v1/sessions:dial');
  const environment = { SIDETONE_URL: late.url, FROM: CALLED, AGENTS: '+15550009' };
  using example = await Example.start('call-queue.mjs', platform, called, environment);
  const session = await calls.dial();
  await example.prints(/agent invalid_number/);
  late.release();
  await example.prints(/nobody is there[\s\S]*records a message/);
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await example.prints(/room\.deleted/);
}, 40_000);

test.each(['call-queue.mjs', 'warm-transfer.mjs', 'phone-menu.mjs'])(
  '%s hangs up whom it had dialled for a caller who is gone, and takes nobody for a caller who did not call.',
  async (name) => {
    const environment = { FROM: CALLED, AGENTS: COLLEAGUE, COLLEAGUE, PERSON: COLLEAGUE };
    using example = await Example.start(name, platform, called, environment);
    const [, url = ''] = await example.prints(/waiting for events on (\S+)/);
    const session = crypto.randomUUID();
    const event = { event: 'session.answered', session_uuid: session, client_state: crypto.randomUUID() };
    const body = JSON.stringify(event);
    const now = new Date();
    const headers = {
      'webhook-id': `evt_${session}`,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(called.webhookSecret).sign(`evt_${session}`, now, body),
    };
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(204);
    // The Session is none of the platform's, and what it was asked is told where it refuses.
    await example.prints(/ 40\d /);
    expect(example.output).toContain(`/v1/sessions/${session} 404 Session not found`);
    expect(example.output).not.toContain('/dtmf/collect');
    expect(example.output).not.toContain('/members');
  },
  40_000,
);
