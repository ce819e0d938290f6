/** The commands that are put into the timeline of a call: whose they are, and under which operation. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { CallHistory } from '../../src/history/call-history.ts';
import type { TimedEntry } from '../../src/history/entry.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { problems } from '../../src/problem.ts';
import type { AnsweredCommand } from '../../src/tracing/spans.ts';
import { openPlatform, type Platform } from './platform.ts';

const told: TimedEntry[] = [];
const traced: AnsweredCommand[] = [];
const history = new CallHistory({
  clock: systemClock(),
  log: silentLog,
  write: async () => {},
  onEntry: (_, entry) => told.push(entry),
  onClosed: () => {},
});
let platform: Platform;
let app: AppSecrets;
let session: string;
let isDraining = false;
beforeAll(async () => {
  platform = await openPlatform({ history, draining: () => isDraining, onCommand: (command) => void traced.push(command) });
  app = await platform.testStore.store.apps.create({ name: 'one' });
  session = platform.session(app, { state: 'answered' });
  history.begin(session, app.appUuid);
});
afterAll(() => platform.close());

test('A command of the operator is told with its operation, and so is one that is refused.', async () => {
  const path = `/operator/v1/apps/${app.appUuid}/sessions/${session}`;
  told.length = 0;
  const done = await platform.operator('POST', `${path}/hangup`, {});
  platform.sessions.next = problems.conflict('It is over');
  const refused = await platform.operator('POST', `${path}/play`, { url: 'https://media.example.com/a.wav' });
  expect([done.status, refused.status]).toEqual([202, 409]);
  expect(told).toMatchObject([
    { kind: 'command', status: 202, operation_uuid: done.body.operation_uuid },
    { kind: 'command', status: 409 },
  ]);
  expect(done.body.operation_uuid).toMatch(/^[0-9a-f-]{36}$/);
});

test('The operator tries calls of an application that there is, and those alone that are its own.', async () => {
  const other = await platform.testStore.store.apps.create({ name: 'other' });
  const [wav, none] = [{ url: 'https://media.example.com/a.wav' }, `app_${newUuid()}`];
  const statuses = async (appUuid: string, uuid = session) => {
    const path = `/operator/v1/apps/${appUuid}`;
    const trials = [
      [`${path}/sessions/${uuid}/hangup`, {}],
      [`${path}/sessions/${uuid}/play`, wav],
      [`${path}/dial`, { from: '+15550100', to: '+15550199' }],
      [`${path}/webrtc-tokens`, undefined],
    ] as const;
    return await Promise.all(trials.map(async ([of, body]) => (await platform.operator('POST', of, body)).status));
  };
  expect(await statuses(app.appUuid)).toEqual([202, 202, 202, 201]);
  expect(await statuses(other.appUuid)).toEqual([404, 404, 202, 201]);
  expect(await statuses(app.appUuid, 'call')).toEqual([404, 404, 202, 201]);
  for (const each of [none, 'app']) expect(await statuses(each)).toEqual([404, 404, 404, 404]);
  isDraining = true;
  expect(await statuses(app.appUuid)).toEqual([202, 202, 503, 503]);
  isDraining = false;
});

test('Nothing new is begun while the platform drains.', async () => {
  const samples = { encoding: 'pcm_s16le', sample_rate: 8000 };
  const formats = { media_format: { from_session: samples, to_session: samples } };
  const told = async () => {
    const begun = [
      ['/v1/sessions:dial', { from: '+15550100', to: '+15550199', ring_timeout_sec: 9 }],
      ['/v1/sessions:connectWebsocket', { websocket: { url: 'wss://bot.example/' }, ...formats }],
      ['/v1/webrtc-tokens', {}],
      ['/api/v1/rooms', {}],
    ] as const;
    return await Promise.all(begun.map(async ([path, body]) => (await platform.call(app, 'POST', path, body)).body.message));
  };
  isDraining = true;
  expect(new Set(await told())).toEqual(new Set([problems.draining().message]));
  isDraining = false;
  expect(await told()).not.toContain(problems.draining().message);
});

test('A dial is told with the Session that it made.', async () => {
  const { body } = await platform.call(app, 'POST', '/v1/sessions:dial', {
    from: '+15550100',
    to: '+15550199',
    ring_timeout_sec: 9,
  });
  expect(traced.at(-1)).toMatchObject({ status: 202, sessionUuid: body.session_uuid, operationUuid: body.operation_uuid });
});

test('Whoever has no right key leaves no mark, nor does another application.', async () => {
  const other = await platform.testStore.store.apps.create({ name: 'another' });
  told.length = 0;
  const hangup = `/operator/v1/apps/${app.appUuid}/sessions/${session}/hangup`;
  expect((await platform.raw(hangup, { method: 'POST', headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
  expect((await platform.call(other, 'POST', `/v1/sessions/${session}/answer`, {})).status).toBe(404);
  expect(told).toEqual([]);
});
