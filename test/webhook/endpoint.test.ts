/** The endpoints of applications as the relay remembers them, on virtual time. */

import { expect, test } from 'bun:test';
import type { App } from '../../src/database/app/apps.ts';
import { EVERYWHERE } from '../../src/destinations.ts';
import { APP_CACHE_MAX_ITEMS, APP_CACHE_MS } from '../../src/limits.ts';
import { endpoints } from '../../src/webhook/endpoint.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const app: App = {
  ...{ appUuid: 'app_1', name: '', webhookUrl: 'http://one.invalid/', webhookDisabled: true, webhookSince: 7, createdAt: 0 },
  ...{ blockedWebhookEvents: ['playback.*'], destinations: EVERYWHERE, roomLimits: { maxRooms: 1, maxMembersPerRoom: 1 } },
};

/** Endpoints over rows that are read when the test says so. */
function remembered() {
  const clock = new VirtualClock();
  const reads: { readonly answer: (row: App | undefined) => void }[] = [];
  let changed = (_appUuid: string) => {};
  const known = endpoints(
    {
      settings: () => new Promise((answer) => reads.push({ answer })),
      onChange: (listener) => {
        changed = listener;
      },
    },
    { signingSecrets: async () => [] },
    () => clock.now(),
  );
  return { known, clock, reads, changed: () => changed('app_1') };
}

test('An endpoint is read once for all who ask meanwhile, and again when its time is over', async () => {
  const { known, clock, reads } = remembered();
  const asked = [known.lookUp('app_1'), known.lookUp('app_1')];
  expect(reads.length).toBe(1);
  reads[0]?.answer(app);
  const [found, same] = await Promise.all(asked);
  expect(found).toMatchObject({ url: 'http://one.invalid/', disabled: true, since: 7 });
  expect([found?.blocks('playback.started'), found?.blocks('playbacks'), same]).toEqual([true, false, found]);
  await clock.advance(APP_CACHE_MS - 1);
  expect(known.known('app_1')).toBe(found);
  await clock.advance(1);
  expect(known.known('app_1')).toBeUndefined();
  void known.lookUp('app_1');
  expect(reads.length).toBe(2);
});

test('An endpoint that is changed is read again, also when its old row is being read', async () => {
  const { known, reads, changed } = remembered();
  const old = known.lookUp('app_1');
  changed();
  const next = known.lookUp('app_1');
  expect(reads.length).toBe(2);
  reads[0]?.answer(app);
  await old;
  await settle();
  // The old row is remembered for nobody, and those who ask now share the second reading.
  expect(known.known('app_1')).toBeUndefined();
  void known.lookUp('app_1');
  expect(reads.length).toBe(2);
  reads[1]?.answer({ ...app, webhookUrl: 'http://two.invalid/' });
  await next;
  expect(known.known('app_1')?.url).toBe('http://two.invalid/');
  changed();
  expect(known.known('app_1')).toBeUndefined();
});

test('An application that is gone has an endpoint without a URL', async () => {
  const { known, reads } = remembered();
  const found = known.lookUp('app_1');
  reads[0]?.answer(undefined);
  expect(await found).toMatchObject({ url: '', disabled: false, since: 0, keys: [] });
});

test('So many endpoints are remembered at most, and all are forgotten before one more is', async () => {
  const { known, reads } = remembered();
  const lookUp = async (nth: number) => {
    const asked = known.lookUp(`app_${nth}`);
    reads[nth]?.answer(app);
    await asked;
  };
  for (let nth = 0; nth < APP_CACHE_MAX_ITEMS; nth++) await lookUp(nth);
  expect(known.known('app_0')).toBeDefined();
  await lookUp(APP_CACHE_MAX_ITEMS);
  expect([known.known('app_0'), known.known(`app_${APP_CACHE_MAX_ITEMS - 1}`)]).toEqual([undefined, undefined]);
  expect(known.known(`app_${APP_CACHE_MAX_ITEMS}`)).toBeDefined();
});
