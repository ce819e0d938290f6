/** Deliveries whose failed attempts were made under a clock that ran ahead. */
import { expect, test } from 'bun:test';
import { type Clock, systemClock } from '../../src/clock.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay } from '../../src/webhook/relay.ts';
import { openTestStore } from '../database/open.ts';
import { eventOf } from './emit.ts';
import { plainOutbound } from './plain-outbound.ts';
import { startReceiver } from './receiver.ts';

/** The clock of a machine that is so many milliseconds ahead. */
function ahead(ms: number): Clock {
  const clock = systemClock();
  return { now: () => clock.now() + ms, wall: () => clock.wall() + ms, at: (deadline, fire) => clock.at(deadline - ms, fire) };
}

test('A clock that is set back by an hour, or a node that goes on for one that ran ahead, delays no retry', async () => {
  const opened = await openTestStore();
  const { outbox, apps, credentials, journal } = opened.store;
  let works = false;
  const receiver = startReceiver(() => new Response(null, { status: works ? 204 : 500 }));
  const relayOn = (clock: Clock) => {
    const relay = createRelay({
      ...{ outbox, apps, credentials, outbound: plainOutbound, clock, log: silentLog, timeoutSec: 1, retryScale: 0.3 },
    });
    relay.start();
    return relay;
  };
  const { appUuid } = await apps.create({ name: 'ahead', webhookUrl: receiver.url, blockedWebhookEvents: [] });
  const session = newUuid();
  const before = relayOn(ahead(3_600_000));
  await journal.commit({ events: [eventOf(appUuid, session, 0)] });
  await journal.commit({ events: [eventOf(appUuid, session, 1)] });
  await receiver.until((received) => received.length > 0);
  await before.stop();

  works = true;
  const after = relayOn(systemClock());
  await receiver.until(() => receiver.accepted.size === 2);
  expect(receiver.received.filter(({ status }) => status === 204).map(({ step }) => step)).toEqual([0, 1]);
  await after.stop();
  receiver.stop();
  await opened.close();
}, 30_000);
