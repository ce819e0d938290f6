/**
 * The bots of docs/examples, as they are, on Node, with a caller over a loopback trunk. The far ends of the bots are
 * stand-ins that speak the protocols of OpenAI's Realtime API and of Pipecat's TwilioFrameSerializer.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Example } from '../support/example.ts';
import { CALLED, CALLER, LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import type { Receiver } from '../support/receiver.ts';

const RATE = 24_000;

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
let receiver: Receiver;

beforeAll(async () => {
  calls = await LoopbackCalls.start();
  ({ platform, caller, called, receiver } = calls);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
}, 20_000);

const dial = () => calls.dial();
const press = (session: string, keys: string) => calls.press(session, keys);

const hears = (session: string, digit: string) =>
  receiver.until(
    () => receiver.of(session).some(({ event, body }) => event === 'dtmf.received' && body.digit === digit),
    `the key ${digit}`,
  );

type Message = ReturnType<typeof JSON.parse>;

/** A WebSocket server that answers each text message, and whose messages can be waited for. */
function standIn(answer: (message: Message, say: (message: object) => void) => void, greeting?: object) {
  const told: Message[] = [];
  const requests: Request[] = [];
  const waiting: (() => void)[] = [];
  const sockets: Bun.ServerWebSocket<undefined>[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, self) => {
      requests.push(request);
      return self.upgrade(request, { data: undefined }) ? undefined : new Response(null, { status: 400 });
    },
    websocket: {
      open(socket) {
        sockets.push(socket);
        if (greeting !== undefined) socket.send(JSON.stringify(greeting));
      },
      message(socket, text) {
        const message = JSON.parse(String(text));
        told.push(message);
        answer(message, (each) => void socket.send(JSON.stringify(each)));
        for (const look of waiting.splice(0)) look();
      },
    },
  });
  return {
    url: `ws://127.0.0.1:${server.port}`,
    requests,
    say: (message: object) => void sockets.at(-1)?.send(JSON.stringify(message)),
    close: () => sockets.at(-1)?.close(),
    async hears(ready: (message: Message) => boolean, what: string): Promise<Message> {
      const { promise, resolve, reject } = Promise.withResolvers<Message>();
      const timer = setTimeout(() => reject(new Error(`waited for ${what}`)), 15_000);
      const look = () => {
        const found = told.find(ready);
        if (found === undefined) waiting.push(look);
        else resolve(found);
      };
      look();
      return await promise.finally(() => clearTimeout(timer));
    },
    stop: () => server.stop(true),
  };
}

/** A key's tones, then silence: PCM16 at 24 kHz in base64, as the model sends it. */
function keySound(low: number, high: number, ms: number): string {
  const samples = Int16Array.from({ length: (RATE * ms) / 1000 }, (_, at) => {
    const time = (2 * Math.PI * at) / RATE;
    return at < RATE / 5 ? 6000 * (Math.sin(low * time) + Math.sin(high * time)) : 0;
  });
  return Buffer.from(samples.buffer).toString('base64');
}

test('openai-realtime-bot.mjs lets the model speak first, be interrupted, and hang up.', async () => {
  let isTalking = false;
  const model = standIn(
    (message, say) => {
      switch (message.type) {
        case 'session.update':
          say({ type: 'session.updated', session: message.session });
          return;
        case 'response.create':
          // Ten seconds at once: the model is faster than speech.
          say({ type: 'response.created', response: { id: 'resp_1' } });
          // The key stands in it several times: on a busy machine a gap may fall on one of them.
          for (let n = 0; n < 20; n++) {
            const delta = n < 8 ? keySound(770, 1336, 500) : keySound(0, 0, 500);
            say({ type: 'response.output_audio.delta', item_id: 'item_1', content_index: 0, delta });
          }
          say({ type: 'response.done', response: { id: 'resp_1', status: 'completed' } });
          return;
        case 'input_audio_buffer.append': {
          // Its voice activity detection: any sound.
          const bytes = Buffer.from(message.audio, 'base64');
          let peak = 0;
          for (let at = 0; at + 1 < bytes.length; at += 2) peak = Math.max(peak, Math.abs(bytes.readInt16LE(at)));
          if (peak < 1000 || isTalking) return;
          isTalking = true;
          say({ type: 'input_audio_buffer.speech_started', audio_start_ms: 0, item_id: 'item_2' });
        }
      }
    },
    { type: 'session.created', session: { id: 'sess_1' } },
  );
  using example = await Example.start('openai-realtime-bot.mjs', platform, called, {
    OPENAI_URL: `${model.url}/v1/realtime`,
    OPENAI_API_KEY: 'sk-test',
  });
  const session = await dial();
  const update = await model.hears(({ type }) => type === 'session.update', 'session.update');
  expect(update.session).toMatchObject({
    type: 'realtime',
    output_modalities: ['audio'],
    audio: {
      input: { format: { type: 'audio/pcm', rate: RATE } },
      output: { format: { type: 'audio/pcm', rate: RATE } },
    },
  });
  expect([model.requests[0]?.headers.get('authorization'), new URL(model.requests[0]?.url ?? '').search]).toEqual([
    'Bearer sk-test',
    '?model=gpt-realtime',
  ]);
  await hears(session, '5');
  await press(session, '8');
  const cut = await model.hears(({ type }) => type === 'conversation.item.truncate', 'conversation.item.truncate');
  expect(cut).toMatchObject({ item_id: 'item_1', content_index: 0 });
  expect(cut.audio_end_ms).toBeGreaterThan(100);
  expect(cut.audio_end_ms).toBeLessThan(9_900);
  await example.prints(/interrupted/);
  // The goodbye is heard to its end, and then the call is over: the rest of the ten seconds is not waited for.
  for (let n = 0; n < 3; n++)
    model.say({ type: 'response.output_audio.delta', item_id: 'item_3', content_index: 0, delta: keySound(852, 1477, 500) });
  model.say({ type: 'response.function_call_arguments.done', name: 'hang_up', call_id: 'call_1', arguments: '{}' });
  await receiver.event('session.ended', session);
  const keys = receiver.of(session).flatMap(({ event, body }) => (event === 'dtmf.received' ? [body.digit] : []));
  expect([...new Set(keys)]).toEqual(['5', '9']);
  await example.prints(/room\.deleted/);
  await model.stop();
}, 40_000);

test('pipecat-bot.mjs connects a caller with a bot that speaks as Pipecat does.', async () => {
  let streamSid = '';
  let audio = 0;
  const bot = standIn((message, say) => {
    // Pipecat knows Twilio by a start with streamSid and callSid, among the first two messages.
    if (message.event === 'start') streamSid = message.start.streamSid;
    // Its serializer: no sequence number, no track, no mark.
    if (message.event === 'media') {
      audio += Buffer.from(message.media.payload, 'base64').length;
      say({ event: 'media', streamSid, media: { payload: message.media.payload } });
    }
  });
  using example = await Example.start('pipecat-bot.mjs', platform, called, { PIPECAT_URL: `${bot.url}/ws` });
  const session = await dial();
  const start = await bot.hears(({ event }) => event === 'start', 'start');
  expect(start.start).toMatchObject({
    streamSid: expect.stringMatching(/^MZ/),
    callSid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    customParameters: { from_number: CALLER, to_number: CALLED },
  });
  await press(session, '4');
  await hears(session, '4');
  expect(audio).toBeGreaterThan(8000);
  await platform.api(caller, 'POST', `/v1/sessions/${session}/dtmf/send`, { digits: '6' });
  await bot.hears((message) => message.event === 'dtmf' && message.dtmf.digit === '6', 'the key 6');
  // The caller interrupts: ten seconds of sound are thrown away, and the next key is heard at once.
  const long = Buffer.alloc(80_000, 0x7f).toString('base64');
  bot.say({ event: 'media', streamSid, media: { payload: long } });
  bot.say({ event: 'clear', streamSid });
  const asked = performance.now();
  await press(session, '3');
  await hears(session, '3');
  expect(performance.now() - asked).toBeLessThan(9_000);
  // An EndFrame closes the connection of the bot, and so the call.
  bot.close();
  await receiver.event('session.ended', session);
  await example.prints(/room\.deleted/);
  await bot.stop();
}, 40_000);

test('pipecat-bot.mjs hangs up when it gets no bot, so that nobody waits in silence.', async () => {
  using example = await Example.start('pipecat-bot.mjs', platform, called, { PIPECAT_URL: 'http://127.0.0.1:7860/ws' });
  const session = await dial();
  await example.prints(/:connectWebsocket 400/);
  const { body } = await receiver.event('session.ended', session);
  expect(body).toMatchObject({ answered: true, hangup_by: 'callee' });
  await example.prints(/room\.deleted/);
}, 40_000);
