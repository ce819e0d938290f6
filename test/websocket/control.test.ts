/** The subprotocol `sidetone.v1` by itself. */
import { expect, test } from 'bun:test';
import type { BotOrder } from '../../src/call/ports/leg.ts';
import { BOT_ORDERS_MAX, JSON_DEPTH_MAX } from '../../src/limits.ts';
import { ControlledAudio } from '../../src/websocket/control.ts';
import type { DialectOptions } from '../../src/websocket/dialect.ts';
import { settle } from '../support/virtual-clock.ts';
import { boundBot } from './dialect-options.ts';

/** A connection of a bot, and all that is said to it. `more` are the parts that a test looks into. */
function connected(more: Partial<DialectOptions> = {}) {
  const { options, said } = boundBot();
  const bot = new ControlledAudio({ ...options, ...more });
  return { bot, said };
}

test('a buffer that is paused and full plays on and says so, since no resume behind it would be read', () => {
  const pauses: boolean[] = [];
  let hasRoom = true;
  const { bot, said } = connected({ write: () => hasRoom, pause: (on) => void pauses.push(on) });
  hasRoom = false;
  expect([bot.binary(new Uint8Array(2)), pauses, said]).toEqual([false, [], []]);
  hasRoom = true;
  bot.text('{"type":"pause"}');
  expect(bot.binary(new Uint8Array(2))).toBe(true);
  expect(pauses).toEqual([true]);
  hasRoom = false;
  expect([bot.binary(new Uint8Array(2)), bot.binary(new Uint8Array(2))]).toEqual([false, false]);
  expect(pauses).toEqual([true, false]);
  expect(said).toEqual([{ type: 'error', message: expect.stringContaining('full') }]);
});

test('a message that is no order is answered with an error that says what would be one', () => {
  const { bot, said } = connected();
  const nested = (depth: number) => `{"type":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  for (const text of [
    'clear',
    '"clear"',
    'null',
    nested(JSON_DEPTH_MAX + 1),
    nested(JSON_DEPTH_MAX),
    '[]',
    '{"type":"hang_up"}',
    '{}',
    '{"type":"mark"}',
    `{"type":"mark","name":"${'n'.repeat(257)}"}`,
  ])
    expect(bot.text(text)).toBe(true);
  const object = { type: 'error', message: 'a text message must be a JSON object' };
  const known = { type: 'error', message: expect.stringContaining('clear, mark, pause, resume, send_dtmf, transfer or hangup') };
  const name = { type: 'error', message: 'mark: name must be a string of at most 256 characters' };
  expect(said).toEqual([object, object, object, object, known, known, known, known, name, name]);
});

test('the name of a mark has so many characters, whatever units of UTF-16 they take', () => {
  const { bot, said } = connected({ mark: () => false });
  for (const length of [256, 257]) bot.text(JSON.stringify({ type: 'mark', name: '😀'.repeat(length) }));
  expect(said).toEqual([
    { type: 'mark_played', name: '😀'.repeat(256) },
    { type: 'error', message: 'mark: name must be a string of at most 256 characters' },
  ]);
});

test('a bot is told what its audio is and for which call, then what happens', () => {
  const frames: number[][] = [];
  const { bot, said } = connected({
    ...{ parameters: { name: 'value' }, phoneSessionUuid: 'phone', toSession: { encoding: 'pcm_s16le', rateHz: 16_000 } },
    sendBinary: (bytes) => void frames.push([...bytes]),
  });
  bot.start();
  bot.frame(new Uint8Array([1, 2]));
  bot.played('greeting');
  const news = { type: 'member_joined', session_uuid: 'other' } as const;
  bot.hear(news);
  const from_session = { encoding: 'mulaw', sample_rate: 8000 };
  const to_session = { encoding: 'pcm_s16le', sample_rate: 16_000 };
  expect(said).toEqual([
    {
      ...{ type: 'start', session_uuid: 's', phone_session_uuid: 'phone' },
      ...{ media_format: { from_session, to_session }, parameters: { name: 'value' } },
    },
    { type: 'mark_played', name: 'greeting' },
    news,
  ]);
  expect(frames).toEqual([[1, 2]]);
  const alone = connected();
  alone.bot.start();
  expect(alone.said[0]).not.toHaveProperty('phone_session_uuid');
});

test('clear, pause, resume and marks reach the audio, and a mark too many counts as played at once', () => {
  const mark = (name: string) => ({ type: 'mark', name });
  const done: unknown[] = [];
  const { bot, said } = connected({
    clear: () => void done.push('clear'),
    pause: (on) => void done.push(on),
    mark: (name) => done.push(name) < 5,
  });
  for (const message of [{ type: 'clear' }, { type: 'pause' }, { type: 'resume' }, mark('fits'), mark('too many')])
    expect(bot.text(JSON.stringify(message))).toBe(true);
  expect(done).toEqual(['clear', true, false, 'fits', 'too many']);
  expect(said).toEqual([{ type: 'mark_played', name: 'too many' }]);
});

test('orders are obeyed, so many at once, and what is wrong with one or refuses it is told', async () => {
  const orders: BotOrder[] = [];
  let answer = Promise.withResolvers<string | undefined>();
  const { bot, said } = connected({
    order(order) {
      orders.push(order);
      return answer.promise;
    },
  });
  const say = (message: object) => expect(bot.text(JSON.stringify(message))).toBe(true);
  const errors = () => said.splice(0).map((each) => Object(each).message);
  for (const wrong of [{ type: 'transfer' }, { type: 'send_dtmf', digits: 5 }, { type: 'hangup', session_uuid: 1 }]) say(wrong);
  expect(errors()).toEqual([
    'transfer: to must be a string',
    'send_dtmf: digits must be a string',
    'hangup: session_uuid must be a string',
  ]);
  say({ type: 'hangup', session_uuid: 'other' });
  say({ type: 'transfer', to: '+15550001' });
  for (let more = 2; more < BOT_ORDERS_MAX; more++) say({ type: 'send_dtmf', digits: '1' });
  expect(orders.slice(0, 3)).toEqual([
    { type: 'hangup', sessionUuid: 'other' },
    { type: 'transfer', sessionUuid: undefined, to: '+15550001' },
    { type: 'send_dtmf', sessionUuid: undefined, digits: '1' },
  ]);
  say({ type: 'hangup' });
  expect([orders.length, errors()]).toEqual([BOT_ORDERS_MAX, ['hangup: too many orders at once']]);
  answer.resolve(undefined);
  await settle();
  expect(said).toEqual([]);
  answer = Promise.withResolvers();
  for (let again = 0; again <= BOT_ORDERS_MAX; again++) say({ type: 'hangup' });
  expect(errors()).toEqual(['hangup: too many orders at once']);
  answer.resolve('the Session has ended');
  await settle();
  expect(errors()).toEqual(new Array(BOT_ORDERS_MAX).fill('hangup: the Session has ended'));
});
