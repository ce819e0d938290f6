/** Long lists of some applications, beside the requests of others. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import { LIST_PIECE_BYTES, LIST_TURN_ITEMS, LISTS_AT_ONCE, LISTS_OF_APP_WAITING_MAX } from '../../src/limits.ts';
import type { MessageState } from '../../src/machine/message/message.ts';
import { openPlatform, type Platform } from './platform.ts';

const message = (appUuid: string): MessageState => ({
  messageUuid: newUuid(),
  appUuid,
  operationUuid: newUuid(),
  from: '+15550100',
  to: '+15550101',
  text: 'x'.repeat(LIST_PIECE_BYTES),
  encoding: 'gsm7',
  segments: 1,
  status: 'delivered',
  errorCode: '',
  errorMessage: '',
  createdAt: 0,
  updatedAt: 0,
  sentAt: 0,
  deliveredAt: 0,
  parts: [],
  stage: 'settled',
  dueAt: 0,
  attempts: 0,
  traceparent: '',
});

let platform: Platform;
let apps: readonly AppSecrets[];
/** The looks into the database that are under way, by application. */
const looks: { readonly app: string; readonly answer: (messages?: readonly MessageState[]) => void }[] = [];
let began = Promise.withResolvers<void>();
/** Waits until as many are under way. */
async function underWay(count: number): Promise<void> {
  while (looks.length < count) await began.promise;
}

beforeAll(async () => {
  platform = await openPlatform({
    messages: {
      send: () => Promise.reject(new Error('unused')),
      get: async () => undefined,
      list(appUuid) {
        const { promise, resolve } = Promise.withResolvers<readonly MessageState[]>();
        looks.push({ app: appUuid, answer: (messages = [message(appUuid), message(appUuid)]) => resolve(messages) });
        began.resolve();
        began = Promise.withResolvers();
        return promise;
      },
    },
  });
  const made = Array.from({ length: 5 }, (_, at) => platform.testStore.store.apps.create({ name: String(at) }));
  apps = await Promise.all(made);
});
afterAll(() => platform.close());

const list = async ({ appUuid, apiKey }: AppSecrets, init: RequestInit = {}, path = '/v1/messages'): Promise<Response> =>
  platform.app.fetch(
    new Request(`http://127.0.0.1${path}`, { ...init, headers: { authorization: `Bearer ${appUuid}:${apiKey}` } }),
  );
/** A client that may go away. */
function leaving() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
const isOf = (app: AppSecrets | undefined) => looks.filter((look) => look.app === app?.appUuid).length;

test('An application has one list at a time until its last byte is read, and others have theirs meanwhile', async () => {
  const [greedy, quiet] = apps;
  if (greedy === undefined || quiet === undefined) throw new Error('no applications');
  const [first, second] = [list(greedy), list(greedy)];
  const other = list(quiet);
  await underWay(2);
  expect([isOf(greedy), isOf(quiet)]).toEqual([1, 1]);
  for (const look of looks.splice(0)) look.answer();
  expect(JSON.parse(await (await other).text()).messages).toHaveLength(2);
  const slow = await first;
  const again = list(quiet);
  await underWay(1);
  expect([isOf(greedy), isOf(quiet)]).toEqual([0, 1]);
  expect(JSON.parse(await slow.text()).messages).toHaveLength(2);
  await underWay(2);
  for (const look of looks.splice(0)) look.answer();
  await Promise.all([(await second).text(), (await again).text()]);
});

test('An application whose list is done while others wait still has one at a time', async () => {
  const [greedy] = apps;
  if (greedy === undefined) throw new Error('no application');
  const asked = [list(greedy), list(greedy)];
  await underWay(1);
  for (const look of looks.splice(0)) look.answer();
  await (await asked[0])?.text();
  // The second looks now. One that is asked for meanwhile waits for it.
  await underWay(1);
  const { signal, abort } = leaving();
  const third = list(greedy, { signal });
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(isOf(greedy)).toBe(1);
  abort();
  expect((await third).status).toBe(503);
  for (const look of looks.splice(0)) look.answer();
  await (await asked[1])?.text();
});

test('A reader that goes away gives its turn back, and HEAD takes none for longer than its answer', async () => {
  const [greedy] = apps;
  if (greedy === undefined) throw new Error('no application');
  const gone = new AbortController();
  for (const init of [{ signal: gone.signal }, { method: 'HEAD' }, {}]) {
    const asked = list(greedy, init);
    await underWay(1);
    for (const look of looks.splice(0)) look.answer();
    const response = await asked;
    expect(response.status).toBe(200);
    if ('signal' in init) {
      gone.abort();
      await expect(response.text()).rejects.toThrow('not taken in time');
    } else await response.text();
  }
});

test('A long list is made and written some items in a turn, so that others have theirs in between', async () => {
  const [long] = apps;
  if (long === undefined) throw new Error('no application');
  for (const count of [0, 1, LIST_TURN_ITEMS, 8 * LIST_TURN_ITEMS]) {
    const messages = Array.from({ length: count }, (_, at) => ({ ...message(''), text: `${at}` }));
    const asked = list(long);
    await underWay(1);
    for (const look of looks.splice(0)) look.answer(messages);
    let turns = 0;
    let isAnswered = false;
    const answered = asked.then((response) => {
      isAnswered = true;
      return response;
    });
    while (!isAnswered) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    const body: { readonly messages: readonly { readonly text: string }[] } = JSON.parse(await (await answered).text());
    expect(body.messages.map(({ text }) => text)).toEqual(messages.map(({ text }) => text));
    // Each part of the list has two turns: one in which its bodies are made, and one in which they are written.
    expect(turns).toBeGreaterThanOrEqual(2 * (Math.ceil(count / LIST_TURN_ITEMS) - 1));
  }
});

test('A reader that leaves while its list is being written gives its turn back', async () => {
  const [leaver] = apps;
  if (leaver === undefined) throw new Error('no application');
  const { signal, abort } = leaving();
  const asked = list(leaver, { signal });
  await underWay(1);
  for (const look of looks.splice(0))
    look.answer(Array.from({ length: 4 * LIST_TURN_ITEMS }, () => ({ ...message(''), text: 'x' })));
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  abort();
  await asked;
  const next = list(leaver);
  await underWay(1);
  for (const look of looks.splice(0)) look.answer();
  expect((await (await next).text()).length).toBeGreaterThan(LIST_PIECE_BYTES);
});

test('So many applications look at once, and one with too many lists waiting is told to come again', async () => {
  const asked = apps.map((app) => list(app));
  await underWay(LISTS_AT_ONCE);
  const [greedy] = apps;
  if (greedy === undefined) throw new Error('no application');
  const leave = new AbortController();
  const { signal } = leave;
  // Each kind of list has a bucket of 40 tokens.
  const paths = Array.from({ length: LISTS_OF_APP_WAITING_MAX }, (_, at) => (at < 30 ? '/v1/messages' : '/v1/sessions'));
  const waiting = paths.map((path) => list(greedy, { signal }, path));
  const refused = await list(greedy, {}, '/v1/sessions');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(looks).toHaveLength(LISTS_AT_ONCE);
  leave.abort();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 503));
  for (let answered = 0; answered < apps.length; ) {
    await underWay(1);
    for (const look of looks.splice(0)) {
      look.answer();
      answered++;
    }
  }
  for (const response of await Promise.all(asked)) await response.text();
});
