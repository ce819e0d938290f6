/**
 * Makes `docs/call.png` anew, the page of a call in the console that README.md shows: a caller hears a melody, presses
 * keys and is recorded, and a part of the recording is masked. `npm run picture` runs it.
 */
import { join } from 'node:path';
import { wav } from '../media/sound.ts';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { launchChromium } from './chromium.ts';

const CALLER = '+15550100';
const NUMBER = '+15550001';
const RATE = 8_000;
/** C, E, G, C, each half a second. */
const MELODY = wav(
  Float64Array.from({ length: 2 * RATE }, (_, at) => {
    const within = at % (RATE / 2);
    const hz = [262, 330, 392, 523][Math.floor((2 * at) / RATE)] ?? 0;
    return 0.4 * Math.sin((2 * Math.PI * hz * within) / RATE) * Math.exp((-4 * within) / RATE);
  }),
  RATE,
);

const receiver = new Receiver();
const platform = await Platform.start();
const browser = await launchChromium();
const files = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(MELODY) });
try {
  const app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', `/apps/${app.appUuid}/caller-ids/${encodeURIComponent(CALLER)}`);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  platform.answerEveryCall(app, receiver);
  const { body: out } = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: CALLER, to: NUMBER, trunk: 'loop' });
  const { session_uuid: caller } = out;
  await receiver.event('session.answered', String(caller));
  const called = receiver.events.find(({ body }) => body.type === 'phone_in')?.body.session_uuid;
  const command = async (path: string, body?: object) => {
    const { status, body: answer } = await platform.api(app, 'POST', `/v1/sessions/${called}${path}`, body);
    if (status !== 202) throw new Error(`${path} was answered ${status}`);
    return answer;
  };
  const { recording_uuid: recording } = await command('/recordings', { direction: 'both', channels: 'mono', include_gaps: true });
  await command('/playback/play', { type: 'files', urls: [`http://127.0.0.1:${files.port}/melody.wav`], loop: 4 });
  await receiver.event('playback.ended', String(called));
  await command('/dtmf/collect', { max_digits: 4 });
  await platform.api(app, 'POST', `/v1/sessions/${caller}/dtmf/send`, { digits: '2580', gap_ms: 300 });
  await receiver.event('digits.collected', String(called));
  await command(`/recordings/${recording}/mask`);
  await Bun.sleep(4_000);
  await command(`/recordings/${recording}/unmask`);
  await command('/playback/play', { type: 'files', urls: [`http://127.0.0.1:${files.port}/melody.wav`], loop: 4 });
  const completed = () => receiver.events.filter(({ event }) => event === 'playback.ended').length;
  await receiver.until(() => completed() === 2, 'the end of the second playback');
  await platform.api(app, 'DELETE', `/v1/sessions/${called}`);
  await receiver.event('recording.ended', String(called));
  const page = await browser.newPage({ viewport: { width: 1280, height: 1_000 }, colorScheme: 'light' });
  const { body: login } = await platform.operator('POST', '/console-logins', {});
  await page.goto(String(login.url));
  await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
  await page.goto(`${platform.url}/console/calls/${called}`);
  await page.getByText('Loading …').first().waitFor({ state: 'detached' });
  const entries = page.getByRole('list', { name: 'What happened' }).getByRole('button');
  await entries.filter({ hasText: 'digits.collected' }).first().click();
  await page.evaluate(() => scrollTo(0, 0));
  await Bun.sleep(1_500);
  await page.screenshot({ path: join(import.meta.dir, '../../docs/call.png') });
} finally {
  files.stop(true);
  await browser.close();
  await platform.stop();
  await receiver.stop();
}
