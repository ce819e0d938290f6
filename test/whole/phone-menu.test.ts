/** The menu of docs/examples, as it is, on Node, and the program that fetches its recordings, over a loopback trunk. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Example } from '../support/example.ts';
import { CALLED, LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const [PERSON, NOBODY] = ['+15550003', '+15550009'];

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
const desk = new Receiver();
const folder = mkdtempSync(join(tmpdir(), 'sidetone-fetched-'));
/** What an application of Twilio's would be told. */
const statuses: string[] = [];
let told = () => {};
/** Resolves once so many statuses beyond the ringing were told. */
async function toldOf(count: number): Promise<string[]> {
  for (;;) {
    const beyond = statuses.filter((status) => status !== 'ringing');
    if (beyond.length >= count) return beyond;
    await new Promise<void>((resolve) => {
      told = resolve;
    });
  }
}
const callbacks = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const form = new URLSearchParams(await request.text());
    statuses.push(`${form.get('CallStatus')}${form.has('CallDuration') ? ' with a duration' : ''}`);
    told();
    return new Response();
  },
});

beforeAll(async () => {
  calls = await LoopbackCalls.start();
  ({ platform, caller, called } = calls);
  const person = await platform.application(desk.url, PERSON);
  platform.answerEveryCall(person, desk);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
  await desk.stop();
  await callbacks.stop(true);
  rmSync(folder, { recursive: true, force: true });
}, 20_000);

const started = (to: string) =>
  Example.start('phone-menu.mjs', platform, called, {
    FROM: CALLED,
    PERSON: to,
    STATUS_URL: `http://127.0.0.1:${callbacks.port}/status`,
  });
const send = (session: string, digits: string) => platform.api(caller, 'POST', `/v1/sessions/${session}/dtmf/send`, { digits });

test('phone-menu.mjs plays the hours and the menu again, and puts the caller through.', async () => {
  using example = await started(PERSON);
  const session = await calls.dial();
  await example.prints(/session\.answered/);
  // The 9 is not in the menu, and counts for nothing.
  await send(session, 'W91');
  await example.prints(/key 1[\s\S]*playback\.ended/);
  await send(session, 'W2');
  await example.prints(/key 2[\s\S]*room\.member\.joined[\s\S]*room\.member\.joined/);
  const answered = await desk.event('session.answered');
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await desk.event('session.ended', String(answered.body.session_uuid));
  await example.prints(/room\.deleted/);
  const both = ['in-progress', 'in-progress', 'completed with a duration', 'completed with a duration'];
  // The program tells them beside its other work: the last one may come after the end of the Room.
  expect(await toldOf(both.length)).toEqual(both);
}, 40_000);

test('phone-menu.mjs takes a message where nobody is there, and fetch-recordings.mjs puts it into a folder, once.', async () => {
  using example = await started(NOBODY);
  const session = await calls.dial();
  await example.prints(/session\.answered/);
  await send(session, 'W2');
  await example.prints(/nobody is there: invalid_number[\s\S]*records a message/);
  await calls.press(session, '55');
  await example.prints(/recording\.became_available/);
  await send(session, '#');
  await example.prints(/message \d+ http/);

  const fetch = (more: object = {}) =>
    spawnSync('node', [join(import.meta.dir, '../../docs/examples/fetch-recordings.mjs')], {
      env: {
        PATH: process.env.PATH,
        APP: called.appUuid,
        KEY: called.apiKey,
        FOLDER: folder,
        SIDETONE_URL: platform.url,
        ...more,
      },
      encoding: 'utf8',
      timeout: 20_000,
    });
  expect(fetch({ KEY: 'another' })).toMatchObject({ status: 1, stdout: 'failed: 401 Invalid API key \n' });
  const first = fetch();
  const name = /^fetched (rec_\S+)/.exec(first.stdout)?.[1];
  expect([first.status, first.stderr]).toEqual([0, '']);
  expect(readdirSync(folder).sort()).toEqual([`${name}.wav`, 'since']);
  expect(readFileSync(join(folder, `${name}.wav`), 'latin1').slice(0, 4)).toBe('RIFF');
  expect(fetch()).toMatchObject({ status: 0, stdout: '' });
}, 40_000);
