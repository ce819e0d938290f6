/** The identifiers that the platform makes (contract, Identifiers). */
import { expect, test } from 'bun:test';
import { isUuid, newSessionUuid, newWebhookId } from '../src/id.ts';

const MADE = 20_000;

test('a Session and an event have a UUID of the form of version 4, and no two the same', () => {
  const sessions = Array.from({ length: MADE }, newSessionUuid);
  const events = Array.from({ length: MADE }, newWebhookId);
  expect(sessions.every(isUuid)).toBe(true);
  expect(events.every((id) => id.startsWith('evt_') && isUuid(id.slice('evt_'.length)))).toBe(true);
  const all = [...sessions, ...events.map((id) => id.slice('evt_'.length))];
  expect(new Set(all).size).toBe(all.length);
  // Nothing but the time and the version is the same in all.
  const ends = sessions.map((uuid) => uuid.slice('00000000-0000-4'.length));
  expect(new Set(ends).size).toBe(ends.length);
});

test('one that is made later sorts behind', async () => {
  const before = [newSessionUuid(), newWebhookId()];
  const from = Date.now();
  while (Date.now() === from) await Promise.resolve();
  const after = [newSessionUuid(), newWebhookId()];
  expect([...after, ...before].sort()).toEqual([before[0] ?? '', after[0] ?? '', before[1] ?? '', after[1] ?? '']);
  const made = Number.parseInt((after[0] ?? '').replace('-', '').slice(0, 12), 16);
  expect(made).toBeGreaterThan(from);
  expect(made).toBeLessThanOrEqual(Date.now());
});
