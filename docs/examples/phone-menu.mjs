// What a TwiML application does with <Gather>, <Play>, <Dial>, <Record> and status callbacks: a menu by keys. 1 plays the hours,
// 2 puts the caller through to a person, 3 takes a message, and so does a person who is not there.
// Plain Node: APP=app_… KEY=… SECRET=… FROM=+15550001 PERSON=+15550100 node phone-menu.mjs
// STATUS_URL is the statusCallback of an application that has one: it is sent CallSid, CallStatus and CallDuration as by Twilio.
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, tone } from './sound.mjs';

const { PORT = '9000' } = process.env;
const { FROM, PERSON, RING_SEC = '20', STATUS_URL } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'FROM', 'PERSON'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

const order = (session, what, body = {}) => call('POST', `/v1/sessions/${session}/${what}`, body);
const play = (session, ...names) => order(session, 'playback/play', { type: 'files', urls: names.map(file) });
const hangUp = (session) => call('DELETE', `/v1/sessions/${session}`);

/** The callers, by session_uuid, each with what is heard now. A real application has a table for them. */
const callers = new Map();

/** <Gather numDigits="1">: keys that are not valid count for nothing, and no key is a terminator. */
const menu = (caller) =>
  order(caller, 'dtmf/collect', { prompt_files: [file('menu')], max_digits: 1, valid_digits: '123', terminators: [] });

const steps = {
  'session.created': (event) => {
    callers.set(event.session_uuid, { hears: 'menu', tries: 0 });
    return order(event.session_uuid, 'answer');
  },
  'session.answered': (event) => {
    if (callers.has(event.session_uuid)) return menu(event.session_uuid);
    // The person, who is in the Room already, or whose caller has hung up.
    if (!callers.has(event.client_state)) return hangUp(event.session_uuid);
  },
  'digits.collected': (event) => {
    const state = callers.get(event.session_uuid);
    if (state === undefined || event.reason === 'session_ended') return;
    // Whoever presses no key in time is asked three times, as by a <Redirect> to the <Gather>.
    if (event.status !== 'success') return ++state.tries < 3 ? menu(event.session_uuid) : hangUp(event.session_uuid);
    console.log('key', event.digits);
    if (event.digits === '2') return putThrough(event.session_uuid, state);
    if (event.digits === '3') return takeMessage(event.session_uuid, state);
    state.hears = 'hours';
    return play(event.session_uuid, 'hours');
  },
  'playback.ended': async (event) => {
    const state = callers.get(event.session_uuid);
    if (event.reason !== 'completed' || state === undefined) return;
    if (state.hears === 'hours') return menu(event.session_uuid);
    if (state.hears !== 'beep') return;
    state.hears = 'nothing';
    const events = { enable_voice_activity_events: true, voice_activity_config: { silence_duration_ms: 3000 } };
    await order(event.session_uuid, 'recordings', { direction: 'both', channels: 'mono', ...events });
    console.log('records a message');
  },
  // <Record finishOnKey="#" timeout="3">.
  'dtmf.received': (event) =>
    event.digit === '#' && callers.get(event.session_uuid)?.hears === 'nothing' && hangUp(event.session_uuid),
  'recording.speech.ended': (event) => hangUp(event.session_uuid),
  'recording.ended': (event) => console.log('message', event.duration, event.pull_url),
  'session.ended': async (event) => {
    const caller = callers.has(event.session_uuid) ? event.session_uuid : event.client_state;
    const state = callers.get(caller);
    if (state === undefined) return;
    if (caller !== event.session_uuid && !event.answered) return nobody(caller, state, event.hangup_cause);
    // One of the two hung up: the other one would stay in an empty Room.
    callers.delete(caller);
    await close(caller, state);
  },
};

/** <Dial>: both meet in a Room, whose music is the ringing tone that the caller hears meanwhile. */
async function putThrough(caller, state) {
  state.hears = 'ringing';
  state.room = (await call('POST', '/api/v1/rooms', { hold_music_url: file('ringing') })).room_id;
  await call('POST', `/api/v1/rooms/${state.room}/members`, { session_uuid: caller });
  // With client_state the events of this call name the caller, also those that come before the answer to this request.
  const dial = { from: FROM, to: PERSON, ring_timeout_sec: Number(RING_SEC), room_id: state.room, client_state: caller };
  state.person = (await call('POST', '/v1/sessions:dial', dial)).session_uuid;
  if (!callers.has(caller)) return close(caller, state); // The caller has hung up before these answers came.
  if (state.person === undefined) await nobody(caller, state, 'refused');
}

/** What DialCallStatus says after a <Dial> is the `hangup_cause` of the second call. */
async function nobody(caller, state, cause) {
  console.log('nobody is there:', cause);
  await call('DELETE', `/api/v1/rooms/${state.room}/members/${caller}`);
  await takeMessage(caller, state);
}

async function takeMessage(caller, state) {
  state.hears = 'beep';
  await play(caller, 'sorry', 'beep');
}

/** Hangs up both and closes their Room. A Session that has ended already answers so, and that is no error. */
async function close(caller, { person, room }) {
  for (const session of [caller, person]) if (session) await hangUp(session);
  if (room) await call('DELETE', `/api/v1/rooms/${room}`);
}

/** Twilio's CallStatus. */
const STATUS = { 'session.created': 'ringing', 'session.ringing_started': 'ringing', 'session.answered': 'in-progress' };
const ENDED = {
  completed: 'completed',
  busy: 'busy',
  rejected: 'busy',
  timeout: 'no-answer',
  not_answered: 'no-answer',
  cancelled: 'canceled',
};

async function tellStatus({ event, session_uuid, hangup_cause, duration_seconds }) {
  const status = event === 'session.ended' ? (ENDED[hangup_cause] ?? 'failed') : STATUS[event];
  if (!STATUS_URL || status === undefined) return;
  const body = new URLSearchParams({ CallSid: session_uuid, CallStatus: status });
  if (event === 'session.ended') body.set('CallDuration', duration_seconds);
  await fetch(STATUS_URL, { method: 'POST', body });
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const TONES = { '/menu.wav': 550, '/hours.wav': 660, '/ringing.wav': 440, '/sorry.wav': 220, '/beep.wav': 1000 };

const server = createServer(async (request, response) => {
  const hz = TONES[request.url ?? ''];
  if (hz !== undefined) return sendSound(request, response, tone(hz, 0.5));
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid ?? event.room_id, event.hangup_cause ?? '');
  await Promise.all([tellStatus(event), steps[event.event]?.(event)]);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on ${here()}/`));

const here = () => `http://127.0.0.1:${server.address().port}`;
const file = (name) => `${here()}/${name}.wav`;
