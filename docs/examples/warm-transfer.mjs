// A warm transfer: the caller waits with music, a colleague is called and asked, and with the key 1 both meet. Any other key,
// or no answer: the caller is told so and hung up on.
// Plain Node: APP=app_… KEY=… SECRET=… FROM=+15550001 COLLEAGUE=+15550100 node warm-transfer.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, tone } from './sound.mjs';

const { PORT = '9000', FROM, COLLEAGUE } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'FROM', 'COLLEAGUE'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

const order = (session, what, body = {}) => call('POST', `/v1/sessions/${session}/${what}`, body);
const hangUp = (session) => call('DELETE', `/v1/sessions/${session}`);

/** The transfers under way, each with its caller, colleague and Room, by the session_uuid of the caller. */
const transfers = new Map();

// The colleague's call carries the caller's session_uuid as `client_state`: its events may come before the answer to the dial.
const steps = {
  'session.created': ({ session_uuid: caller }) => {
    transfers.set(caller, { caller, colleague: undefined, room_id: undefined });
    return order(caller, 'answer');
  },
  'session.answered': async ({ session_uuid: session, client_state }) => {
    const transfer = transfers.get(session);
    if (transfer === undefined) return transfers.has(client_state) ? ask(session) : hangUp(session); // The caller has hung up.
    const { room_id } = await call('POST', '/api/v1/rooms', { hold_music_url: file('music') });
    transfer.room_id = room_id;
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: session });
    const dial = { from: FROM, to: COLLEAGUE, ring_timeout_sec: 20, client_state: session };
    const dialled = await call('POST', '/v1/sessions:dial', dial);
    transfer.colleague = dialled.session_uuid;
    if (!transfers.has(session)) return close(transfer); // The caller has hung up before these answers came.
    if (transfer.colleague === undefined) await sorry(transfer);
  },
  'digits.collected': async (event) => {
    const transfer = transfers.get(event.client_state);
    if (transfer === undefined) return;
    if (event.digits !== '1') return hangUp(event.session_uuid);
    await call('POST', `/api/v1/rooms/${transfer.room_id}/members`, { session_uuid: event.session_uuid });
    transfer.isJoined = true;
    console.log('both talk');
  },
  'playback.ended': ({ session_uuid: session }) => transfers.get(session)?.isRefused && hangUp(session),
  'session.ended': async ({ session_uuid: session, client_state }) => {
    const transfer = transfers.get(session) ?? transfers.get(client_state);
    if (transfer === undefined) return;
    // The colleague did not want to, or nobody answered.
    if (session !== transfer.caller && !transfer.isJoined) return sorry(transfer);
    transfers.delete(transfer.caller);
    await close(transfer);
  },
};

/** Hangs up both and closes their Room. A Session that has ended already answers so, and that is no error. */
async function close({ caller, colleague, room_id }) {
  for (const session of [caller, colleague]) if (session) await hangUp(session);
  if (room_id) await call('DELETE', `/api/v1/rooms/${room_id}`);
}

/** The colleague is asked before anybody hears anybody: `dtmf/collect` ends in `digits.collected`. */
const ask = (colleague) =>
  order(colleague, 'dtmf/collect', { prompt_files: [file('question')], max_digits: 1, terminators: [] });

async function sorry(transfer) {
  console.log('nobody is there');
  transfer.isRefused = true;
  await call('DELETE', `/api/v1/rooms/${transfer.room_id}/members/${transfer.caller}`);
  await order(transfer.caller, 'playback/play', { type: 'files', urls: [file('sorry')] });
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const hz = { '/question.wav': 660, '/music.wav': 440, '/sorry.wav': 220 }[request.url ?? ''];
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
