/** What the stream of a call begins with where the call goes on from another process. */
import { expect, test } from 'bun:test';
import { streamAfter } from '../../src/media/leg/packet-numbers.ts';
import fc from '../support/fast-check.ts';

const PCMU = { ptimeMs: 20, codec: 'PCMU' } as const;

test('A stream begins at random in the lower half of the numbers: its roll-over is far.', () => {
  const begun = Array.from({ length: 200 }, () => streamAfter(undefined, PCMU, 5));
  expect(Math.max(...begun.map(({ sequence }) => sequence))).toBeLessThan(32_768);
  expect(new Set(begun.map(({ sequence }) => sequence)).size).toBeGreaterThan(100);
  expect(new Set(begun.map(({ timestamp }) => timestamp)).size).toBeGreaterThan(100);
  expect(begun[0]).toMatchObject({ at: 5, ptimeMs: 20, clockHz: 8_000 });
});

test('One that goes on is numbered higher than all that was sent before, by little, also over many hand-overs.', () => {
  const ptimeMs = fc.constantFrom(10, 20, 30, 40, 60);
  const hours = fc.integer({ min: 0, max: 48 * 3_600_000 });
  fc.assert(
    fc.property(
      ptimeMs,
      fc.array(hours, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 0, max: 200 }),
      (ptime, lives, more) => {
        const agreed = { ptimeMs: ptime, codec: 'PCMU' } as const;
        let now = 1_700_000_000_000;
        let stream = streamAfter(undefined, agreed, now);
        for (const life of lives) {
          now += life;
          // Keys that were sent took some packets more than audio did.
          const last = (stream.sequence + Math.floor(life / ptime) + more) % 65_536;
          const next = streamAfter(stream, agreed, now);
          const ahead = (next.sequence - last + 65_536) % 65_536;
          expect(ahead).toBeGreaterThan(0);
          expect(ahead).toBeLessThan(1_000);
          expect(next.sequence).toBeLessThanOrEqual(65_536 - 500);
          const elapsed = (next.timestamp - stream.timestamp + 2 ** 32) % 2 ** 32;
          expect(Math.abs(elapsed - ((life * 8) % 2 ** 32))).toBeLessThanOrEqual(1);
          stream = next;
        }
      },
    ),
  );
});

test('A clock that is behind that of the node before does not number packets lower.', () => {
  const before = { sequence: 1_000, timestamp: 100, at: 10_000, ptimeMs: 20, clockHz: 8_000 };
  expect(streamAfter(before, PCMU, 9_000)).toMatchObject({ sequence: 1_250, timestamp: 100 });
});
