/** When the audio of a far end is listened to for tones. */
import { expect, test } from 'bun:test';
import { SIP_LEG_EVENT_KEYS } from '../../src/limits.ts';
import { ToneListening } from '../../src/media/leg/tone-listening.ts';

/** A listener, and whether it was told to listen since it was last asked. */
function observed() {
  const told: boolean[] = [];
  return { tones: new ToneListening((on) => told.push(on)), told: () => told.splice(0) };
}

test('a far end without telephone-events is listened to', () => {
  const { tones, told } = observed();
  tones.agreed(false);
  expect(told()).toEqual([true]);
  for (let keys = 0; keys <= SIP_LEG_EVENT_KEYS; keys++) tones.heard('inband');
  expect(told()).toEqual([]);
});

test('one with telephone-events is listened to until it has sent its first keys that way', () => {
  const { tones, told } = observed();
  tones.agreed(true);
  for (let keys = 1; keys < SIP_LEG_EVENT_KEYS; keys++) tones.heard('rfc4733');
  expect(told()).toEqual([true]);
  tones.heard('rfc4733');
  expect(told()).toEqual([false]);
});

test('a secure collection listens in any case, also one that began before the stream was agreed on', () => {
  const { tones, told } = observed();
  tones.secure(true);
  expect(told()).toEqual([]);
  tones.agreed(true);
  for (let keys = 0; keys < SIP_LEG_EVENT_KEYS; keys++) tones.heard('rfc4733');
  expect(told()).toEqual([true]);
  tones.secure(false);
  expect(told()).toEqual([false]);
});
