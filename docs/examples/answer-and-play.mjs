// Answers every call and plays a short melody. Plain Node: APP=app_… KEY=… SECRET=… node answer-and-play.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';

const { PORT = '9000' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

const command = (path, body = {}) => call('POST', `/v1/sessions/${path}`, body);

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  if (request.url === '/melody.wav') return response.writeHead(200, { 'content-type': 'audio/wav' }).end(melody());
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

/** C, E, G, C: a third of a second each, 8 kHz 16-bit mono WAV. */
function melody() {
  const rate = 8000;
  const samples = [262, 330, 392, 523].flatMap((hz) =>
    Array.from({ length: rate / 3 }, (_, at) => Math.round(9000 * Math.sin((2 * Math.PI * hz * at) / rate) * Math.exp((-3 * at) / rate))),
  );
  const wav = Buffer.alloc(44 + samples.length * 2);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(samples.length * 2, 40);
  for (const [at, sample] of samples.entries()) wav.writeInt16LE(sample, 44 + at * 2);
  return wav;
}
