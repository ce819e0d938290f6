// A bot that says back what it hears: each call gets a Room, and a WebSocket of this program joins it.
// Node with the package ws (npm install ws): APP=app_… KEY=… node echo-bot.mjs
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const { APP, KEY, SIDETONE_URL = 'http://127.0.0.1:8080', PORT = '9000' } = process.env;
if (!APP || !KEY) throw new Error('set APP and KEY: `bin/sidetone apps create NAME` prints both');

const FORMAT = { encoding: 'pcm_s16le', sample_rate: 16_000 };

const call = async (method, path, body) => {
  const response = await fetch(SIDETONE_URL + path, {
    method,
    headers: { authorization: `Bearer ${APP}:${KEY}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) console.log(path, response.status, answer);
  return answer;
};

/** The Room of each call and of each bot that is up, and the other of the two: who is left alone is hung up. */
const bots = new Map();

const steps = {
  'session.created': (event) => call('POST', `/v1/sessions/${event.session_uuid}/answer`, {}),
  'session.answered': async (event) => {
    const { room_id } = await call('POST', '/api/v1/rooms', {});
    await call('POST', `/api/v1/rooms/${room_id}/members`, { session_uuid: event.session_uuid });
    const bot = await call('POST', '/v1/sessions:connectWebsocket', {
      websocket: { url: `ws://127.0.0.1:${server.address().port}/` },
      media_format: { from_session: FORMAT, to_session: FORMAT },
      room_id,
    });
    bots.set(event.session_uuid, { room_id, other: bot.session_uuid });
    bots.set(bot.session_uuid, { room_id, other: event.session_uuid });
  },
  'session.ended': async (event) => {
    const { room_id, other } = bots.get(event.session_uuid) ?? {};
    for (const each of [event.session_uuid, other]) bots.delete(each);
    if (other) await call('DELETE', `/v1/sessions/${other}`);
    if (room_id) await call('DELETE', `/api/v1/rooms/${room_id}`);
  },
};

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  if (request.method !== 'POST') return response.writeHead(405).end(); // A browser, or `bin/sidetone doctor`.
  let text = '';
  for await (const chunk of request) text += chunk;
  response.writeHead(204).end(); // 2xx at once: the next event of this call is sent when this one is settled.
  const event = JSON.parse(text);
  console.log(event.event, event.session_uuid, event.hangup_cause ?? '');
  await steps[event.event]?.(event);
});

// Each binary message is 20 ms of what the caller says. A bot of yours would think here before it answers.
new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (audio) => socket.send(audio)));

server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
