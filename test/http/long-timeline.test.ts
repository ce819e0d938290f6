/** The timeline of a call in which very much has happened, beside the requests of others. */
import { expect, test } from 'bun:test';
import type { LoggedEvent } from '../../src/database/event/events.ts';
import { timelineEntries } from '../../src/http/operator/timeline.ts';
import { longResponse } from '../../src/http/response.ts';
import { LIST_TURN_ITEMS } from '../../src/limits.ts';

const event = (step: number): LoggedEvent => ({
  eventId: step,
  webhookId: `msg_${step}`,
  appUuid: 'app',
  name: 'playback.ended',
  sessionUuid: undefined,
  at: step,
  status: 'delivered',
  body: JSON.stringify({ step }),
  attempts: [{ at: step + 0.5, status: 204, error: '', duration_ms: 1, response: '', retry_at: null }],
});

/** Waits for `work`, and counts the turns of the event loop that others had meanwhile. */
async function turnsOf<T>(work: Promise<T>): Promise<{ readonly made: T; readonly turns: number }> {
  let isMade = false;
  const made = work.then((value) => {
    isMade = true;
    return value;
  });
  let turns = 0;
  for (; !isMade; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  return { made: await made, turns };
}

test('A long timeline is made and written some entries in a turn, so that others have theirs in between', async () => {
  const count = 8 * LIST_TURN_ITEMS;
  const events = Array.from({ length: count }, (_, step) => event(step));
  const entries = await turnsOf(timelineEntries([], events, []));
  // Each event has two entries, which are put into order and then dated.
  expect(entries.turns).toBeGreaterThanOrEqual(3 * 7);
  const response = await turnsOf(longResponse({ status: 200, body: { entries: entries.made } }, ''));
  expect(response.turns).toBeGreaterThanOrEqual(2 * 7);
  expect(Number(response.made.headers.get('content-length'))).toBeGreaterThan(0);
  const { entries: told } = await response.made.json();
  expect(told).toEqual(entries.made);
  expect(entries.made.map((entry) => (entry.kind === 'event' ? entry.body : entry.webhook_id))).toEqual(
    events.flatMap(({ webhookId }, step) => [{ step }, webhookId]),
  );
});
