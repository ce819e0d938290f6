/** What a call's timeline keeps of what the call hears and plays. */
import { describe, expect, test } from 'bun:test';
import { mediaEntry } from '../../src/call/session/history-entries.ts';
import { PAYMENT_QUIET_MS } from '../../src/limits.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { Command, SessionInput } from '../../src/machine/session/input.ts';
import { inbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';

const NOW = 1_000_000;
const CALL: SessionState = {
  ...inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000 }, NOW),
  phase: 'answered',
  answeredAt: NOW,
  deadlines: {},
};
const CARD: Command = {
  type: 'collect_payment',
  terms: {
    ...{ kind: 'card', reference: 'card_r', maxAttempts: 1, terminators: ['#'], acceptedBrands: CARD_BRANDS },
    ...{ cardBrand: undefined, retryUrls: [], firstDigitTimeoutMs: 2_000, interDigitTimeoutMs: 1_000, hasPrompt: false },
  },
  promptUrls: [],
  cardUuid: undefined,
};
const heard = (notice: MediaNotice) => mediaEntry({ type: 'leg.media', notice }, CALL, NOW);

describe('a key', () => {
  const keys: readonly (readonly [string, SessionInput])[] = [
    ['sip_info', { type: 'leg.digit', digit: '4', durationMs: 120.4 }],
    ['rfc4733', { type: 'leg.media', notice: { type: 'digit', digit: '4', durationMs: 120.4, method: 'rfc4733' } }],
    ['inband', { type: 'leg.media', notice: { type: 'digit', digit: '4', durationMs: 120.4, method: 'inband' } }],
  ];

  test.each(keys)('by %s has its value and its length, but neither while a card is collected nor right after', (method, key) => {
    const whole = { kind: 'media', what: 'digit', digit: '4', duration_ms: 120, method } as const;
    const secret = { kind: 'media', what: 'digit', method } as const;
    const collecting = step(CALL, { type: 'command', command: CARD, operationUuid: 'op' }, NOW).state;
    const over = step(collecting, { type: 'deadline' }, NOW + 2_000).state;
    expect([collecting.collection === undefined, over.collection === undefined]).toEqual([false, true]);
    expect(mediaEntry(key, CALL, NOW)).toEqual(whole);
    expect(mediaEntry(key, collecting, NOW)).toEqual(secret);
    // It counts when it went down.
    const quietUntil = NOW + 2_000 + PAYMENT_QUIET_MS;
    expect(mediaEntry(key, over, quietUntil + 120)).toEqual(secret);
    expect(mediaEntry(key, over, quietUntil + 121)).toEqual(whole);
  });
});

test('A prompt is told under its operation, and what is no sound of the call is not told', () => {
  const about = { kind: 'media', operation_uuid: 'op' } as const;
  expect(heard({ type: 'playback.completed', operationUuid: 'op/2' })).toEqual({ ...about, what: 'playback_completed' });
  const failed: MediaNotice = { type: 'playback.failed', operationUuid: 'op/2', reason: 'media_unavailable' };
  expect(heard(failed)).toEqual({ ...about, what: 'playback_failed', reason: 'media_unavailable' });
  expect(mediaEntry({ type: 'deadline' }, CALL, NOW)).toBeUndefined();
});
