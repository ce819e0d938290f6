/** Sources of a Room's playback that fail on the real platform (interface, Room events). */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { createRoom } from '../support/room-call.ts';
import { toneWav } from '../support/rtp-peer.ts';

const receiver = new Receiver();
let platform: Platform;
let app: Credentials;
/** A WAV of ten seconds of which only the head comes, or the first second; the connection stays open. */
const whole = toneWav(400, 10);
const source = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 60,
  fetch: (request) => {
    const sent = whole.subarray(0, request.url.endsWith('/head') ? 44 : 44 + 16_000);
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(sent) });
    return new Response(body, { headers: { 'content-type': 'audio/wav' } });
  },
});

beforeAll(async () => {
  platform = await Platform.start();
  app = await platform.application(receiver.url, '+15550078');
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await source.stop(true);
});

test('a source that stops before its first sound is a timeout of the start, and one that stops later an error', async () => {
  const failed = async (path: string) => {
    const roomId = await createRoom({ platform, receiver, app });
    const play = { type: 'files', urls: [`http://127.0.0.1:${source.port}/${path}`] };
    const { status } = await platform.api(app, 'POST', `/api/v1/rooms/${roomId}/playback/play`, play);
    const event = () => receiver.events.find((each) => each.event === 'room.playback.failed' && each.body.room_id === roomId);
    await receiver.until(() => event() !== undefined, 'the failure');
    const room = await platform.api(app, 'GET', `/api/v1/rooms/${roomId}`);
    return [status, event()?.body.error, room.body.playback_status];
  };
  expect(await Promise.all([failed('head'), failed('second')])).toEqual([
    [202, 'playback_timeout', 'stopped'],
    [202, 'playback_error', 'stopped'],
  ]);
}, 60_000);
