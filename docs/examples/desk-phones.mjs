// Desk phones: each caller is put through to an agent's telephone, telephones call each other and the outside, and their own
// buttons work: hold, and transfer, at once to what is dialled (blind) or to a colleague whom the agent has asked first (attended).
// Plain Node: APP=app_… KEY=… SECRET=… FROM=+15550001 AGENT=sip:alice node desk-phones.mjs
// The telephone of alice registers with a password: bin/sidetone devices set $APP alice --password-file alice.password
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, silence, tone } from './sound.mjs';

const { PORT = '9000', FROM, AGENT } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'FROM', 'AGENT'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

const hangUp = (session) => call('DELETE', `/v1/sessions/${session}`);

/** Whom a call that comes in is for, by its session_uuid. */
const wanted = new Map();
/** The talks by their Rooms: who is in each, or is being called into it. A real application has a table for it. */
const talks = new Map();
/** The calls of telephones that have transferred, and are being hung up. */
const left = new Set();

const talkOf = (session) => [...talks.values()].find(({ parties }) => parties.has(session));

const steps = {
  'session.created': async ({ session_uuid: session, caller_id, sip }) => {
    // A telephone of ours says what was dialled on it; everybody else has called the number, and wants the agent.
    wanted.set(session, { to: sip?.device ? addressOf(sip.dialled) : AGENT, name: sip?.device ?? caller_id });
    await call('POST', `/v1/sessions/${session}/answer`);
  },
  'session.answered': async ({ session_uuid: session }) => {
    const want = wanted.get(session);
    if (want === undefined) return; // One that was dialled: it is in its Room by itself.
    wanted.delete(session);
    const { room_id } = await call('POST', '/api/v1/rooms', { hold_music_url: `${here()}/ringing.wav` });
    const talk = { room_id, parties: new Set([session]), holders: new Set() };
    talks.set(room_id, talk);
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: session });
    if (!(await ring(talk, want))) await closeIfOver(talk);
  },
  // Whom a telephone has on hold hears nobody, and no music of the Room, which has two members: it is played to each Session.
  'session.held': async ({ session_uuid: session, by }) => {
    if (by !== 'far_end') return;
    talkOf(session)?.holders.add(session);
    await tellOthers(session, 'play', { type: 'files', urls: [`${here()}/music.wav`], loop: 0 });
  },
  'session.resumed': ({ session_uuid: session }) => resume(session),
  'session.transfer.requested': async ({ session_uuid: session, target, to_session_uuid: other }) => {
    const talk = talkOf(session);
    const next = other === undefined ? talk : talkOf(other);
    if (talk === undefined || next === undefined) return; // One of the calls is over by now.
    // What cannot be dialled changes nothing: the telephone still has its call, and is told so after a minute.
    if (other === undefined && !(await ring(talk, { to: addressOf(target), name: 'transferred' }))) return;
    await resume(session); // Most telephones hold a call before they transfer it.
    // A join of another Room leaves the first one. A colleague who rings still is waited for there, with its music.
    for (const party of next === talk ? [] : talk.parties)
      if (party !== session) {
        next.parties.add(party);
        await call('POST', `/api/v1/rooms/${next.room_id}/members`, { session_uuid: party });
      }
    console.log(other === undefined ? 'transferred to' : 'connected', target);
    // The telephone is told that it is done when its call ends, and is rid of both.
    const own = other === undefined ? [session] : [session, other];
    for (const each of own) {
      left.add(each);
      talk.parties.delete(each);
      next.parties.delete(each);
    }
    if (next !== talk) {
      talks.delete(talk.room_id);
      await call('DELETE', `/api/v1/rooms/${talk.room_id}`);
    }
    for (const each of own) await hangUp(each);
    await closeIfOver(next);
  },
  'session.ended': async ({ session_uuid: session, client_state, hangup_cause }) => {
    wanted.delete(session);
    if (left.delete(session)) return;
    // One that was dialled may be busy before the answer to the dial has told its session_uuid.
    const talk = talkOf(session) ?? talks.get(client_state);
    if (talk === undefined) return;
    console.log('over:', hangup_cause);
    talk.parties.delete(session);
    await closeIfOver(talk);
  },
};

async function tellOthers(session, order, body) {
  for (const party of talkOf(session)?.parties ?? [])
    if (party !== session) await call('POST', `/v1/sessions/${party}/playback/${order}`, body);
}

/** Ends the music of those whom a telephone has had on hold. */
async function resume(session) {
  if (talkOf(session)?.holders.delete(session)) await tellOthers(session, 'stop');
}

/** Calls somebody into the Room of a talk, whose telephone shows who is there. False where nobody can be called. */
async function ring(talk, { to, name }) {
  const { room_id } = talk;
  const dial = { from: FROM, to, display_name: name || 'unknown', ring_timeout_sec: 30, client_state: room_id, room_id };
  const { session_uuid } = await call('POST', '/v1/sessions:dial', dial);
  if (session_uuid === undefined) return false;
  talk.parties.add(session_uuid);
  if (!talks.has(room_id)) await hangUp(session_uuid); // The talk was over before this answer came.
  return true;
}

/** Hangs up who is alone, and closes the Room. A Session that has ended already answers so, and that is no error. */
async function closeIfOver({ room_id, parties }) {
  if (parties.size > 1 || !talks.delete(room_id)) return;
  for (const session of parties) await hangUp(session);
  await call('DELETE', `/api/v1/rooms/${room_id}`);
}

/** What `dial` takes, of what a telephone has dialled or of the URI that it transfers to: a number, or a device of ours. */
function addressOf(dialled) {
  const [, user] = /^(?:sips?:)?([^@;?]*)/.exec(dialled);
  return user.startsWith('+') ? user : `sip:${decodeURIComponent(user)}`;
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const hz = { '/ringing.wav': 425, '/music.wav': 330 }[request.url ?? ''];
  if (hz !== undefined) return sendSound(request, response, [...tone(hz, 1), ...silence(3)]);
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
