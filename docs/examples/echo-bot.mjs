// A bot that says back what it hears: each call gets a Room, and a WebSocket of this program joins it.
// Node with the package ws (it is there in a clone that was started; elsewhere npm install ws):
//   APP=app_… KEY=… SECRET=… node echo-bot.mjs
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { call, received } from './platform.mjs';

const { PORT = '9000' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

const FORMAT = { encoding: 'pcm_s16le', sample_rate: 16_000 };

/** The calls that are up, each with its bot and their Room, by the session_uuid of the caller. */
const talks = new Map();

const steps = {
  'session.created': (event) => call('POST', `/v1/sessions/${event.session_uuid}/answer`, {}),
  'session.answered': async ({ session_uuid: caller }) => {
    const talk = { caller };
    talks.set(caller, talk);
    const { room_id } = await call('POST', '/api/v1/rooms', {});
    talk.room_id = room_id;
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: caller });
    const bot = await call('POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: `ws://127.0.0.1:${server.address().port}/` },
      media_format: { from_session: FORMAT, to_session: FORMAT },
      room_id,
      client_state: caller, // Comes back in every event of the bot.
    });
    talk.bot = bot.session_uuid;
    // Without a bot nobody would talk to the caller. Or the caller has hung up before these answers came.
    if (talk.bot === undefined) talks.delete(caller);
    if (!talks.has(caller)) await close(talk);
  },
  // Who is left alone is hung up.
  'session.ended': async (event) => {
    const talk = talks.get(event.session_uuid) ?? talks.get(event.client_state);
    if (talk === undefined) return;
    talks.delete(talk.caller);
    await close(talk);
  },
};

/** Hangs up both and closes their Room. A Session that has ended already answers so, and that is no error. */
async function close({ caller, bot, room_id }) {
  for (const session of [caller, bot]) if (session) await call('DELETE', `/v1/sessions/${session}`);
  if (room_id) await call('DELETE', `/api/v1/rooms/${room_id}`);
}

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid ?? event.room_id, event.hangup_cause ?? '');
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});

// Each binary message is 20 ms of what the caller says. A bot of yours would think here before it answers.
new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (audio) => socket.send(audio)));

server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
