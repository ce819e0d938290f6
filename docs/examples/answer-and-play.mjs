// Answers every call and plays a short melody. Plain Node: APP=app_… KEY=… SECRET=… node answer-and-play.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, tone } from './sound.mjs';

const { PORT = '9000' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

/** C, E, G, C. */
const melody = [262, 330, 392, 523].flatMap((hz) => tone(hz, 1 / 3));

const command = (path, body = {}) => call('POST', `/v1/sessions/${path}`, body);

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  if (request.url === '/melody.wav') return sendSound(request, response, melody);
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid, event.hangup_cause ?? '');
  if (event.event === 'session.created') await command(`${event.session_uuid}/answer`);
  if (event.event === 'session.answered') {
    await command(`${event.session_uuid}/playback/play`, { type: 'files', urls: [`${here()}/melody.wav`] });
  }
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on ${here()}/`));
const here = () => `http://127.0.0.1:${server.address().port}`;
