// Answers every call, collects four keys, plays as many notes as the first key says, and hangs up.
// Plain Node: APP=app_… KEY=… SECRET=… node ivr.mjs
import { createServer } from 'node:http';
import { call, received } from './platform.mjs';
import { sendSound, tone } from './sound.mjs';

const { PORT = '9000' } = process.env;
const unset = ['APP', 'KEY', 'SECRET'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET`);
  process.exit(1);
}

const command = (method, path, body) => call(method, `/v1/sessions/${path}`, body);

// What to do at each event. Nothing is kept here: a restart of this program in the middle of a call does no harm.
const steps = {
  'session.created': (event) => command('POST', `${event.session_uuid}/answer`, {}),
  'session.answered': (event) =>
    command('POST', `${event.session_uuid}/dtmf/collect`, {
      prompt_files: [note(1)],
      min_digits: 4,
      max_digits: 4,
      first_digit_timeout_ms: 10_000,
    }),
  'digits.collected': (event) => {
    console.log('keys:', event.digits);
    const notes = Number(event.digits?.[0] ?? 0);
    if (notes === 0) return command('DELETE', event.session_uuid);
    return command('POST', `${event.session_uuid}/playback/play`, { type: 'files', urls: Array.from({ length: notes }, (_, at) => note(at + 1)) });
  },
  'playback.ended': (event) => command('DELETE', event.session_uuid),
};

// What fails, as when the platform is away, is told and does not end the program.
process.on('unhandledRejection', (error) => console.log('failed:', error.message, error.cause?.message ?? ''));

const server = createServer(async (request, response) => {
  const wanted = /^\/note\/(\d)\.wav$/.exec(request.url ?? '');
  // A note is higher with its number.
  if (wanted) return sendSound(request, response, tone(262 * 2 ** (Number(wanted[1]) / 6), 0.3));
  const event = await received(request, response);
  if (event === undefined) return;
  console.log(event.event, event.session_uuid, event.hangup_cause ?? '');
  await steps[event.event]?.(event);
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on ${here()}/`));

const here = () => `http://127.0.0.1:${server.address().port}`;
const note = (number) => `${here()}/note/${number}.wav`;
