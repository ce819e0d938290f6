/** The subprotocol `sidetone.v1` by itself. */
import { expect, test } from 'bun:test';
import { ControlledAudio } from '../../src/websocket/control.ts';

test('a buffer that is paused and full plays on and says so, since no resume behind it would be read', () => {
  const said: unknown[] = [];
  const pauses: boolean[] = [];
  let hasRoom = true;
  const bot = new ControlledAudio({
    sessionUuid: 's',
    appUuid: 'a',
    fromSession: { encoding: 'mulaw', rateHz: 8000 },
    toSession: { encoding: 'mulaw', rateHz: 8000 },
    parameters: {},
    phoneSessionUuid: undefined,
    order: async () => undefined,
    send: (text) => void said.push(JSON.parse(text)),
    sendBinary: () => {},
    write: () => hasRoom,
    clear: () => {},
    pause: (on) => void pauses.push(on),
    mark: () => true,
  });
  bot.text('{"type":"pause"}');
  expect(bot.binary(new Uint8Array(2))).toBe(true);
  hasRoom = false;
  expect([bot.binary(new Uint8Array(2)), bot.binary(new Uint8Array(2))]).toEqual([false, false]);
  expect(pauses).toEqual([true, false]);
  expect(said).toEqual([{ type: 'error', message: expect.stringContaining('full') }]);
});
