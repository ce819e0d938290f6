/** The subprotocol `sidetone.v1` by itself. */
import { expect, test } from 'bun:test';
import { ControlledAudio } from '../../src/websocket/control.ts';
import type { DialectOptions } from '../../src/websocket/dialect.ts';
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
  bot.text('{"type":"pause"}');
  expect(bot.binary(new Uint8Array(2))).toBe(true);
  hasRoom = false;
  expect([bot.binary(new Uint8Array(2)), bot.binary(new Uint8Array(2))]).toEqual([false, false]);
  expect(pauses).toEqual([true, false]);
  expect(said).toEqual([{ type: 'error', message: expect.stringContaining('full') }]);
});

test('a message that is no order is answered with an error that says what would be one', () => {
  const { bot, said } = connected();
  for (const text of [
    'clear',
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
  expect(said).toEqual([object, known, known, known, name, name]);
});
