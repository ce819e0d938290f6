/** Answers that are kept for a short time, on virtual time, and the numbers and caller IDs that are found with them. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { BriefCache } from '../../src/bounds/brief-cache.ts';
import { APP_CACHE_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openTestStore, type TestStore } from './open.ts';

/** A cache of two answers, whose look-ups are answered when the test says so. */
function cached() {
  const clock = new VirtualClock();
  const asked: { readonly key: string; answer(found: string | undefined): void; fail(): void }[] = [];
  const load = (key: string) =>
    new Promise<string | undefined>((resolve, reject) => {
      asked.push({ key, answer: resolve, fail: () => reject(new Error('away')) });
    });
  const cache = new BriefCache({ load, keptMs: 1_000, most: 2, now: () => clock.now() });
  /** Asks for a key and answers the look-up for it. */
  const fill = async (key: string, found: string | undefined) => {
    const answer = cache.get(key);
    asked.at(-1)?.answer(found);
    return await answer;
  };
  return { cache, clock, asked, fill };
}

describe('a brief cache', () => {
  test('looks a key up once for all who ask meanwhile, and again when the answer is old', async () => {
    const { cache, clock, asked } = cached();
    const both = [cache.get('a'), cache.get('a')];
    asked[0]?.answer('one');
    expect([await Promise.all(both), asked.length]).toEqual([['one', 'one'], 1]);
    await clock.advance(999);
    expect([await cache.get('a'), cache.known('a'), asked.length]).toEqual(['one', 'one', 1]);
    await clock.advance(1);
    expect(cache.known('a')).toBeUndefined();
    const anew = cache.get('a');
    asked[1]?.answer('two');
    expect([await anew, asked.length]).toEqual(['two', 2]);
  });

  test('looks again for what was not there', async () => {
    const { cache, asked, fill } = cached();
    await fill('a', undefined);
    expect([await fill('a', 'now'), cache.known('a'), asked.length]).toEqual(['now', 'now', 2]);
  });

  test('gives what was forgotten meanwhile to those who asked before, and looks it up for the others', async () => {
    const { cache, asked } = cached();
    for (const forget of [() => cache.forget('a'), () => cache.forgetAll()]) {
      const from = asked.length;
      const before = cache.get('a');
      forget();
      const after = cache.get('a');
      asked[from]?.answer('old');
      expect(await before).toBe('old');
      expect(cache.known('a')).toBeUndefined();
      asked[from + 1]?.answer('new');
      expect([await after, cache.known('a')]).toEqual(['new', 'new']);
      forget();
      expect(cache.known('a')).toBeUndefined();
    }
  });

  test('keeps nothing of a look-up that failed', async () => {
    const { cache, asked } = cached();
    const failing = cache.get('a');
    asked[0]?.fail();
    expect(failing).rejects.toThrow('away');
    await failing.catch(() => {});
    void cache.get('a');
    expect(asked.length).toBe(2);
  });

  test('begins anew where it is full', async () => {
    const { cache, fill } = cached();
    for (const key of ['a', 'b']) await fill(key, key);
    expect([cache.known('a'), cache.known('b')]).toEqual(['a', 'b']);
    await fill('c', 'c');
    expect([cache.known('a'), cache.known('b'), cache.known('c')]).toEqual([undefined, undefined, 'c']);
  });
});

describe('numbers and caller IDs', () => {
  const clock = new VirtualClock();
  const NUMBER = '+15550001';
  let opened: TestStore;
  let sql: postgres.Sql;
  beforeAll(async () => {
    opened = await openTestStore(clock);
    sql = postgres({ host: `${opened.dataDir}/postgres-socket`, user: 'sidetone', database: 'postgres', max: 1 });
  });
  afterAll(async () => {
    await sql.end();
    await opened.close();
  });

  const application = async (name: string) => (await opened.store.apps.create({ name, webhookUrl: '' })).appUuid;

  test('A number that is assigned, moved or taken away here is found so at once', async () => {
    const { numbers } = opened.store;
    const [one, other] = [await application('one'), await application('other')];
    expect(await numbers.owner(NUMBER)).toBeUndefined();
    for (const owner of [one, other]) {
      await numbers.assign(NUMBER, owner);
      expect(await numbers.owner(NUMBER)).toBe(owner);
    }
    await numbers.unassign(NUMBER);
    expect(await numbers.owner(NUMBER)).toBeUndefined();
  });

  test('What another node changes is found when it is told, and after five seconds where it is not', async () => {
    const { numbers, callerIds, appChanged } = opened.store;
    const [one, other] = [await application('one'), await application('other')];
    await numbers.assign(NUMBER, one);
    await callerIds.allow(one, NUMBER);
    const told = async () => [await numbers.owner(NUMBER), await callerIds.allowed(one, NUMBER)];
    expect(await told()).toEqual([one, true]);
    await sql`UPDATE numbers SET app_uuid = ${other}`;
    await sql`DELETE FROM caller_ids`;
    expect(await told()).toEqual([one, true]);
    appChanged(other);
    expect(await told()).toEqual([other, false]);
    await sql`UPDATE numbers SET app_uuid = ${one}`;
    await clock.advance(APP_CACHE_MS - 1);
    expect(await told()).toEqual([other, false]);
    await clock.advance(1);
    expect(await told()).toEqual([one, false]);
  });
});
