/** Tokens of browsers, which anybody may guess at. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { newUuid } from '../../src/id.ts';
import { WEBRTC_TOKEN_KEPT_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openTestStore, type TestStore } from './open.ts';

const clock = new VirtualClock(Date.now());
let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore(clock);
});
afterAll(() => opened.close());

const terms = { ttlSec: 60, callerId: '+15550001', did: '+15550002', clientState: 'state' };

test('those that are asked for together are each told apart, and from guesses', async () => {
  const { apps, webrtcTokens } = opened.store;
  const [one, other] = await Promise.all([apps.create({ name: 'one' }), apps.create({ name: 'other' })]);
  const made = await Promise.all([one, other].map(({ appUuid }) => webrtcTokens.create(appUuid, terms)));
  const secrets = made.map((each) => (each === 'too_many' ? '' : each.token));
  const found = await Promise.all([...secrets, 'wt_guess'].map((secret) => webrtcTokens.find(secret)));
  const told = { callerId: '+15550001', did: '+15550002', clientState: 'state' };
  expect(found).toEqual([
    { ...told, appUuid: one.appUuid, tokenId: expect.any(String) },
    { ...told, appUuid: other.appUuid, tokenId: expect.any(String) },
    undefined,
  ]);
  await clock.advance(60_000);
  const [secret = ''] = secrets;
  expect([await webrtcTokens.find(secret), (await webrtcTokens.findBegun(secret))?.appUuid]).toEqual([undefined, one.appUuid]);
  await clock.advance(WEBRTC_TOKEN_KEPT_MS);
  expect(await webrtcTokens.findBegun(secret)).toBeUndefined();
});

test('those that have expired a day ago are forgotten, also of an application that makes no more of them', async () => {
  const { apps, webrtcTokens } = opened.store;
  await clock.advance(1);
  await opened.store.forget();
  const quiet = await Promise.all([apps.create({ name: 'quiet' }), apps.create({ name: 'silent' })]);
  for (const { appUuid } of quiet) for (const _ of [1, 2]) await webrtcTokens.create(appUuid, terms);
  const [{ appUuid }] = quiet;
  await webrtcTokens.create(appUuid, { ...terms, ttlSec: 120 });
  await clock.advance(60_000 + WEBRTC_TOKEN_KEPT_MS);
  expect((await opened.store.forget()).tokens).toBe(0);
  await clock.advance(1);
  expect((await opened.store.forget()).tokens).toBe(4);
  await clock.advance(60_000);
  expect((await opened.store.forget()).tokens).toBe(1);
});

test('those that are revoked together are, each by its own application only and once', async () => {
  const { apps, webrtcTokens } = opened.store;
  const [one, other] = await Promise.all([apps.create({ name: 'one' }), apps.create({ name: 'other' })]);
  const made = await webrtcTokens.create(one.appUuid, terms);
  const { token, tokenId } = made === 'too_many' ? { token: '', tokenId: '' } : made;
  const revoke = (appUuid: string) => webrtcTokens.revoke(appUuid, tokenId);
  const asked = [revoke(other.appUuid), webrtcTokens.revoke(one.appUuid, newUuid()), revoke(one.appUuid), revoke(one.appUuid)];
  const [others, nobodys, ...own] = await Promise.all(asked);
  // Which of the two is first is the database's business.
  expect([others, nobodys, own.sort()]).toEqual([false, false, [false, true]]);
  expect(await webrtcTokens.find(token)).toBeUndefined();
});

test.each([
  ['guesses', 'find'],
  ['revocations of tokens that are not there', 'revoke'],
] as const)('%s that wait for the database keep no other application from it', async (_, what) => {
  const { apps, credentials, webrtcTokens } = opened.store;
  const { appUuid } = await apps.create({ name: 'patient' });
  const sql = postgres({
    path: `${opened.dataDir}/postgres-socket/.s.PGSQL.5432`,
    user: 'sidetone',
    database: 'postgres',
    max: 1,
  });
  const guess = (at: number) => (what === 'find' ? webrtcTokens.find(`wt_${at}`) : webrtcTokens.revoke(appUuid, newUuid()));
  const guesses = await sql.begin(async (within) => {
    await within`LOCK TABLE webrtc_tokens IN ACCESS EXCLUSIVE MODE`;
    const waiting = Promise.allSettled(Array.from({ length: 100 }, (_, at) => guess(at)));
    const first = guess(100).catch(() => 'given up');
    expect(await Promise.race([credentials.keyIds(appUuid), first])).toHaveLength(1);
    return { waiting };
  });
  expect((await guesses.waiting).every((each) => each.status === 'fulfilled' && (each.value ?? false) === false)).toBe(true);
  await sql.end();
});
