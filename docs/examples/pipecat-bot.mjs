// Connects calls to a Pipecat bot, which needs no change: the platform speaks what Pipecat's TwilioFrameSerializer speaks.
// Start the bot as for Twilio (Pipecat's runner listens on port 7860 at /ws), then, with plain Node:
//   APP=app_… KEY=… SECRET=… PIPECAT_URL=ws://127.0.0.1:7860/ws node pipecat-bot.mjs
// In the bot, give the serializer TwilioFrameSerializer.InputParams(auto_hang_up=False): Twilio's REST API is not here. When the
// bot closes its connection, this program hangs up.
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';

const { PORT = '9000', PIPECAT_URL = 'ws://127.0.0.1:7860/ws' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

/** Twilio's audio is mu-law at 8 kHz, both ways. */
const FORMAT = { encoding: 'mulaw', sample_rate: 8000 };

/** The caller, the bot and the Room of each conversation, by the session_uuid of the caller. */
const conversations = new Map();
/** The numbers of calls that are not answered yet, for the bot. */
const numbers = new Map();

const steps = {
  'session.created': (event) => {
    numbers.set(event.session_uuid, { from_number: event.caller_id, to_number: event.did });
    return call('POST', `/v1/sessions/${event.session_uuid}/answer`, {});
  },
  'session.answered': async ({ session_uuid: caller }) => {
    const conversation = { caller };
    conversations.set(caller, conversation);
    const { room_id } = await call('POST', '/api/v1/rooms', {});
    conversation.room_id = room_id;
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: caller });
    const bot = await call('POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: PIPECAT_URL, subprotocol: 'twilio' },
      media_format: { from_session: FORMAT, to_session: FORMAT },
      room_id,
      phone_session_uuid: caller, // Pipecat's `call_id`.
      parameters: numbers.get(caller), // Pipecat's `from` and `to`.
      client_state: caller, // Comes back in every event of the bot.
    });
    conversation.bot = bot.session_uuid;
    // Without a bot nobody would talk to the caller. Or the caller has hung up before these answers came.
    if (conversation.bot === undefined) conversations.delete(caller);
    if (!conversations.has(caller)) await close(conversation);
  },
  // Who is left alone is hung up.
  'session.ended': async (event) => {
    numbers.delete(event.session_uuid);
    const conversation = conversations.get(event.session_uuid) ?? conversations.get(event.client_state);
    if (conversation === undefined) return;
    conversations.delete(conversation.caller);
    await close(conversation);
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
  console.log(event.event, event.session_uuid ?? event.room_id, event.hangup_cause ?? event.reason ?? '');
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
