// A voice bot on OpenAI's Realtime API: what the caller says goes there, and what the model says is heard by the caller. The
// caller may interrupt it, and the model may hang up.
// Node with the package ws (it is there in a clone that was started; elsewhere npm install ws):
//   APP=app_… KEY=… SECRET=… OPENAI_API_KEY=… node openai-realtime-bot.mjs
import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';
import { call, received } from './platform.mjs';

const { PORT = '9000', OPENAI_API_KEY } = process.env;
const { OPENAI_URL = 'wss://api.openai.com/v1/realtime', MODEL = 'gpt-realtime', VOICE = 'marin' } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'OPENAI_API_KEY'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

const INSTRUCTIONS = 'You answer the telephone of a bakery. Be brief and friendly. Say goodbye, then call hang_up, when the caller is done.';
/** The rate of both sides: OpenAI takes and gives 24 kHz. */
const RATE = 24_000;
const FORMAT = { encoding: 'pcm_s16le', sample_rate: RATE };

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
      websocket: { url: `ws://127.0.0.1:${server.address().port}/`, subprotocol: 'sidetone.v1' },
      media_format: { from_session: FORMAT, to_session: FORMAT },
      room_id,
      phone_session_uuid: caller, // `hangup` of the bot ends this one.
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

/** Connects one call with one session of the model. */
function converse(caller) {
  const headers = { authorization: `Bearer ${OPENAI_API_KEY}` };
  const model = new WebSocket(`${OPENAI_URL}?model=${MODEL}`, { headers });
  const tell = (message) => model.readyState === WebSocket.OPEN && model.send(JSON.stringify(message));
  const ask = (message) => caller.readyState === WebSocket.OPEN && caller.send(JSON.stringify(message));
  /** The answer that is being heard: its item, when its first sound was sent, and how long it is. */
  let said;

  const heard = {
    'session.created': () =>
      tell({
        type: 'session.update',
        session: {
          type: 'realtime',
          instructions: INSTRUCTIONS,
          output_modalities: ['audio'],
          audio: {
            input: { format: { type: 'audio/pcm', rate: RATE }, turn_detection: { type: 'server_vad' } },
            output: { format: { type: 'audio/pcm', rate: RATE }, voice: VOICE },
          },
          tools: [{ type: 'function', name: 'hang_up', description: 'Ends the call.', parameters: { type: 'object', properties: {} } }],
        },
      }),
    'session.updated': () => tell({ type: 'response.create' }), // The bot speaks first.
    'response.output_audio.delta': ({ item_id, content_index, delta }) => {
      const audio = Buffer.from(delta, 'base64');
      if (said?.item_id !== item_id) said = { item_id, content_index, from: Date.now(), ms: 0 };
      said.ms += audio.length / 2 / (RATE / 1000);
      if (caller.readyState === WebSocket.OPEN) caller.send(audio);
    },
    'input_audio_buffer.speech_started': () => {
      if (said === undefined) return;
      // The caller interrupts: what is still buffered is not heard any more, and the model is told how far it came.
      ask({ type: 'clear' });
      const audio_end_ms = Math.round(Math.min(said.ms, Date.now() - said.from));
      tell({ type: 'conversation.item.truncate', item_id: said.item_id, content_index: said.content_index, audio_end_ms });
      said = undefined;
      console.log('interrupted');
    },
    'response.function_call_arguments.done': ({ name }) => {
      // The mark comes back when all that was said before it has been heard.
      if (name === 'hang_up') ask({ type: 'mark', name: 'goodbye' });
    },
    error: ({ error }) => console.log('model', error?.message),
  };
  model.on('message', (text) => {
    const message = JSON.parse(text);
    heard[message.type]?.(message);
  });
  caller.on('message', (data, isBinary) => {
    if (isBinary) return tell({ type: 'input_audio_buffer.append', audio: data.toString('base64') });
    const message = JSON.parse(data);
    if (message.type === 'mark_played' && message.name === 'goodbye') ask({ type: 'hangup' });
    if (message.type === 'error') console.log('platform', message.message);
  });
  caller.on('close', () => model.close());
  model.on('close', () => caller.close());
  model.on('error', (error) => console.log('model', error.message));
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
new WebSocketServer({ server, handleProtocols: () => 'sidetone.v1' }).on('connection', converse);
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
