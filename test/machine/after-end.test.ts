import { expect, test } from 'bun:test';
import { afterEnd } from '../../src/machine/session/after-end.ts';

test('a terminal command to a Session that has ended is completed where the call was one that it would have stopped', () => {
  const answers = (type: string, answered: boolean) =>
    (['hangup', 'cancel', 'reject', 'answer'] as const).map((command) => afterEnd({ type, answered }, command));
  expect(answers('phone_out', false)).toEqual(['completed', 'completed', 'conflict', 'not_found']);
  expect(answers('phone_out', true)).toEqual(['completed', 'conflict', 'conflict', 'not_found']);
  for (const type of ['phone_in', 'sip', 'webrtc']) {
    expect(answers(type, false)).toEqual(['completed', 'conflict', 'completed', 'not_found']);
    expect(answers(type, true)).toEqual(['completed', 'conflict', 'conflict', 'not_found']);
  }
  expect(answers('websocket', false)).toEqual(['completed', 'conflict', 'conflict', 'not_found']);
});
