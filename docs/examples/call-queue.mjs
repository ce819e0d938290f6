// A queue in front of agents: the caller waits with music, all agents are rung at once, the first who answers has the call and the
// others are cancelled. With nobody there, the caller leaves a message after a beep.
// Plain Node: APP=app_… KEY=… SECRET=… FROM=+15550001 AGENTS=sip:alice,sip:bob,+15550100 node call-queue.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, tone } from './sound.mjs';

const { PORT = '9000', FROM, AGENTS = '', RING_SEC = '20' } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'FROM', 'AGENTS'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

const order = (session, what, body = {}) => call('POST', `/v1/sessions/${session}/${what}`, body);
const hangUp = (session) => call('DELETE', `/v1/sessions/${session}`);

/** Who waits, talks or leaves a message, by the session_uuid of the caller. A real application has a table for it. */
const waiting = new Map();

// Each call to an agent carries the caller's session_uuid as `client_state`: its events may come before the answer to the dial.
const steps = {
  'session.created': ({ session_uuid: caller }) => {
    const none = { agent: undefined, room_id: undefined, isRung: false, isMessage: false };
    waiting.set(caller, { caller, ...none, rung: new Set(), over: new Set() });
    return order(caller, 'answer');
  },
  'session.answered': (event) => {
    const wait = waiting.get(event.session_uuid);
    return wait === undefined ? agentAnswered(event) : enter(wait);
  },
  'playback.ended': async ({ session_uuid: caller }) => {
    if (waiting.get(caller)?.isMessage !== true) return;
    const events = { enable_voice_activity_events: true, voice_activity_config: { silence_duration_ms: 3000 } };
    await order(caller, 'recordings', { direction: 'both', channels: 'mono', ...events });
    console.log('records a message');
  },
  // The message ends with the key #, three seconds of silence after speech, or the call.
  'dtmf.received': (event) => event.digit === '#' && waiting.get(event.session_uuid)?.isMessage && hangUp(event.session_uuid),
  'recording.speech.ended': (event) => hangUp(event.session_uuid),
  'recording.ended': (event) => console.log('message', event.duration, event.pull_url),
  'session.ended': async (event) => {
    const wait = waiting.get(event.session_uuid) ?? waiting.get(event.client_state);
    if (wait === undefined) return;
    const isAgent = event.session_uuid !== wait.caller;
    if (isAgent) wait.over.add(event.session_uuid);
    if (isAgent) console.log('agent', event.hangup_cause);
    // One agent of several is busy, away or does not answer: the others are still rung.
    if (isAgent && event.session_uuid !== wait.agent) return lookAgain(wait);
    waiting.delete(wait.caller);
    await close(wait);
  },
};

async function enter(wait) {
  const { caller } = wait;
  const { room_id } = await call('POST', '/api/v1/rooms', { hold_music_url: file('music') });
  wait.room_id = room_id;
  await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: caller });
  // An announcement is played to the Room: the music waits meanwhile, and goes on from where it was.
  await call('POST', `/api/v1/rooms/${room_id}/playback/play`, { type: 'files', urls: [file('position')] });
  const ring = async (to) => {
    const dial = { from: FROM, to, ring_timeout_sec: Number(RING_SEC), client_state: caller };
    // An event may come twice. With this key no agent is rung twice for one caller.
    const { session_uuid } = await call('POST', '/v1/sessions:dial', dial, { 'idempotency-key': `${caller}-${to}` });
    if (session_uuid !== undefined) wait.rung.add(session_uuid);
  };
  await Promise.all(AGENTS.split(',').filter(Boolean).map(ring));
  wait.isRung = true;
  // Meanwhile the caller may have hung up, or an agent have answered.
  if (!waiting.has(caller)) return close(wait);
  if (wait.agent !== undefined) return cancelOthers(wait);
  await lookAgain(wait);
}

async function agentAnswered({ session_uuid: agent, client_state: caller }) {
  const wait = waiting.get(caller);
  // The caller may have hung up at that moment.
  if (wait === undefined) return hangUp(agent);
  // Two may answer at once: the second one is told so here, in words of yours.
  if (wait.agent !== undefined || wait.isMessage) return hangUp(agent);
  wait.agent = agent;
  console.log('agent answered');
  await call('POST', `/api/v1/rooms/${wait.room_id}/members`, { session_uuid: agent });
  await cancelOthers(wait);
}

/** Ends the other calls, also one that is being answered: `cancel` would be refused there (409), DELETE is not. */
async function cancelOthers(wait) {
  for (const session of wait.rung) if (session !== wait.agent && !wait.over.has(session)) await hangUp(session);
}

/** When nobody is rung any more, the caller may leave a message: what is played ends in a beep. */
async function lookAgain(wait) {
  const isRinging = !wait.isRung || [...wait.rung].some((session) => !wait.over.has(session));
  if (isRinging || wait.agent !== undefined || wait.isMessage) return;
  wait.isMessage = true;
  console.log('nobody is there');
  await call('DELETE', `/api/v1/rooms/${wait.room_id}/members/${wait.caller}`);
  await order(wait.caller, 'playback/play', { type: 'files', urls: [file('sorry'), file('beep')] });
}

/** Hangs up everybody and closes the Room. A Session that has ended already answers so, and that is no error. */
async function close({ caller, agent, rung, room_id }) {
  for (const session of new Set([caller, agent, ...rung])) if (session) await hangUp(session);
  if (room_id) await call('DELETE', `/api/v1/rooms/${room_id}`);
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const hz = { '/music.wav': 440, '/position.wav': 660, '/sorry.wav': 220, '/beep.wav': 1000 }[request.url ?? ''];
  if (hz !== undefined) return sendSound(request, response, tone(hz, 0.5));
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid ?? event.room_id);
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on ${here()}/`));

const here = () => `http://127.0.0.1:${server.address().port}`;
const file = (name) => `${here()}/${name}.wav`;
