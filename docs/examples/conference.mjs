// A conference: everybody who calls meets in one Room, and is told who comes, goes and talks. `*` mutes a caller, `#` unmutes.
// Plain Node: APP=app_… KEY=… SECRET=… node conference.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';

const { PORT = '9000' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

/** The Room, made for the first caller and closed behind the last one. */
let room;
/** The callers in it, by session_uuid, with the names that are shown. */
const names = new Map();

const steps = {
  'session.created': (event) => {
    names.set(event.session_uuid, event.caller_id || 'unknown');
    return call('POST', `/v1/sessions/${event.session_uuid}/answer`, {});
  },
  'session.answered': async (event) => {
    // Everybody waits for the same answer, so that two callers at once do not make two Rooms.
    room ??= newRoom();
    const { room_id } = await room;
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: event.session_uuid });
  },
  'room.member.voice_activity_changed': (event) =>
    console.log(names.get(event.session_uuid), event.talking ? 'talks' : 'is silent'),
  'dtmf.received': (event) => {
    const order = { '*': 'mute', '#': 'unmute' }[event.digit];
    return order && call('POST', `/v1/sessions/${event.session_uuid}/room/${order}`);
  },
  'session.ended': async (event) => {
    if (!names.delete(event.session_uuid) || names.size > 0 || room === undefined) return;
    // Whoever calls from now on is in another Room.
    const left = room;
    room = undefined;
    const { room_id } = await left;
    await call('DELETE', `/api/v1/rooms/${room_id}`);
  },
};

/** Makes a Room. Where the platform cannot be asked, the next caller asks again. */
function newRoom() {
  const made = call('POST', '/api/v1/rooms', { voice_activity_events: true });
  made.catch(() => {
    if (room === made) room = undefined;
  });
  return made;
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid ?? event.room_id);
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
