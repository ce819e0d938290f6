// Calls a list of numbers, some at once and not too fast, tells persons from machines, and prints what became of each.
// Plain Node: APP=app_… KEY=… SECRET=… FROM=+15550001 NUMBERS=+15550100,+15550101 node campaign.mjs
// Started again within a day it calls only who is new on the list. Another CAMPAIGN=NAME calls everybody again.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { received, send } from './platform.mjs';

const { PORT = '9000' } = process.env;
const { FROM, NUMBERS = '', AT_ONCE = '10', PER_SECOND = '5', MESSAGE, CAMPAIGN = 'campaign-1' } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'FROM', 'NUMBERS'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

/** Numbers that are being called, each with who answered. Events name the number in `client_state`. */
const live = new Map();
/** Wakes the list when a call is over. */
let wake = () => {};

function finished(number, result) {
  live.delete(number);
  console.log('result', number, result);
  wake();
}

async function run(numbers) {
  const untilLiveAre = async (most) => {
    while (live.size > most) await new Promise((resolve) => (wake = resolve));
  };
  for (const number of numbers) {
    await untilLiveAre(Number(AT_ONCE) - 1);
    live.set(number, undefined);
    const dial = { from: FROM, to: number, ring_timeout_sec: 30, machine_detection: {}, client_state: number };
    // Started again after a crash, the list begins at its head: the key makes sure that nobody is called twice.
    const { ok, answer, isRepeated } = await send('POST', '/v1/sessions:dial', dial, { 'idempotency-key': `${CAMPAIGN}-${number}` });
    if (isRepeated) finished(number, 'was called before');
    else if (!ok) finished(number, answer.message);
    await pause(1000 / Number(PER_SECOND));
  }
  await untilLiveAre(0);
  console.log('the list is done');
}

const play = (event) =>
  MESSAGE === undefined
    ? send('DELETE', `/v1/sessions/${event.session_uuid}`)
    : send('POST', `/v1/sessions/${event.session_uuid}/playback/play`, { type: 'files', urls: [MESSAGE] });

const steps = {
  'session.machine_detection.completed': (event) => {
    if (live.has(event.client_state)) live.set(event.client_state, event.result);
    // A machine is spoken to after its beep.
    if (event.result !== 'machine') return play(event);
  },
  'session.machine_greeting.ended': play,
  'playback.ended': (event) => send('DELETE', `/v1/sessions/${event.session_uuid}`),
  'session.ended': ({ client_state: number, answered, hangup_cause: cause }) => {
    if (live.has(number)) finished(number, answered ? `answered by ${live.get(number) ?? 'somebody'}` : cause);
  },
};

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const event = await received(request, response);
  if (event === undefined) return;
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  console.log(`waiting for events on ${url}`);
  // The list begins when the platform knows where its events go.
  try {
    await send('PATCH', '/api/v1/app', { webhook_url: url });
    // A number that stands in the list twice is called once.
    await run(new Set(NUMBERS.split(',').filter((number) => number !== '')));
  } catch (error) {
    console.log('the list was not finished:', error.message, error.cause?.message ?? '');
    process.exit(1);
  }
});
