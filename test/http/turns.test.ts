/** Many requests at once: how many are begun in one turn of the event loop, and whose turn it is next. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { HTTP_TURN_REQUESTS } from '../../src/limits.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
/** What waits for the end of the turn. */
let afterTurn: (() => void)[] = [];

/** Ends the turn, and resolves when all is done that can be before the next one ends. */
async function endTurn(): Promise<void> {
  const waiting = afterTurn;
  afterTurn = [];
  for (const go of waiting) go();
  await new Promise((resolve) => setTimeout(resolve));
}

beforeAll(async () => {
  platform = await openPlatform({ turn: () => new Promise((resolve) => afterTurn.push(resolve)) });
  await endTurn();
}, 60_000);
afterAll(() => platform.close());

/** Asks for what costs nothing, as an application that has this key. Returns who was answered so far. */
function ask(count: number, key: string, answered: string[], signal?: AbortSignal): void {
  const headers = { authorization: `Bearer ${key}` };
  const init = { headers, ...(signal === undefined ? {} : { signal }) };
  for (let n = 0; n < count; n += 1)
    void platform.app
      .fetch(new Request('http://127.0.0.1/healthz', init))
      .then(({ status }) => answered.push(status === 200 ? key : `${key} ${status}`));
}

test('Of many requests that come at once so many are begun in a turn of the event loop, and the others in those after it', async () => {
  const answered: string[] = [];
  ask(HTTP_TURN_REQUESTS * 3 - 1, 'busy', answered);
  const after: number[] = [];
  for (let turns = 0; turns < 4; turns += 1) {
    await endTurn();
    after.push(answered.length);
  }
  expect(after).toEqual([2, 3, 3, 3].map((turns) => Math.min(turns * HTTP_TURN_REQUESTS, HTTP_TURN_REQUESTS * 3 - 1)));
});

test('An application that asks for little waits for a turn, and not for what another has asked for before', async () => {
  const answered: string[] = [];
  ask(HTTP_TURN_REQUESTS * 5, 'busy', answered);
  ask(1, 'quiet', answered);
  await endTurn();
  expect([answered.length, answered.includes('quiet')]).toEqual([HTTP_TURN_REQUESTS * 2, true]);
  for (let turns = 0; turns < 5; turns += 1) await endTurn();
  expect(answered.length).toBe(HTTP_TURN_REQUESTS * 5 + 1);
});

test('What waits for its turn is not worked on where the client has gone meanwhile, and takes no turn from others', async () => {
  const answered: string[] = [];
  const client = new AbortController();
  ask(HTTP_TURN_REQUESTS, 'busy', answered);
  ask(HTTP_TURN_REQUESTS * 3, 'gone', answered, client.signal);
  ask(HTTP_TURN_REQUESTS, 'quiet', answered);
  client.abort();
  await endTurn();
  expect(answered.filter((each) => each === 'quiet').length).toBe(HTTP_TURN_REQUESTS);
  await endTurn();
  expect(answered.filter((each) => each === 'gone 400').length).toBe(HTTP_TURN_REQUESTS * 3);
  expect(answered).not.toContain('gone');
  await endTurn();
});
