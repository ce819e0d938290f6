/**
 * Answering machine detection on the whole platform: an application calls itself over a loopback trunk, and what
 * answers plays a sound that is like a person's or a machine's.
 */
import { afterAll, beforeAll, expect } from 'bun:test';
import { wav } from '../media/sound.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550093';
const RATE = 8_000;

/** Words: bursts of noise of 250 ms with 80 ms between them. */
const words = (seconds: number): number[] =>
  Array.from({ length: seconds * RATE }, (_, at) => ((at / RATE) % 0.33 < 0.25 ? 0.3 * (2 * Math.random() - 1) : 0));
const silence = (seconds: number): number[] => new Array(seconds * RATE).fill(0);
const beep = (seconds: number): number[] =>
  Array.from({ length: seconds * RATE }, (_, at) => 0.2 * Math.sin((2 * Math.PI * 1_000 * at) / RATE));
const SOUNDS: Readonly<Record<string, number[]>> = {
  '/person.wav': [...silence(0.5), ...words(0.6), ...silence(3)],
  '/beeping.wav': [...silence(0.5), ...words(3), ...silence(0.5), ...beep(0.4), ...silence(3)],
  '/machine.wav': [...silence(0.5), ...words(3), ...silence(6)],
};

let platform: Platform;
let app: Credentials;
/** What the called side plays, and the Session that is the called side. */
let playing: string | undefined;
let called = '';
const receiver = new Receiver();
const sounds = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request) => new Response(wav(Float64Array.from(SOUNDS[new URL(request.url).pathname] ?? []), RATE)),
});

beforeAll(async () => {
  platform = await Platform.start({ ORPHAN_TIMEOUT_SEC: '2' });
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  receiver.misbehave = ({ event, session_uuid: sessionUuid }) => {
    if (event === 'session.created') {
      called = String(sessionUuid);
      void answer(called);
    }
    return undefined;
  };
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await sounds.stop(true);
});

async function answer(sessionUuid: string): Promise<void> {
  const sound = playing;
  await platform.answerSoon(app, sessionUuid);
  if (sound === undefined) return;
  const urls = [`http://127.0.0.1:${sounds.port}${sound}`];
  await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/playback/play`, { type: 'files', urls });
}

/** Dials; the called side plays that sound. */
async function dial(sound: string | undefined, detection: object): Promise<string> {
  playing = sound;
  const order = { from: NUMBER, to: NUMBER, ring_timeout_sec: 10, ...detection };
  const made = await platform.api(app, 'POST', '/v1/sessions:dial', order);
  expect(made.status).toBe(202);
  return String(made.body.session_uuid);
}

/** What was told of the detection and of the end, in order. */
const told = (sessionUuid: string) =>
  receiver
    .of(sessionUuid)
    .filter(({ event }) => event.startsWith('session.machine') || event === 'session.answered' || event === 'session.ended')
    .map(({ event, body }) => [event, body.result ?? body.beep]);

test('A person and a machine are told apart, and of the machine the end of its greeting, beside a call that goes on.', async () => {
  const person = await dial('/person.wav', { machine_detection: {} });
  const { body } = await receiver.event('session.machine_detection.completed', person);
  expect(body).toMatchObject({ session_uuid: person, result: 'human' });
  expect(Number(body.after_ms)).toBeGreaterThan(1_500);
  expect(Number(body.after_ms)).toBeLessThan(4_500);
  await platform.api(app, 'DELETE', `/v1/sessions/${person}`);
  await receiver.event('session.ended', person);

  for (const [sound, hasBeep] of [
    ['/beeping.wav', true],
    ['/machine.wav', false],
  ] as const) {
    const machine = await dial(sound, { machine_detection: { timeout_ms: 10_000 } });
    expect((await receiver.event('session.machine_greeting.ended', machine)).body).toMatchObject({ beep: hasBeep });
    await platform.api(app, 'DELETE', `/v1/sessions/${machine}`);
    await receiver.event('session.ended', machine);
    expect(told(machine)).toEqual([
      ['session.answered', undefined],
      ['session.machine_detection.completed', 'machine'],
      ['session.machine_greeting.ended', hasBeep],
      ['session.ended', undefined],
    ]);
  }
  await receiver.event('session.ended', called);
  expect(told(called)).toEqual([
    ['session.answered', undefined],
    ['session.ended', undefined],
  ]);
}, 60_000);

test('Silence, a hang-up before the verdict, and a crash leave it unknown, told once and before the end.', async () => {
  const silent = await dial(undefined, { machine_detection: { timeout_ms: 1_000 } });
  const { body } = await receiver.event('session.machine_detection.completed', silent);
  expect(body).toMatchObject({ result: 'unknown', after_ms: 1_000 });
  const ended = await dial(undefined, { machine_detection: { timeout_ms: 30_000 } });
  await receiver.event('session.answered', ended);
  for (const each of [silent, ended]) await platform.api(app, 'DELETE', `/v1/sessions/${each}`);
  const greeting = await dial('/machine.wav', { machine_detection: {} });
  await receiver.event('session.machine_detection.completed', greeting);
  const listening = await dial(undefined, { machine_detection: { timeout_ms: 30_000 } });
  await receiver.event('session.answered', listening);
  await platform.kill();
  await platform.start();
  for (const each of [silent, ended, greeting, listening]) await receiver.event('session.ended', each);
  for (const each of [silent, ended, listening])
    expect(told(each)).toEqual([
      ['session.answered', undefined],
      ['session.machine_detection.completed', 'unknown'],
      ['session.ended', undefined],
    ]);
  expect(told(greeting).slice(1)).toEqual([
    ['session.machine_detection.completed', 'machine'],
    ['session.machine_greeting.ended', false],
    ['session.ended', undefined],
  ]);
}, 60_000);

test('A dial that asks for detection wrongly is refused with the path that is wrong.', async () => {
  for (const machine_detection of [{ timeout_ms: 999 }, { timeout_ms: 30_001 }, { timeout_ms: '5' }, { more: 1 }, true, []]) {
    const order = { from: NUMBER, to: NUMBER, ring_timeout_sec: 10, machine_detection };
    const refused = await platform.api(app, 'POST', '/v1/sessions:dial', order);
    expect([refused.status, String(refused.body.message).startsWith('machine_detection')]).toEqual([422, true]);
  }
});
