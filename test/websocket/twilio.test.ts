/** Twilio's Media Streams messages by themselves, as a bot that was written for Twilio reads and writes them. */
import { expect, test } from 'bun:test';
import { JSON_MEMBERS_MAX } from '../../src/limits.ts';
import type { DialectOptions } from '../../src/websocket/dialect.ts';
import { TwilioMedia } from '../../src/websocket/twilio.ts';
import { boundBot } from './dialect-options.ts';

const SESSION = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const STREAM = 'MZ7c9e6679742540de944be07fc1f90ae7';

/** A connection of a bot, and all that is said to it. `more` are the parts that a test looks into. */
function connected(more: Partial<DialectOptions> = {}) {
  const { options, said } = boundBot();
  const bot = new TwilioMedia({
    ...options,
    sessionUuid: SESSION,
    appUuid: 'app',
    parameters: { name: 'value' },
    phoneSessionUuid: 'phone',
    ...more,
  });
  return { bot, said };
}

test('a message of more fields than any has is not read, since a megabyte of them takes 50 ms', () => {
  let cleared = 0;
  const { bot } = connected({ clear: () => void cleared++ });
  const having = (fields: number) => `{"event":"clear"${',"a":0'.repeat(fields)}}`;
  expect([bot.text(having(JSON_MEMBERS_MAX)), cleared]).toEqual([true, 1]);
  expect([bot.text(having(JSON_MEMBERS_MAX + 1)), cleared]).toEqual([true, 1]);
});

test('a call is told as Twilio tells one: connected, start, media, dtmf, mark and stop, numbered from 1', () => {
  const { bot, said } = connected();
  bot.start();
  bot.frame(new Uint8Array([0x7f, 0xff]));
  bot.frame(new Uint8Array([0xff]));
  bot.hear({ type: 'dtmf', session_uuid: 'phone', digit: '5', duration_ms: 100 });
  bot.hear({ type: 'member_joined', session_uuid: 'phone' });
  bot.played('greeting');
  bot.stop();
  expect(said).toEqual([
    { event: 'connected', protocol: 'Call', version: '1.0.0' },
    {
      event: 'start',
      sequenceNumber: '1',
      start: {
        accountSid: 'app',
        streamSid: STREAM,
        callSid: 'phone',
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: { name: 'value' },
      },
      streamSid: STREAM,
    },
    {
      event: 'media',
      sequenceNumber: '2',
      media: { track: 'inbound', chunk: '1', timestamp: '0', payload: 'f/8=' },
      streamSid: STREAM,
    },
    {
      event: 'media',
      sequenceNumber: '3',
      media: { track: 'inbound', chunk: '2', timestamp: '20', payload: '/w==' },
      streamSid: STREAM,
    },
    { event: 'dtmf', sequenceNumber: '4', dtmf: { track: 'inbound_track', digit: '5' }, streamSid: STREAM },
    { event: 'mark', sequenceNumber: '5', mark: { name: 'greeting' }, streamSid: STREAM },
    { event: 'stop', sequenceNumber: '6', stop: { accountSid: 'app', callSid: 'phone' }, streamSid: STREAM },
  ]);
});

test('a call without a phone Session has its own name', () => {
  const { bot, said } = connected({ phoneSessionUuid: undefined });
  bot.start();
  bot.stop();
  expect(said.slice(1)).toMatchObject([{ start: { callSid: SESSION } }, { stop: { callSid: SESSION } }]);
});

test('what a bot of Twilio says is obeyed, and what it would not say changes nothing', () => {
  const written: number[][] = [];
  const marks: string[] = [];
  let cleared = 0;
  const { bot, said } = connected({
    write: (bytes) => {
      written.push([...bytes]);
      return false;
    },
    mark: (name) => {
      marks.push(name);
      return name !== 'one too many';
    },
    clear: () => {
      cleared += 1;
    },
  });
  const say = (message: unknown) => bot.text(typeof message === 'string' ? message : JSON.stringify(message));
  expect(say({ event: 'media', streamSid: STREAM, media: { payload: 'f/8=' } })).toBe(false);
  for (const message of [
    { event: 'mark', mark: { name: 'greeting' } },
    { event: 'mark', mark: { name: 'one too many' } },
    { event: 'clear' },
    { event: 'mark', mark: { name: 'n'.repeat(257) } },
    { event: 'mark' },
    { event: 'media' },
    { event: 'hangup' },
    'no JSON',
  ])
    expect(say(message)).toBe(true);
  expect(bot.binary()).toBe(true);
  expect([written, marks, cleared]).toEqual([[[0x7f, 0xff]], ['greeting', 'one too many'], 1]);
  expect(said).toMatchObject([{ event: 'mark', mark: { name: 'one too many' } }]);
});
